//! Options and operands whose value another program runs: one table.

use super::arg::Arg;
use super::program;
use super::walk::{Around, Denied, Walk};

/// What stands in a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// A text of shell.
    Shell,
    /// Words of an editor or debugger, in which a line may start a shell.
    Escape,
    /// A text of shell behind this.
    Behind(&'static str),
    /// A script of sed.
    Sed,
}

/// Programs, the options (a long one without its dashes), what their values hold. An empty
/// option stands for every operand. (GNU tar 1.35, rsync 3.4, zip 3.0, man-db 2.13, vim 9,
/// sed 4.9, OpenSSH 10, npm 11, socat 1.8, nmap 7.95.)
const TABLE: &[(&str, &[&str], Holds)] = &[
    (
        "tar",
        &[
            "I",
            "F",
            "use-compress-program",
            "to-command",
            "info-script",
            "new-volume-script",
            "rsh-command",
            "rmt-command",
        ],
        Holds::Shell,
    ),
    ("tar", &["checkpoint-action"], Holds::Behind("exec=")),
    ("rsync", &["e", "rsh", "rsync-path"], Holds::Shell),
    ("scp", &["S"], Holds::Shell),
    ("scp", &["o"], Holds::Behind("ProxyCommand=")),
    ("sftp", &["S"], Holds::Shell),
    ("sftp", &["o"], Holds::Behind("ProxyCommand=")),
    ("zip", &["TT", "unzip-command"], Holds::Shell),
    ("man", &["P", "pager", "H", "html"], Holds::Shell),
    ("split", &["filter"], Holds::Shell),
    ("sort", &["compress-program"], Holds::Shell),
    ("npm", &["c", "call"], Holds::Shell),
    ("npx", &["c", "call"], Holds::Shell),
    ("nix-shell", &["run", "command"], Holds::Shell),
    ("doppler", &["command"], Holds::Shell),
    ("nodemon", &["x", "exec"], Holds::Shell),
    ("fzf", &["preview"], Holds::Shell),
    ("fzf", &["bind"], Holds::Behind("(")),
    ("nc", &["c", "e"], Holds::Shell),
    ("ncat", &["c", "e", "exec", "sh-exec"], Holds::Shell),
    ("tcpdump", &["z"], Holds::Shell),
    ("wget", &["use-askpass"], Holds::Shell),
    ("gcloud", &["command"], Holds::Shell),
    ("vagrant", &["c", "command"], Holds::Shell),
    ("fly", &["C", "command"], Holds::Shell),
    ("flyctl", &["C", "command"], Holds::Shell),
    ("capsh", &["c"], Holds::Shell),
    ("su", &["c", "command"], Holds::Shell),
    ("entr", &["s"], Holds::Shell),
    ("mapfile", &["C"], Holds::Shell),
    ("readarray", &["C"], Holds::Shell),
    ("compgen", &["C"], Holds::Shell),
    ("complete", &["C"], Holds::Shell),
    ("fc", &["e"], Holds::Shell),
    ("bind", &["x"], Holds::Behind(":")),
    ("socat", &[""], Holds::Behind("EXEC:")),
    ("socat", &[""], Holds::Behind("SYSTEM:")),
    ("socat", &[""], Holds::Behind("SHELL:")),
    ("pee", &[""], Holds::Shell),
    ("mispipe", &[""], Holds::Shell),
    ("vim", &["c", "cmd", ""], Holds::Escape),
    ("ed", &[], Holds::Escape),
    ("less", &[""], Holds::Escape),
    (
        "gdb",
        &["ex", "eval-command", "iex", "init-eval-command"],
        Holds::Escape,
    ),
    ("lldb", &["o", "one-line"], Holds::Escape),
    ("sqlite3", &["", "cmd"], Holds::Escape),
    ("psql", &["c", "command"], Holds::Escape),
    ("mysql", &["e", "execute"], Holds::Escape),
    ("mariadb", &["e", "execute"], Holds::Escape),
    ("dc", &["e", "expression"], Holds::Escape),
    ("sed", &["e", "expression", ""], Holds::Sed),
];

/// Every program of the table.
pub(super) fn programs() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(program, _, _)| *program)
}

impl Walk<'_> {
    /// Values of options that `program` runs.
    pub(super) fn option_texts(
        &mut self,
        program: &str,
        args: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        for (_, options, holds) in TABLE.iter().filter(|(known, _, _)| *known == program) {
            for (at, arg) in args.iter().enumerate().skip(1) {
                for option in *options {
                    let Some(value) = value_of(option, arg, args.get(at + 1)) else {
                        continue;
                    };
                    let span = around.place.span(&arg.range);
                    if !self.spend(value.len() / 8) {
                        return Ok(());
                    }
                    match holds {
                        Holds::Shell => self.probe_text(value, span, around.depth)?,
                        Holds::Behind(start) => {
                            if let Some(text) = behind(value, start) {
                                self.probe_text(text.trim_end_matches(')'), span, around.depth)?;
                            }
                        }
                        Holds::Escape => self.escapes(value, span, around.depth)?,
                        Holds::Sed => {
                            for text in program::sed_commands(value) {
                                self.probe_text(text, span, around.depth)?;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Lines with which an editor or debugger starts a shell: `!…`, `shell …`.
    pub(super) fn escapes(
        &mut self,
        text: &str,
        span: crate::Span,
        depth: usize,
    ) -> Result<(), Denied> {
        const LEADERS: [&str; 8] = [
            "!",
            "shell ",
            "system ",
            ".shell ",
            ".system ",
            "\\!",
            "r!",
            "platform shell ",
        ];
        for line in text.split(['\n', '|']) {
            let mut line = line.trim_start_matches(['+', ':', ' ', '\t', '%', '"', '\'']);
            for silent in ["silent! ", "silent ", "sil! ", "exe "] {
                line = line.strip_prefix(silent).unwrap_or(line);
            }
            let line = line.trim_start_matches([':', '"', '\'']);
            if let Some(start) = LEADERS.iter().find(|start| line.starts_with(*start)) {
                self.probe_text(line[start.len()..].trim_start_matches('!'), span, depth)?;
            }
        }
        self.program_text("", text, span, depth)
    }
}

/// The value that `option` has here: glued, behind `=`, or the next word.
fn value_of<'a>(option: &str, arg: &'a Arg, next: Option<&'a Arg>) -> Option<&'a str> {
    let text = arg.text.as_str();
    if option.is_empty() {
        return (!text.starts_with('-')).then_some(text);
    }
    let bare = text.strip_prefix('-')?;
    // gdb and zip spell long options with one dash.
    let long = bare.strip_prefix('-').unwrap_or(bare);
    if long == option {
        return next.map(|next| next.text.as_str());
    }
    if let Some(rest) = long.strip_prefix(option)
        && option.len() > 1
    {
        return rest.strip_prefix('=');
    }
    if option.len() == 1 && !bare.starts_with('-') {
        let at = bare.find(option)?;
        let glued = &bare[at + 1..];
        return if glued.is_empty() {
            next.map(|next| next.text.as_str())
        } else {
            Some(glued)
        };
    }
    None
}

/// What stands behind `start`, in any case; `exec=` and `ProxyCommand ` with a blank too.
fn behind<'a>(value: &'a str, start: &str) -> Option<&'a str> {
    let lower = value.to_ascii_lowercase();
    let start = start.to_ascii_lowercase();
    let spaced = start.replace('=', " ");
    let at = [start.as_str(), spaced.as_str()]
        .iter()
        .find_map(|start| lower.find(start).map(|at| at + start.len()))?;
    value.get(at..)
}
