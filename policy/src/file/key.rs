//! Every key of a policy file: one table, from which reading, merging, the schema and
//! the explanations come.

/// What a value is, and with that how two files' values merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Text; the nearer file's wins when it isn't empty.
    Text,
    /// One of these words; the nearer file's wins when it isn't empty.
    Word(&'static [&'static str]),
    /// A switch; on in any file is on.
    Switch,
    /// A switch that may be left open; the nearer file's wins.
    OpenSwitch,
    /// A whole number; the nearer file's wins when it isn't 0.
    Number,
    /// A list of texts; both files' entries, each once.
    Texts,
    /// A list of whole numbers; both files' entries, each once.
    Numbers,
}

/// What a key means where commands run in a Linux VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// It decides about the text of a command.
    Command,
    /// It decides about what really runs, which this version can't enforce yet.
    Section(Section),
    /// It has no meaning on a Linux VM.
    None,
    /// It describes the file.
    File,
}

/// The parts of a policy that hold at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Which files may be read and written.
    Filesystem,
    /// Which hosts may be reached.
    Network,
    /// Which programs may start, by their real arguments.
    Exec,
    /// Which devices exist.
    Devices,
}

impl Section {
    /// Every section.
    pub const ALL: [Self; 4] = [Self::Filesystem, Self::Network, Self::Exec, Self::Devices];

    /// Its name, as the user's configuration spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Filesystem => "filesystem",
            Self::Network => "network",
            Self::Exec => "exec",
            Self::Devices => "devices",
        }
    }
}

macro_rules! keys {
    ($($key:ident $path:literal $shape:expr, $meaning:expr, $about:literal;)*) => {
        /// A key of a policy file.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Key {
            $(#[doc = $about] $key,)*
        }

        impl Key {
            /// Every key, in the order of the file.
            pub const ALL: &[Self] = &[$(Self::$key,)*];

            /// Its path, as in `command.deny`.
            pub fn path(self) -> &'static str {
                match self { $(Self::$key => $path,)* }
            }

            /// What its value is.
            pub fn shape(self) -> Shape {
                match self { $(Self::$key => $shape,)* }
            }

            /// What it means on a VM.
            pub fn meaning(self) -> Meaning {
                match self { $(Self::$key => $meaning,)* }
            }

            /// What it says, in half a sentence.
            pub fn about(self) -> &'static str {
                match self { $(Self::$key => $about,)* }
            }
        }
    };
}

use Meaning::{Command, File, None as NoMeaning, Section as In};
use Section::{Devices, Exec, Filesystem, Network};
use Shape::{Number, Numbers, OpenSwitch, Switch, Text, Texts, Word};

keys! {
    Schema "$schema" Text, File, "The schema that editors check the file with";
    Extends "extends" Text, File, "The policy that this one adds to: `@base`, a file, or a template";
    AllowPty "allowPty" Switch, NoMeaning, "Whether commands may have a terminal";
    ForceNewSession "forceNewSession" OpenSwitch, NoMeaning, "Whether each command gets a session of its own";
    AllowedDomains "network.allowedDomains" Texts, In(Network), "Hosts that may be reached: a name, `*.name`, `*`, or `registries`";
    DeniedDomains "network.deniedDomains" Texts, In(Network), "Hosts that may not be reached, whatever else allows them";
    AllowUnixSockets "network.allowUnixSockets" Texts, NoMeaning, "Unix sockets that may be connected to (macOS)";
    AllowAllUnixSockets "network.allowAllUnixSockets" Switch, NoMeaning, "Whether every Unix socket may be connected to (macOS)";
    AllowLocalBinding "network.allowLocalBinding" Switch, In(Network), "Whether commands may listen on local ports";
    AllowLocalOutbound "network.allowLocalOutbound" OpenSwitch, In(Network), "Whether commands may reach local ports";
    AllowLocalOutboundPorts "network.allowLocalOutboundPorts" Numbers, In(Network), "Local ports that commands may reach";
    HttpProxyPort "network.httpProxyPort" Number, NoMeaning, "A fixed port for the HTTP proxy (Fence reads and ignores it)";
    SocksProxyPort "network.socksProxyPort" Number, NoMeaning, "A fixed port for the SOCKS proxy (Fence reads and ignores it)";
    UpstreamProxy "network.upstreamProxy" Text, In(Network), "A proxy that gets what no rule names";
    DefaultAction "network.defaultAction" Word(&["deny", "proxy"]), In(Network), "What happens to hosts that no rule names";
    DefaultDenyRead "filesystem.defaultDenyRead" Switch, In(Filesystem), "Whether only listed paths and the system's can be read";
    StrictDenyRead "filesystem.strictDenyRead" Switch, In(Filesystem), "Whether only listed paths can be read";
    WslInterop "filesystem.wslInterop" OpenSwitch, NoMeaning, "Whether Windows programs can be started (WSL)";
    AllowRead "filesystem.allowRead" Texts, In(Filesystem), "Paths that can be read";
    AllowExecute "filesystem.allowExecute" Texts, In(Filesystem), "Programs that can be started but not listed";
    DenyRead "filesystem.denyRead" Texts, In(Filesystem), "Paths that can't be read, whatever else allows them";
    AllowWrite "filesystem.allowWrite" Texts, In(Filesystem), "Paths that can be written";
    DenyWrite "filesystem.denyWrite" Texts, In(Filesystem), "Paths that can't be written, whatever else allows them";
    AllowGitConfig "filesystem.allowGitConfig" Switch, In(Filesystem), "Whether `.git/config` can be written";
    DevicesMode "devices.mode" Word(&["auto", "minimal", "host"]), In(Devices), "Which devices exist";
    DevicesAllow "devices.allow" Texts, In(Devices), "Devices that exist besides";
    MachLookup "macos.mach.lookup" Texts, NoMeaning, "Mach services that can be looked up (macOS)";
    MachRegister "macos.mach.register" Texts, NoMeaning, "Mach services that can be registered (macOS)";
    Deny "command.deny" Texts, Command, "Commands that are denied";
    Allow "command.allow" Texts, Command, "Commands that are allowed in spite of a rule that denies them";
    UseDefaults "command.useDefaults" OpenSwitch, Command, "Whether the default rules hold too";
    RuntimeExecPolicy "command.runtimeExecPolicy" Word(&["path", "argv"]), In(Exec), "How programs are judged when they start";
    AcceptSharedBinary "command.acceptSharedBinaryCannotRuntimeDeny" Texts, NoMeaning, "Programs that share their file with others and so are only judged by the text";
    AllowedHosts "ssh.allowedHosts" Texts, Command, "Hosts that ssh may reach; `*` stands for anything";
    DeniedHosts "ssh.deniedHosts" Texts, Command, "Hosts that ssh may not reach";
    AllowedCommands "ssh.allowedCommands" Texts, Command, "Commands that may run on these hosts";
    DeniedCommands "ssh.deniedCommands" Texts, Command, "Commands that may not run on these hosts";
    AllowAllCommands "ssh.allowAllCommands" Switch, Command, "Whether every other command may run on these hosts";
    InheritDeny "ssh.inheritDeny" Switch, Command, "Whether `command.deny` holds on these hosts too";
}

impl Key {
    /// The key at a path, in any case, as Go reads it.
    pub(crate) fn find(path: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|key| key.path().eq_ignore_ascii_case(path))
    }

    /// Whether keys stand below this path.
    pub(crate) fn is_group(path: &str) -> bool {
        Self::ALL.iter().any(|key| {
            key.path()
                .split_at_checked(path.len())
                .is_some_and(|(start, rest)| {
                    start.eq_ignore_ascii_case(path) && rest.starts_with('.')
                })
        })
    }

    /// The known path that `path` was probably meant to be.
    pub(crate) fn near(path: &str) -> Option<&'static str> {
        let mut candidates: Vec<&'static str> = Self::ALL.iter().map(|key| key.path()).collect();
        for key in Self::ALL {
            let path = key.path();
            candidates.extend(path.match_indices('.').map(|(at, _)| &path[..at]));
        }
        let lower = path.to_ascii_lowercase();
        let last = lower.rsplit('.').next().unwrap_or_default();
        candidates
            .into_iter()
            .map(|known| {
                let known_lower = known.to_ascii_lowercase();
                let whole = strsim::damerau_levenshtein(&lower, &known_lower);
                // The right word in the wrong place.
                let moved = known_lower.rsplit('.').next() == Some(last);
                (if moved { whole.min(1) } else { whole }, known)
            })
            .min()
            .filter(|(distance, _)| *distance <= 2.max(last.len() / 4))
            .map(|(_, known)| known)
    }
}
