//! Programs that run the command in their later words: one table.

use super::arg::Arg;

/// How a program's options are read up to the command that it runs.
pub(crate) struct Wrapper {
    pub(crate) name: &'static str,
    /// Short options with a value, short options without one (`*`: any other).
    short: (&'static str, &'static str),
    /// Long options with a value, long options without one.
    long: (&'static [&'static str], &'static [&'static str]),
    /// Words between the options and the command.
    skip: usize,
    /// Whether `NAME=VALUE` may stand before the command.
    assignments: bool,
    pub(crate) runs: Runs,
}

/// What a wrapper does with its later words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    /// They are a command.
    Words,
    /// Joined by blanks they are a text of shell.
    Joined,
}

const fn wrapper(name: &'static str, values: &'static str, flags: &'static str) -> Wrapper {
    Wrapper {
        name,
        short: (values, flags),
        long: (&[], &[]),
        skip: 0,
        assignments: false,
        runs: Runs::Words,
    }
}

impl Wrapper {
    const fn long(
        mut self,
        values: &'static [&'static str],
        flags: &'static [&'static str],
    ) -> Self {
        self.long = (values, flags);
        self
    }
    const fn skip(mut self, count: usize) -> Self {
        self.skip = count;
        self
    }
    const fn assignments(mut self) -> Self {
        self.assignments = true;
        self
    }
    const fn joined(mut self) -> Self {
        self.runs = Runs::Joined;
        self
    }
}

/// Options as of coreutils 9.7, util-linux 2.41, sudo 1.9, findutils 4.10, GNU time 1.9,
/// strace 6.13; an option that isn't here makes the call unclear.
pub(crate) const WRAPPERS: &[Wrapper] = &[
    wrapper("env", "uCaS", "i0v-").assignments().long(
        &["unset", "chdir", "argv0", "split-string"],
        &[
            "ignore-environment",
            "null",
            "debug",
            "block-signal",
            "default-signal",
            "ignore-signal",
            "list-signal-handling",
        ],
    ),
    wrapper("sudo", "CDghpRrTtUu", "ABbEeHikKlNnPSsVv")
        .assignments()
        .long(
            &[
                "close-from",
                "chdir",
                "group",
                "host",
                "prompt",
                "chroot",
                "role",
                "type",
                "command-timeout",
                "other-user",
                "user",
            ],
            &[
                "askpass",
                "bell",
                "background",
                "preserve-env",
                "edit",
                "set-home",
                "login",
                "remove-timestamp",
                "reset-timestamp",
                "list",
                "no-update",
                "non-interactive",
                "preserve-groups",
                "stdin",
                "shell",
                "validate",
                "version",
            ],
        ),
    wrapper("doas", "Cu", "nLs").assignments(),
    wrapper("run0", "ugD", "*").long(
        &[
            "user",
            "group",
            "chdir",
            "unit",
            "slice",
            "nice",
            "property",
            "description",
            "setenv",
            "background",
            "machine",
            "area",
        ],
        &[
            "no-ask-password",
            "slice-inherit",
            "pty",
            "pipe",
            "via-shell",
            "same-root-dir",
        ],
    ),
    wrapper("pkexec", "", "").long(&["user"], &["disable-internal-agent", "keep-cwd"]),
    wrapper("command", "", "p"),
    wrapper("exec", "a", "cl"),
    wrapper("builtin", "", ""),
    wrapper("nocorrect", "", ""),
    wrapper("noglob", "", ""),
    wrapper("nohup", "", ""),
    wrapper("setsid", "", "cfw").long(&[], &["ctty", "fork", "wait"]),
    wrapper("nice", "n", "0123456789").long(&["adjustment"], &[]),
    wrapper("ionice", "cnpPu", "t").long(&["class", "classdata"], &["ignore"]),
    wrapper("stdbuf", "ioe", "").long(&["input", "output", "error"], &[]),
    wrapper("time", "fo", "apvqV").long(
        &["format", "output"],
        &["append", "portability", "verbose", "quiet"],
    ),
    wrapper("timeout", "ks", "vfp").skip(1).long(
        &["kill-after", "signal"],
        &["foreground", "preserve-status", "verbose"],
    ),
    wrapper("gtimeout", "ks", "vfp").skip(1).long(
        &["kill-after", "signal"],
        &["foreground", "preserve-status", "verbose"],
    ),
    wrapper("chroot", "", "")
        .skip(1)
        .long(&["groups", "userspec"], &["skip-chdir"]),
    wrapper("unshare", "RwSG", "imnpuUCTfrcq").long(
        &[
            "root",
            "wd",
            "setuid",
            "setgid",
            "map-user",
            "map-users",
            "map-group",
            "map-groups",
            "propagation",
            "setgroups",
            "monotonic",
            "boottime",
            "owner",
            "load-interp",
        ],
        &[
            "ipc",
            "mount",
            "net",
            "pid",
            "uts",
            "user",
            "cgroup",
            "time",
            "fork",
            "map-root-user",
            "map-current-user",
            "map-auto",
            "map-subids",
            "kill-child",
            "mount-proc",
            "mount-binfmt",
            "keep-caps",
            "forward-signals",
        ],
    ),
    wrapper("nsenter", "tSGN", "aimnpuUCTrwWFZec").long(
        &["target", "setuid", "setgid", "net-socket"],
        &[
            "all",
            "ipc",
            "mount",
            "net",
            "pid",
            "uts",
            "user",
            "cgroup",
            "time",
            "root",
            "wd",
            "wdns",
            "no-fork",
            "follow-context",
            "env",
            "join-cgroup",
            "keep-caps",
            "preserve-credentials",
            "user-parent",
        ],
    ),
    wrapper("strace", "abeEIoOpPsSuUX", "cCdDfFhiknNqrtTvVwxyYzZ").long(
        &[
            "attach",
            "output",
            "string-limit",
            "summary-sort-by",
            "columns",
            "trace",
            "signal",
            "status",
            "inject",
            "fault",
            "user",
            "env",
            "trace-path",
            "interruptible",
            "abbrev",
            "verbose",
            "raw",
            "read",
            "write",
            "const-print-style",
            "detach-on",
            "argv0",
            "kvm",
        ],
        &[
            "follow-forks",
            "summary",
            "summary-only",
            "debug",
            "output-append-mode",
            "instruction-pointer",
            "syscall-number",
            "quiet",
            "relative-timestamps",
            "absolute-timestamps",
            "syscall-times",
            "no-abbrev",
            "strings-in-hex",
            "decode-fds",
            "decode-pids",
            "successful-only",
            "failed-only",
            "stack-trace",
            "seccomp-bpf",
            "daemonize",
            "output-separately",
            "summary-wall-clock",
            "always-show-pid",
            "tips",
        ],
    ),
    wrapper("ltrace", "aADeFlnopsuwx", "bcCfhiLrStTV").long(
        &[
            "align", "config", "demangle", "indent", "library", "output", "where",
        ],
        &["no-signals"],
    ),
    wrapper("busybox", "", ""),
    wrapper("toybox", "", ""),
    wrapper("watch", "nqs", "bcdegpqtwxrCf").joined().long(
        &["interval", "equexit", "shotsdir"],
        &[
            "beep",
            "color",
            "differences",
            "errexit",
            "chgexit",
            "precise",
            "no-title",
            "no-wrap",
            "exec",
            "no-color",
            "no-rerun",
            "follow",
        ],
    ),
    wrapper("caffeinate", "tw", "dimsu"),
    wrapper("chronic", "", "ev"),
    wrapper("chrt", "TPDp", "abfiormRv").skip(1).long(
        &["sched-runtime", "sched-period", "sched-deadline"],
        &[
            "all-tasks",
            "batch",
            "deadline",
            "fifo",
            "idle",
            "other",
            "rr",
            "reset-on-fork",
            "verbose",
            "max",
        ],
    ),
    wrapper("taskset", "", "ac")
        .skip(1)
        .long(&[], &["all-tasks", "cpu-list"]),
    wrapper("numactl", "imNCplL", "asb").long(
        &[
            "interleave",
            "membind",
            "cpunodebind",
            "physcpubind",
            "preferred",
            "localalloc",
        ],
        &["all", "balancing"],
    ),
    wrapper("setarch", "", "*")
        .skip(1)
        .long(&[], &["addr-no-randomize", "verbose"]),
    wrapper("linux32", "", "*"),
    wrapper("linux64", "", "*"),
    wrapper("prlimit", "po", "cdefilmnqrstuvxy").long(&["pid"], &[]),
    wrapper("setpriv", "", "").long(
        &[
            "ruid",
            "euid",
            "rgid",
            "egid",
            "reuid",
            "regid",
            "groups",
            "inh-caps",
            "ambient-caps",
            "bounding-set",
            "securebits",
            "pdeathsig",
            "selinux-label",
            "apparmor-profile",
            "landlock-access",
            "landlock-rule",
            "seccomp-filter",
            "ptracer",
        ],
        &[
            "clear-groups",
            "keep-groups",
            "init-groups",
            "nnp",
            "no-new-privs",
            "reset-env",
        ],
    ),
    wrapper("systemd-run", "uptEHMPdGqrSC", "*").long(
        &[
            "unit",
            "property",
            "description",
            "slice",
            "uid",
            "gid",
            "nice",
            "working-directory",
            "setenv",
            "service-type",
            "on-active",
            "on-boot",
            "on-startup",
            "on-unit-active",
            "on-unit-inactive",
            "on-calendar",
            "timer-property",
            "path-property",
            "socket-property",
            "host",
            "machine",
            "background",
        ],
        &[
            "user",
            "system",
            "scope",
            "no-block",
            "wait",
            "pty",
            "pipe",
            "same-dir",
            "shell",
            "quiet",
            "collect",
            "remain-after-exit",
            "send-sighup",
            "no-ask-password",
            "slice-inherit",
            "expand-environment",
        ],
    ),
    wrapper("systemd-inhibit", "", "").long(&["what", "who", "why", "mode"], &["list", "no-pager"]),
    wrapper("dbus-run-session", "", "").long(&["config-file", "dbus-daemon"], &[]),
    wrapper("fakeroot", "lsibf", "uhv").long(&["lib", "faked"], &["unknown-is-real"]),
    wrapper("unbuffer", "", "p"),
    wrapper("rlwrap", "bCDeFfghHlMmoPpqSstwz", "aAcEiINnrRuUvWX"),
    wrapper("catchsegv", "", ""),
    wrapper("valgrind", "", "qvh").long(
        &[
            "tool",
            "log-file",
            "suppressions",
            "leak-check",
            "error-exitcode",
        ],
        &["trace-children", "track-origins"],
    ),
    wrapper("xvfb-run", "efnpsw", "al").long(
        &[
            "error-file",
            "auth-file",
            "server-num",
            "xauth-protocol",
            "server-args",
            "wait",
        ],
        &["auto-servernum", "auto-display", "listen-tcp"],
    ),
    wrapper("firejail", "", "").long(
        &["profile", "name"],
        &["noprofile", "quiet", "private", "net"],
    ),
    wrapper("torsocks", "uaP", "id"),
    wrapper("proxychains", "f", "q"),
    wrapper("proxychains4", "f", "q"),
    wrapper("sshpass", "fdpP", "eV"),
    wrapper("entr", "", "acdnprsxz"),
    wrapper("direnv", "", "").skip(2),
    wrapper("aws-vault", "", "").skip(2),
    wrapper("cross-env", "", "").assignments(),
    wrapper("npx", "pcw", "yq").long(
        &["package", "call", "workspace"],
        &["yes", "no", "no-install", "quiet", "ignore-existing"],
    ),
    wrapper("bunx", "", "").long(&["package"], &["bun", "verbose", "silent", "no-install"]),
    wrapper("uvx", "p", "qv").long(
        &["from", "with", "python", "index", "index-url", "directory"],
        &[
            "isolated", "offline", "quiet", "verbose", "no-cache", "refresh",
        ],
    ),
];

/// The wrapper named `program`.
pub(crate) fn find(program: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|wrapper| wrapper.name == program)
}

impl Wrapper {
    /// The index of the first word of the command; the index of the option that isn't
    /// known, if one stands before it.
    pub(crate) fn command_at(&self, args: &[Arg]) -> Result<usize, usize> {
        let mut at = 1;
        let mut skip = self.skip;
        while let Some(arg) = args.get(at) {
            let Some(text) = arg.known() else {
                // An unknown word before the command may hide options, or the command.
                if skip > 0 && !arg.head().starts_with('-') {
                    skip -= 1;
                    at += 1;
                    continue;
                }
                if self.assignments && arg.head().contains('=') {
                    at += 1;
                    continue;
                }
                return if arg.head().starts_with('-') {
                    Err(at)
                } else {
                    Ok(at)
                };
            };
            if text == "--" {
                at += 1 + skip;
                while self.assignments && args.get(at).is_some_and(|arg| is_assignment(arg.head()))
                {
                    at += 1;
                }
                return Ok(at.min(args.len()));
            }
            if let Some(option) = text.strip_prefix("--") {
                at += self.long_option(option).ok_or(at)?;
            } else if text.starts_with('-') && (text.len() > 1 || self.short.1.contains('-')) {
                at += self.short_options(&text[1..]).ok_or(at)?;
            } else if self.assignments && is_assignment(text) {
                at += 1;
            } else if skip > 0 {
                skip -= 1;
                at += 1;
            } else {
                return Ok(at);
            }
        }
        Ok(args.len())
    }

    /// How many words a long option takes; `None` when it isn't known.
    fn long_option(&self, option: &str) -> Option<usize> {
        let (name, glued) = match option.split_once('=') {
            Some((name, _)) => (name, true),
            None => (option, false),
        };
        // GNU takes every unique beginning.
        let begins = |list: &[&str]| list.iter().any(|known| known.starts_with(name));
        let exact = |list: &[&str]| list.contains(&name);
        if exact(self.long.1) || glued {
            return Some(1);
        }
        match (begins(self.long.0), begins(self.long.1)) {
            (true, false) => Some(2),
            (false, true) => Some(1),
            (true, true) if exact(self.long.0) => Some(2),
            _ => self.short.1.contains('*').then_some(1),
        }
    }

    fn short_options(&self, letters: &str) -> Option<usize> {
        let (values, flags) = self.short;
        for (at, letter) in letters.char_indices() {
            if values.contains(letter) {
                let glued = at + letter.len_utf8() < letters.len();
                return Some(if glued { 1 } else { 2 });
            }
            if !flags.contains(letter) && !flags.contains('*') {
                return None;
            }
        }
        Some(1)
    }
}

pub(crate) fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}
