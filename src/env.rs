//! Which environment variables boxery reads, and what follows from them. No other
//! file reads the environment.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the one file that may read it"
)]

use std::ffi::OsString;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};

use crate::error::Failure;

/// Where boxery keeps what, and what the surroundings say.
#[derive(Debug, Clone)]
pub(crate) struct Env {
    /// `HOME`.
    pub(crate) home: Utf8PathBuf,
    /// `$XDG_CONFIG_HOME/boxery`, by default `~/.config/boxery`.
    pub(crate) config: Utf8PathBuf,
    /// `$XDG_STATE_HOME/boxery`, by default `~/.local/state/boxery`.
    pub(crate) state: Utf8PathBuf,
}

impl Env {
    /// Read `HOME`, `XDG_CONFIG_HOME` and `XDG_STATE_HOME`.
    ///
    /// Relative values of the XDG variables are ignored, as the XDG Base Directory
    /// Specification 0.8 demands.
    pub(crate) fn read() -> Result<Self, Failure> {
        let home = absolute("HOME").or_else(account_home).ok_or_else(|| {
            Failure::from("HOME is not an absolute path in UTF-8".to_owned())
                .hint("set HOME to your home folder")
        })?;
        let config = absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let state = absolute("XDG_STATE_HOME").unwrap_or_else(|| home.join(".local/state"));
        Ok(Self {
            config: config.join("boxery"),
            state: state.join("boxery"),
            home,
        })
    }

    /// A file or folder in boxery's state folder.
    pub(crate) fn state_path(&self, name: &str) -> Utf8PathBuf {
        self.state.join(name)
    }
}

/// The account's own home folder where `HOME` isn't set at all, as agents take it.
fn account_home() -> Option<Utf8PathBuf> {
    if std::env::var_os("HOME").is_some() {
        return None;
    }
    let home = Utf8PathBuf::from_path_buf(std::env::home_dir()?).ok()?;
    home.is_absolute().then_some(home)
}

fn absolute(name: &str) -> Option<Utf8PathBuf> {
    let path = Utf8PathBuf::from(text(name)?);
    path.is_absolute().then_some(path)
}

fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// `BOXERY_VM`. Values that are empty count as absent; one that isn't UTF-8 comes back
/// lossy, so that it counts as a name that no VM has.
#[derive(Debug, Clone, Default)]
pub(crate) struct BoxeryVm {
    /// As the user's shell set it: for the agent where there is one, else for us.
    pub(crate) own: Option<String>,
    /// As the agent's settings set it, for what the agent starts. A project may bring
    /// such settings along (`env`, Claude Code 2.1).
    pub(crate) settings: Option<String>,
}

impl BoxeryVm {
    /// Whether either is set.
    pub(crate) fn is_set(&self) -> bool {
        self.own.is_some() || self.settings.is_some()
    }
}

/// `BOXERY_VM`, for the agent and for us.
pub(crate) fn boxery_vm() -> &'static BoxeryVm {
    static VALUE: OnceLock<BoxeryVm> = OnceLock::new();
    let text = |value: Option<OsString>| {
        value
            .filter(|value| !value.is_empty())
            .map(|value| value.to_string_lossy().into_owned())
    };
    VALUE.get_or_init(|| {
        let here = text(std::env::var_os("BOXERY_VM"));
        match agents_environment() {
            None => BoxeryVm {
                own: here,
                settings: None,
            },
            Some(environment) => match text(find_variable(&environment, "BOXERY_VM")) {
                Some(own) => BoxeryVm {
                    own: Some(own),
                    settings: None,
                },
                None => BoxeryVm {
                    own: None,
                    settings: here,
                },
            },
        }
    })
}

/// The variables with which the agent's process above this one was started. The
/// agent sets `CLAUDE_PID` itself, whatever its settings say.
fn agents_environment() -> Option<Vec<u8>> {
    let pid = claude_pid()?;
    // The walk up ends below process 1, which in a container may be the agent.
    let above = boxery_pin::ancestors(std::process::id());
    if pid != 1 && !above.iter().any(|process| process.pid == pid) {
        return None;
    }
    std::fs::read(format!("/proc/{pid}/environ")).ok()
}

fn find_variable(environment: &[u8], name: &str) -> Option<OsString> {
    use std::os::unix::ffi::OsStringExt as _;

    environment.split(|byte| *byte == 0).find_map(|variable| {
        let value = variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(OsString::from_vec(value.to_vec()))
    })
}

/// `NO_COLOR` is set and not empty (<https://no-color.org>).
pub(crate) fn no_color() -> bool {
    text("NO_COLOR").is_some()
}

/// `SSH_AUTH_SOCK`: the user's SSH agent.
pub(crate) fn ssh_auth_sock() -> Option<Utf8PathBuf> {
    text("SSH_AUTH_SOCK").map(Utf8PathBuf::from)
}

/// `CLAUDE_CONFIG_DIR`: where Claude Code keeps its settings.
pub(crate) fn claude_config_dir() -> Option<Utf8PathBuf> {
    text("CLAUDE_CONFIG_DIR").map(Utf8PathBuf::from)
}

/// `ANTHROPIC_BASE_URL`: the model's address, for the demo's agent.
pub(crate) fn anthropic_base_url() -> Option<String> {
    text("ANTHROPIC_BASE_URL")
}

/// `CLAUDE_PROJECT_DIR`: the folder in which Claude Code was started; it sets this
/// for hooks and MCP servers.
pub(crate) fn claude_project_dir() -> Option<Utf8PathBuf> {
    text("CLAUDE_PROJECT_DIR").map(Utf8PathBuf::from)
}

/// `ZDOTDIR`: where zsh looks for its start-up files.
pub(crate) fn zdotdir() -> Option<Utf8PathBuf> {
    absolute("ZDOTDIR")
}

/// `CLAUDE_PID`: Claude Code's own process number, in hooks.
pub(crate) fn claude_pid() -> Option<u32> {
    text("CLAUDE_PID")?.parse().ok()
}

/// `CLAUDE_CODE_SESSION_ID`: the session, in hooks and in the shell tool.
pub(crate) fn claude_session_id() -> Option<String> {
    text("CLAUDE_CODE_SESSION_ID")
}

/// Whether any `GIT_*` variable is set, so that git may run other programs or
/// look at another repository than the folder's.
pub(crate) fn any_git_variable() -> bool {
    std::env::vars_os().any(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_"))
}

/// The variables that travel to the VM with each run: `LANG`, `LC_*`, `TZ`,
/// `TERM`, `COLORTERM`, `NO_COLOR`, `FORCE_COLOR` and `CI`.
pub(crate) fn travelling() -> Vec<(OsString, OsString)> {
    const NAMES: &[&str] = &[
        "LANG",
        "TZ",
        "TERM",
        "COLORTERM",
        "NO_COLOR",
        "FORCE_COLOR",
        "CI",
    ];
    std::env::vars_os()
        .filter(|(name, _)| {
            name.to_str()
                .is_some_and(|name| NAMES.contains(&name) || name.starts_with("LC_"))
        })
        .collect()
}

/// A variable that the user's configuration names.
pub(crate) fn named(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// `PATH`, to find programs on the laptop.
pub(crate) fn path() -> Option<OsString> {
    std::env::var_os("PATH")
}

/// The absolute folders of `PATH`.
pub(crate) fn folders_on_path() -> Vec<Utf8PathBuf> {
    std::env::split_paths(&path().unwrap_or_default())
        .filter_map(|folder| Utf8PathBuf::from_path_buf(folder).ok())
        .filter(|folder| folder.is_absolute())
        .collect()
}

/// The files that shells read because a variable names them: `BASH_ENV` (bash), `ENV`
/// (POSIX shells) and `CLAUDE_ENV_FILE` (Claude Code 2.1, before each shell call).
pub(crate) fn files_that_shells_read() -> Vec<Utf8PathBuf> {
    ["BASH_ENV", "ENV", "CLAUDE_ENV_FILE"]
        .into_iter()
        .filter_map(absolute)
        .collect()
}

/// Files named `name` in the absolute folders of `PATH`, the first one first; they
/// need not exist.
pub(crate) fn on_path(name: &str) -> Vec<Utf8PathBuf> {
    let folders = folders_on_path().into_iter();
    folders.map(|folder| folder.join(name)).collect()
}

/// The current folder.
pub(crate) fn current_folder() -> Result<Utf8PathBuf, Failure> {
    let folder = std::env::current_dir()
        .map_err(|error| Failure::from(error).hint("the current folder is gone; cd to another"))?;
    Utf8PathBuf::from_path_buf(folder).map_err(|folder| {
        Failure::from(format!(
            "the current folder `{}` is not UTF-8",
            folder.display()
        ))
    })
}

/// This program's own file, links resolved.
pub(crate) fn own_binary() -> Result<Utf8PathBuf, Failure> {
    let path = std::env::current_exe()?;
    Utf8PathBuf::from_path_buf(path).map_err(|path| {
        Failure::from(format!(
            "boxery's own path `{}` is not UTF-8",
            path.display()
        ))
    })
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}

/// The user's login name (`USER`, else `LOGNAME`), where a target names none.
pub(crate) fn login_name() -> String {
    text("USER")
        .or_else(|| text("LOGNAME"))
        .unwrap_or_else(|| "root".to_owned())
}

/// Whether Kerberos is set up here, so that `ssh` could log in with a ticket.
pub(crate) fn kerberos() -> bool {
    text("KRB5CCNAME").is_some() || Utf8Path::new("/etc/krb5.conf").exists()
}

/// Whether standard input is a pipe or a file, so that it is meant for the command.
/// A terminal isn't, nor a socket, which agents leave open and silent.
pub(crate) fn stdin_is_piped() -> bool {
    use rustix::fs::FileType;

    rustix::fs::fstat(std::io::stdin()).is_ok_and(|stat| {
        matches!(
            FileType::from_raw_mode(stat.st_mode),
            FileType::Fifo | FileType::RegularFile
        )
    })
}

/// Whether this program was started by an agent's shell tool: `CLAUDECODE` (Claude
/// Code 2.1 sets it for everything that it starts).
pub(crate) fn inside_agent() -> bool {
    text("CLAUDECODE").is_some() || claude_session_id().is_some()
}
