//! Programs that run a command once for each of their inputs.

use super::arg::{Arg, Shape};
use super::walk::{Around, Denied, Walk, deeper};

impl Walk<'_> {
    /// `-exec` and its like, each up to `;` or `+`.
    pub(super) fn find_exec(
        &mut self,
        text: &str,
        rest: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        let mut at = 0;
        while at < rest.len() {
            if matches!(
                rest[at].text.as_str(),
                "-exec" | "-execdir" | "-ok" | "-okdir"
            ) {
                let command: Vec<Arg> = rest[at + 1..]
                    .iter()
                    .take_while(|arg| !matches!(arg.text.as_str(), ";" | "+"))
                    .map(|arg| filled(arg, "{}"))
                    .collect();
                self.command(text, &command, deeper(around))?;
                at += command.len();
            }
            at += 1;
        }
        Ok(())
    }

    pub(super) fn fd_exec(
        &mut self,
        text: &str,
        rest: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        let start = rest
            .iter()
            .position(|arg| matches!(arg.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
        let Some(start) = start else { return Ok(()) };
        let command: Vec<Arg> = rest[start + 1..]
            .iter()
            .take_while(|arg| arg.text != ";")
            .map(|arg| filled(arg, "{"))
            .collect();
        self.command(text, &command, deeper(around))
    }

    /// The command behind xargs, with what it reads at its end or in its place.
    pub(super) fn xargs(
        &mut self,
        text: &str,
        args: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        const VALUES: &str = "adEILnPs";
        let (mut at, mut replaced) = (1, None);
        while let Some(word) = args.get(at).map(|arg| arg.text.as_str()) {
            if !word.starts_with('-') || word == "-" {
                break;
            }
            if word == "--" {
                at += 1;
                break;
            }
            let glued = |value: &str| (!value.is_empty()).then(|| value.to_owned());
            if let Some(option) = word.strip_prefix("--") {
                let (name, value) = option.split_once('=').unwrap_or((option, ""));
                match name {
                    "replace" => replaced = glued(value).or(Some("{}".to_owned())),
                    "arg-file" | "delimiter" | "max-args" | "max-procs" | "max-chars"
                    | "process-slot-var"
                        if value.is_empty() =>
                    {
                        at += 1;
                    }
                    _ => {}
                }
            } else if let Some(start) =
                word[1..].find(|letter| VALUES.contains(letter) || "ile".contains(letter))
            {
                let (letter, value) = word[1 + start..].split_at(1);
                match letter {
                    "I" => {
                        if value.is_empty() {
                            at += 1;
                        }
                        let named =
                            glued(value).or_else(|| args.get(at).map(|arg| arg.text.clone()));
                        replaced = named.filter(|named| !named.is_empty());
                    }
                    "i" => replaced = glued(value).or(Some("{}".to_owned())),
                    // These take their value glued or not at all.
                    "l" | "e" => {}
                    _ if value.is_empty() => at += 1,
                    _ => {}
                }
            }
            at += 1;
        }
        let Some(command) = args.get(at..).filter(|command| !command.is_empty()) else {
            return Ok(());
        };
        let command: Vec<Arg> = if let Some(replaced) = &replaced {
            command.iter().map(|arg| filled(arg, replaced)).collect()
        } else {
            let end = command.last().map_or(0..0, |arg| arg.range.clone());
            command
                .iter()
                .cloned()
                .chain([Arg::unknown(Shape::Operand, end)])
                .collect()
        };
        self.command(text, &command, deeper(around))
    }

    pub(super) fn parallel(
        &mut self,
        text: &str,
        rest: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        const VALUES: &[&str] = &[
            "-j",
            "--jobs",
            "-P",
            "--max-procs",
            "-a",
            "--arg-file",
            "-I",
            "-n",
            "--max-args",
            "-N",
            "-L",
            "-d",
            "--delimiter",
            "-C",
            "--colsep",
            "-S",
            "--sshlogin",
            "--joblog",
            "--results",
            "--timeout",
            "--retries",
            "--delay",
            "--halt",
            "--workdir",
            "--wd",
            "--tmpdir",
            "--load",
            "--memfree",
            "--nice",
            "--tagstring",
            "--block",
            "--env",
            "-s",
            "--max-chars",
            "-E",
            "-i",
        ];
        let mut at = 0;
        while let Some(word) = rest
            .get(at)
            .map(|arg| arg.text.as_str())
            .filter(|word| word.starts_with('-'))
        {
            at += if VALUES.contains(&word) { 2 } else { 1 };
        }
        let command: Vec<Arg> = rest
            .iter()
            .skip(at)
            .take_while(|arg| !arg.text.starts_with(":::"))
            .cloned()
            .collect();
        if command.is_empty() {
            let span = around
                .place
                .span(&rest.last().map_or(0..0, |arg| arg.range.clone()));
            self.unclear("what parallel runs is only known when it runs", span);
            return Ok(());
        }
        // Each input is quoted, so it is an argument and no text of shell.
        let known: Vec<Arg> = command
            .iter()
            .map(|arg| filled(arg, "{"))
            .chain([Arg::unknown(Shape::Operand, command[0].range.clone())])
            .collect();
        self.command(text, &known, deeper(around))?;
        self.joined(text, &command, around)
    }
}

/// The argument with the part that another program fills in not known.
fn filled(arg: &Arg, hole: &str) -> Arg {
    if !arg.text.contains(hole) {
        return arg.clone();
    }
    Arg {
        text: arg.text.replace("{}", "\u{fffd}").replace(hole, "\u{fffd}"),
        shape: arg.shape.max(if arg.text.starts_with(hole) {
            Shape::Operand
        } else {
            Shape::OneWord
        }),
        ..arg.clone()
    }
}
