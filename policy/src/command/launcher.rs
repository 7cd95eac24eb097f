//! Programs that run a command behind operands of their own: containers, terminals,
//! tools that run something again and again.

use super::arg::Arg;
use super::tables::{self, Known};
use super::walk::{Around, Denied, Walk, deeper};

/// How a program's words are read up to the command that it runs.
pub(super) struct Launcher {
    pub(super) names: &'static [&'static str],
    /// Words of which one stands before; none if it may stand anywhere.
    verbs: &'static [&'static str],
    /// Options without a value; every other one takes one.
    flags: (&'static str, &'static [&'static str]),
    /// Operands before the command.
    skip: usize,
    /// Whether each later word may be a text of shell.
    texts: bool,
}

const fn words(
    names: &'static [&'static str],
    verbs: &'static [&'static str],
    flags: &'static str,
    skip: usize,
) -> Launcher {
    Launcher {
        names,
        verbs,
        flags: (flags, &[]),
        skip,
        texts: false,
    }
}

impl Launcher {
    const fn long(mut self, flags: &'static [&'static str]) -> Self {
        self.flags.1 = flags;
        self
    }
    const fn texts(mut self) -> Self {
        self.texts = true;
        self
    }
}

/// Docker 28, kubectl 1.33, tmux 3.5, util-linux 2.41 and their like.
pub(super) const LAUNCHERS: &[Launcher] = &[
    words(
        &[
            "docker",
            "podman",
            "nerdctl",
            "docker-compose",
            "podman-compose",
            "buildah",
        ],
        &["run", "exec", "create"],
        "ditqPT",
        1,
    )
    .long(&[
        "detach",
        "interactive",
        "tty",
        "rm",
        "init",
        "privileged",
        "read-only",
        "publish-all",
        "no-healthcheck",
        "oom-kill-disable",
        "quiet",
        "no-deps",
        "service-ports",
        "use-aliases",
        "no-TTY",
        "no-tty",
        "latest",
        "replace",
        "build",
        "remove-orphans",
    ]),
    words(
        &["ctr", "crictl", "lxc", "incus", "multipass"],
        &["exec"],
        "its",
        1,
    )
    .long(&["tty", "interactive"]),
    words(
        &["kubectl", "oc", "k3s"],
        &["exec", "run", "debug", "rsh"],
        "itq",
        1,
    )
    .long(&[
        "stdin",
        "tty",
        "rm",
        "quiet",
        "attach",
        "expose",
        "leave-stdin-open",
    ]),
    words(&["limactl", "machinectl"], &["shell"], "q", 1),
    words(&["systemd-nspawn"], &[], "bqxUnPaj", 0).long(&[
        "boot",
        "quiet",
        "ephemeral",
        "private-network",
    ]),
    words(&["schroot"], &[], "pqvbed", 0).long(&["preserve-environment", "quiet"]),
    words(&["distrobox"], &["enter"], "TvH", 1).long(&["no-tty", "clean-path", "additional-flags"]),
    words(
        &["apptainer", "singularity"],
        &["exec", "run", "shell"],
        "ecCwfu",
        1,
    )
    .long(&[
        "nv",
        "cleanenv",
        "contain",
        "containall",
        "writable",
        "fakeroot",
        "no-home",
    ]),
    words(&["toolbox", "heroku"], &["run"], "", 0),
    words(&["flatpak"], &["run"], "dpv", 1).long(&["devel", "user", "system"]),
    words(&["flatpak-spawn"], &[], "", 0).long(&[
        "host",
        "clear-env",
        "watch-bus",
        "sandbox",
        "no-network",
        "latest-version",
    ]),
    words(&["wsl"], &[], "e", 0).long(&["exec"]),
    words(&["adb"], &["shell"], "tTxn", 0).texts(),
    words(
        &["srun", "salloc", "mpirun", "mpiexec", "orterun", "torchrun"],
        &[],
        "vqlu",
        0,
    )
    .long(&[
        "oversubscribe",
        "allow-run-as-root",
        "bind-to-none",
        "verbose",
    ]),
    words(&["pdsh", "clush", "pssh", "parallel-ssh"], &[], "bBLqNi", 0).texts(),
    words(
        &["perf"],
        &["stat", "record", "trace", "kvm"],
        "aBgidvqsST",
        0,
    )
    .long(&["all-cpus", "null", "detailed", "verbose", "inherit"]),
    words(
        &[
            "rr",
            "heaptrack",
            "uftrace",
            "eatmydata",
            "nocache",
            "systemd-cat",
            "cgexec",
            "scl",
            "firejail",
        ],
        &[],
        "qv",
        0,
    ),
    words(&["gdb", "lldb"], &["--args", "-args", "--"], "", 0),
    words(&["hyperfine"], &[], "Ni", 0)
        .long(&["ignore-failure", "show-output"])
        .texts(),
    words(
        &[
            "watchexec",
            "reflex",
            "when-changed",
            "chokidar",
            "onchange",
            "rush",
        ],
        &[],
        "rnpc1vs",
        0,
    )
    .long(&["restart", "no-shell", "postpone", "clear", "notify"])
    .texts(),
    words(&["nodemon"], &["--"], "", 0).texts(),
    words(&["cmake"], &["-E"], "", 0),
    words(&["sops"], &["exec-env", "exec-file"], "", 1)
        .long(&["background", "no-fifo", "pristine"])
        .texts(),
    words(
        &["dotenv", "dotenvx", "infisical", "chamber", "envchain"],
        &["run", "exec", "--"],
        "",
        0,
    ),
    words(&["guix", "mosh"], &["--"], "", 0),
    words(&["nix"], &["-c", "--command"], "", 0),
    words(
        &["tmux"],
        &[
            "new-session",
            "new",
            "new-window",
            "neww",
            "split-window",
            "splitw",
            "respawn-pane",
            "respawn-window",
            "send-keys",
            "send",
            "run-shell",
            "run",
            "if-shell",
            "display-popup",
            "popup",
            "pipe-pane",
            "set-hook",
        ],
        "dPAEDXbhvlRMHNZ",
        0,
    )
    .texts(),
    words(&["screen"], &[], "dmDqRULAaX", 0).texts(),
    words(
        &[
            "xterm",
            "uxterm",
            "urxvt",
            "rxvt",
            "konsole",
            "alacritty",
            "foot",
            "st",
            "gnome-terminal",
            "kitty",
            "xfce4-terminal",
            "terminator",
            "wezterm",
            "x-terminal-emulator",
            "lxterminal",
        ],
        &["-e", "--", "-x", "start"],
        "",
        0,
    )
    .texts(),
    words(&["dtach", "abduco"], &["-n", "-N", "-c", "-A"], "", 1),
    words(&["repo"], &["forall"], "cpev", 0).texts(),
    words(
        &["mr", "lerna", "nx", "turbo", "rushx", "xdotool"],
        &["run", "exec"],
        "",
        0,
    )
    .long(&["parallel", "stream"]),
    words(&["ip"], &["exec"], "", 1),
    words(&["rustup"], &["run"], "", 1).long(&["install"]),
    words(&["just"], &["--command", "-c"], "", 0).texts(),
    words(&["script", "scriptlive"], &[], "aefqcBT", 1)
        .long(&["append", "flush", "quiet", "return"])
        .texts(),
    words(&["ansible"], &["-a", "--args"], "", 0).texts(),
    words(&["salt", "salt-call"], &["cmd.run"], "", 0).texts(),
];

/// Programs whose options take one or more values each, so that the command may begin at
/// any word.
pub(super) const ANYWHERE: &[&str] = &["bwrap", "nsjail", "minijail0", "start-stop-daemon"];
/// At how many words that is tried.
const MOST_TRIED: usize = 64;

/// Options that name the program itself.
const PROGRAM_OPTIONS: &[&str] = &["entrypoint", "command", "exec", "startas"];

impl Walk<'_> {
    /// The command that a launcher runs, if `program` is one.
    pub(super) fn launched(
        &mut self,
        text: &str,
        program: &str,
        known: Known,
        args: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        if tables::is_loader(program) {
            let program = args[1..].iter().position(|arg| !arg.text.starts_with('-'));
            return match program {
                Some(at) => self.command(text, &args[at + 1..], deeper(around)),
                None => Ok(()),
            };
        }
        if ANYWHERE.contains(&program) {
            let start = args.iter().enumerate().skip(1).take(MOST_TRIED);
            for (at, arg) in start.filter(|(_, arg)| !arg.text.starts_with('-')) {
                // Every try copies the rest.
                if !self.spend((args.len() - at) * 8) {
                    return Ok(());
                }
                let rest = args[at + 1..].iter().filter(|arg| arg.text != "--");
                let command: Vec<Arg> = std::iter::once(arg).chain(rest).cloned().collect();
                self.probe(|walk| walk.command(text, &command, deeper(around)))?;
            }
            return Ok(());
        }
        let Some(launcher) = known.launcher else {
            return Ok(());
        };
        let verb = if launcher.verbs.is_empty() {
            Some(0)
        } else {
            args.iter()
                .position(|arg| launcher.verbs.contains(&arg.text.as_str()))
        };
        let Some(verb) = verb else { return Ok(()) };
        self.launched_by(text, launcher, args, verb + 1, around)
    }

    fn launched_by(
        &mut self,
        text: &str,
        launcher: &Launcher,
        args: &[Arg],
        from: usize,
        around: Around<'_>,
    ) -> Result<(), Denied> {
        let (mut at, mut skip, mut named) = (from, launcher.skip, None);
        while let Some(arg) = args.get(at) {
            let word = arg.text.as_str();
            if word == "--" {
                at += 1;
                if skip == 0 {
                    break;
                }
            } else if let Some(long) = word.strip_prefix("--") {
                let (name, glued) = long
                    .split_once('=')
                    .map_or((long, None), |(name, value)| (name, Some(value)));
                if PROGRAM_OPTIONS.contains(&name) && !launcher.flags.1.contains(&name) {
                    named = match glued {
                        Some(value) => Some(Arg::exact(value, arg.range.clone())),
                        None => args.get(at + 1).cloned(),
                    };
                }
                let flag = glued.is_some() || launcher.flags.1.contains(&name);
                if !flag {
                    // An option that isn't known may have no value.
                    self.probe(|walk| {
                        walk.candidate(text, &args[at + 1..], launcher.texts, around)
                    })?;
                }
                at += if flag { 1 } else { 2 };
            } else if let Some(letters) =
                word.strip_prefix('-').filter(|letters| !letters.is_empty())
            {
                let valued = letters.find(|letter| !launcher.flags.0.contains(letter));
                at += match valued {
                    Some(start) if start + 1 >= letters.len() => 2,
                    _ => 1,
                };
            } else if skip > 0 {
                skip -= 1;
                at += 1;
            } else {
                break;
            }
        }
        let rest = args.get(at..).unwrap_or_default();
        if let Some(named) = named {
            let command: Vec<Arg> = std::iter::once(named).chain(rest.iter().cloned()).collect();
            self.probe(|walk| walk.command(text, &command, deeper(around)))?;
        }
        self.candidate(text, rest, launcher.texts, around)?;
        // Options may stand behind the operands, up to `--`.
        match args.iter().skip(from).position(|arg| arg.text == "--") {
            Some(dashes) => self.probe(|walk| {
                walk.candidate(text, &args[from + dashes + 1..], launcher.texts, around)
            }),
            None => Ok(()),
        }
    }

    /// Words that are a command, or each a text of shell.
    fn candidate(
        &mut self,
        text: &str,
        words: &[Arg],
        texts: bool,
        around: Around<'_>,
    ) -> Result<(), Denied> {
        if words.is_empty() {
            return Ok(());
        }
        self.command(text, words, deeper(around))?;
        if texts {
            for word in words
                .iter()
                .filter(|word| word.text.contains([' ', '\t', '\n']))
            {
                let span = around.place.span(&word.range);
                self.probe_text(&word.text, span, around.depth)?;
            }
        }
        Ok(())
    }
}
