//! Programs that run a command once for each of their inputs.

use super::arg::{Arg, Shape};
use super::stdin::Input;
use super::walk::{Around, Denied, Place, Walk, deeper};

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
        let start = rest.iter().enumerate().find_map(|(at, arg)| {
            let word = arg.text.as_str();
            let glued = ["--exec=", "--exec-batch="]
                .iter()
                .find_map(|option| word.strip_prefix(option));
            matches!(word, "-x" | "-X" | "--exec" | "--exec-batch")
                .then_some((at, None))
                .or(glued.map(|glued| (at, Some(Arg::exact(glued, arg.range.clone())))))
        });
        let Some((start, first)) = start else {
            return Ok(());
        };
        let command: Vec<Arg> = first
            .iter()
            .chain(&rest[start + 1..])
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
        // `J`, `R` and `S` are those of BSD.
        const VALUES: &str = "adEIJLnPRSs";
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
                    "I" | "J" => {
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
        args: &[Arg],
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
        let rest = &args[1..];
        let mut at = 0;
        let mut dashes = false;
        while let Some(word) = rest
            .get(at)
            .map(|arg| arg.text.as_str())
            .filter(|word| word.starts_with('-'))
        {
            dashes = word == "--";
            at += if VALUES.contains(&word) { 2 } else { 1 };
        }
        let command: Vec<Arg> = rest
            .iter()
            .skip(at)
            .take_while(|arg| !arg.text.starts_with(":::"))
            .cloned()
            .collect();
        let span = around.place.span(&args[0].range);
        // Without a command each input is one; the one of moreutils takes them behind `--`.
        if command.is_empty() || dashes {
            let inputs = rest.iter().skip(at + command.len());
            let inputs = inputs.filter(|arg| !arg.text.starts_with(":::"));
            let named: Vec<&Arg> = inputs.chain(command.iter().filter(|_| dashes)).collect();
            for input in &named {
                self.probe_text(&input.text, span, around.depth)?;
            }
            if command.is_empty() {
                let input = self.input(around);
                if let Input::Text(lines) = &input {
                    return self.text(lines, &Place::Within(span), around.depth + 1);
                }
                let files = rest.iter().any(|arg| arg.text.starts_with("::::"));
                if named.is_empty() || files || !named.iter().all(|input| input.is_exact()) {
                    self.unclear("what parallel runs is only known when it runs", span);
                }
                return Ok(());
            }
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
