//! What a program runs in turn: shells, wrappers, and the odd ones.

use super::arg::{Arg, Shape};
use super::script::Feed;
use super::walk::{Around, Denied, Place, Walk, deeper};
use super::wrapper::{self, Runs};

/// Programs that take a text of shell with `-c`, or on their standard input.
const SHELLS: &[&str] = &[
    "sh", "bash", "zsh", "dash", "ash", "ksh", "mksh", "oksh", "pdksh", "ksh93", "rbash", "yash",
    "posh", "fish", "csh", "tcsh", "elvish", "nu", "xonsh",
];

impl Walk<'_> {
    /// What `program` with `args` runs in turn.
    pub(crate) fn runs(
        &mut self,
        text: &str,
        program: &str,
        args: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        if SHELLS.contains(&program) {
            return self.shell(text, args, around);
        }
        let rest = &args[1..];
        match program {
            "eval" => self.joined(text, without_dashes(rest), around),
            "trap" => match without_dashes(rest) {
                [action, _signal, ..] if action.text != "-" => self.one_text(text, action, around),
                _ => Ok(()),
            },
            "alias" => {
                for arg in rest {
                    if let Some((_, value)) = arg.known().and_then(|arg| arg.split_once('=')) {
                        let place = self.inner_place(text, *around.place, &arg.range, value);
                        self.text(value, &place, around.depth + 1)?;
                    }
                }
                Ok(())
            }
            "source" | "." => {
                if let Some(file) = rest.first()
                    && (file.process || reads_stdin(file))
                {
                    self.unclear(
                        "what a shell reads is only known when it runs",
                        around.place.span(&file.range),
                    );
                }
                Ok(())
            }
            // `command -v NAME` only looks the name up.
            "command"
                if rest
                    .iter()
                    .take_while(|arg| arg.text.starts_with('-'))
                    .any(|arg| arg.text.contains(['v', 'V'])) =>
            {
                Ok(())
            }
            "env" => self.env(text, args, around),
            "find" => self.find_exec(text, rest, around),
            "fd" | "fdfind" => self.fd_exec(text, rest, around),
            "xargs" => self.xargs(text, args, around),
            "parallel" => self.parallel(text, rest, around),
            "su" | "runuser" | "script" | "flock" | "dash-c" => {
                self.dash_c(text, program, args, around)
            }
            "git" => self.git(text, rest, around),
            "ssh" | "autossh" if self.judge.follows_ssh() => self.remote(text, args, around),
            "at" | "batch" => {
                if !matches!(around.feed, Feed::Inherited | Feed::File) {
                    return self.fed(text, around, &args[0]);
                }
                Ok(())
            }
            "uv" | "poetry" | "pipenv" | "hatch" | "pdm" | "rye" | "bundle" | "mise" | "asdf"
            | "pixi" | "nix" | "conda" | "mamba" | "micromamba" | "devbox" | "rustup" | "pnpm"
            | "yarn" | "npm" | "op" | "doppler" => self.tool_run(text, program, rest, around),
            _ => match wrapper::find(program) {
                None => Ok(()),
                Some(wrapper) => match wrapper.command_at(args) {
                    Err(at) => {
                        let option = &args[at];
                        self.unclear(
                            format!(
                                "what `{program}` runs behind `{}` can't be told",
                                option.text
                            ),
                            around.place.span(&option.range),
                        );
                        Ok(())
                    }
                    Ok(at) => match wrapper.runs {
                        Runs::Words => self.command(text, &args[at..], deeper(around)),
                        Runs::Joined => self.joined(text, &args[at..], around),
                    },
                },
            },
        }
    }

    /// A shell: its `-c` text, its script, or what it is fed.
    fn shell(&mut self, text: &str, args: &[Arg], around: Around<'_>) -> Result<(), Denied> {
        let (mut runs_text, mut stdin) = (false, false);
        let mut at = 1;
        while let Some(arg) = args.get(at) {
            let Some(word) = arg.known() else {
                if arg.shape == Shape::Operand
                    || !(arg.head().is_empty() || arg.head().starts_with(['-', '+']))
                {
                    break;
                }
                self.unclear(
                    "how the shell is called is only known when it runs",
                    around.place.span(&arg.range),
                );
                return Ok(());
            };
            match word {
                "--" => {
                    at += 1;
                    break;
                }
                "-" => stdin = true,
                "--command" => runs_text = true,
                "--rcfile" | "--init-file" => at += 1,
                "--init-command" => {
                    if let Some(init) = args.get(at + 1) {
                        self.one_text(text, init, around)?;
                    }
                    at += 1;
                }
                _ if word.starts_with("--command=") || word.starts_with("--init-command=") => {
                    let value = word.split_once('=').map_or("", |(_, value)| value);
                    let place = self.inner_place(text, *around.place, &arg.range, value);
                    self.text(value, &place, around.depth + 1)?;
                }
                _ if word.starts_with("--") => {}
                _ if word.starts_with(['-', '+']) => {
                    let letters = &word[1..];
                    runs_text |= word.starts_with('-') && letters.contains('c');
                    stdin |= word.starts_with('-') && letters.contains('s');
                    at += letters.matches(['o', 'O']).count();
                    // fish 4: `-C` takes a text that runs first.
                    if letters == "C" && args[0].program() == Some("fish") {
                        if let Some(init) = args.get(at + 1) {
                            self.one_text(text, init, around)?;
                        }
                        at += 1;
                    }
                }
                _ => break,
            }
            at += 1;
        }
        match args.get(at) {
            Some(script) if runs_text => self.one_text(text, script, around),
            Some(script) if !stdin && script.process => {
                self.unclear(
                    "what a shell reads is only known when it runs",
                    around.place.span(&script.range),
                );
                Ok(())
            }
            // A script is a program as any other.
            Some(script) if !stdin && !reads_stdin(script) => Ok(()),
            _ if runs_text => Ok(()),
            _ => self.fed(text, around, &args[0]),
        }
    }

    /// What stands on the standard input of a program that runs it.
    pub(super) fn fed(
        &mut self,
        text: &str,
        around: Around<'_>,
        program: &Arg,
    ) -> Result<(), Denied> {
        match around.feed {
            Feed::Inherited | Feed::File => Ok(()),
            Feed::Unknown => {
                self.unclear(
                    "what a shell reads is only known when it runs",
                    around.place.span(&program.range),
                );
                Ok(())
            }
            Feed::Text(word) => {
                let mut args = Vec::new();
                around.variables.resolve(word, &mut args);
                self.joined(text, &args, around)
            }
        }
    }

    fn env(&mut self, text: &str, args: &[Arg], around: Around<'_>) -> Result<(), Denied> {
        // `env -S 'a b'` splits its argument into words, which stand before the others.
        let split = args.iter().enumerate().skip(1).find_map(|(at, arg)| {
            let word = arg.text.as_str();
            if let Some(value) = word.strip_prefix("--split-string=") {
                return Some((at, Some(value.to_owned())));
            }
            if word == "--split-string" {
                return Some((at, None));
            }
            let letters = word
                .strip_prefix('-')
                .filter(|letters| !letters.starts_with('-'))?;
            let start = letters.find('S')?;
            if letters[..start].contains(['u', 'C', 'a']) {
                return None;
            }
            let glued = &letters[start + 1..];
            Some((at, (!glued.is_empty()).then(|| glued.to_owned())))
        });
        let plain = wrapper::find("env").map_or(Ok(1), |env| env.command_at(args));
        if let Some((at, glued)) = split
            && plain.is_ok_and(|command| at < command)
        {
            let from = if glued.is_some() { at + 1 } else { at + 2 };
            let value = glued
                .or_else(|| args.get(at + 1).map(|arg| arg.text.clone()))
                .unwrap_or_default();
            let mut words: Vec<Arg> = vec![args[0].clone()];
            words.extend(
                value
                    .split_whitespace()
                    .map(|word| Arg::exact(word.trim_matches(['\'', '"']), args[at].range.clone())),
            );
            words.extend(args.iter().skip(from).cloned());
            return self
                .env(text, &words, deeper(around))
                .and_then(|()| self.joined(text, &words[1..], around));
        }
        match plain {
            Ok(command) => self.command(text, &args[command..], deeper(around)),
            Err(at) => {
                self.unclear(
                    format!("what `env` runs behind `{}` can't be told", args[at].text),
                    around.place.span(&args[at].range),
                );
                Ok(())
            }
        }
    }

    /// `su`, `runuser`, `script` and `flock`: a text behind `-c`, or words.
    fn dash_c(
        &mut self,
        text: &str,
        program: &str,
        args: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        let command = args.iter().enumerate().skip(1).find_map(|(at, arg)| {
            let word = arg.text.as_str();
            if let Some(value) = word
                .strip_prefix("--command=")
                .or_else(|| word.strip_prefix("--session-command="))
            {
                return Some((at, Some(value.to_owned())));
            }
            let short = word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
            (short || word == "--command" || word == "--session-command").then_some((at, None))
        });
        if let Some((at, glued)) = &command {
            let at = *at;
            match (glued, args.get(at + 1)) {
                (Some(value), _) => self.text(
                    value,
                    &Place::Within(around.place.span(&args[at].range)),
                    around.depth + 1,
                )?,
                (None, Some(arg)) => self.one_text(text, arg, around)?,
                (None, None) => {}
            }
        }
        let rest = match program {
            // `runuser -u USER COMMAND…`, `flock FILE COMMAND…`.
            "runuser" => args
                .iter()
                .position(|arg| matches!(arg.text.as_str(), "-u" | "--user"))
                .map(|at| at + 2),
            "flock" => {
                let mut at = 1;
                while let Some(word) = args
                    .get(at)
                    .map(|arg| arg.text.as_str())
                    .filter(|word| word.starts_with('-'))
                {
                    at += if matches!(
                        word,
                        "-w" | "-E" | "--timeout" | "--wait" | "--conflict-exit-code"
                    ) {
                        2
                    } else {
                        1
                    };
                }
                Some(at + 1)
            }
            _ => None,
        };
        let Some(mut rest) = rest.and_then(|at| args.get(at..)) else {
            if command.is_none()
                && program != "script"
                && !matches!(around.feed, Feed::Inherited | Feed::File)
            {
                return self.fed(text, around, &args[0]);
            }
            return Ok(());
        };
        while rest.first().is_some_and(|arg| arg.text == "--") {
            rest = &rest[1..];
        }
        self.command(text, rest, deeper(around))
    }
}

fn reads_stdin(arg: &Arg) -> bool {
    matches!(
        arg.text.as_str(),
        "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" | "-"
    )
}

fn without_dashes(args: &[Arg]) -> &[Arg] {
    match args.split_first() {
        Some((first, rest)) if first.text == "--" => rest,
        _ => args,
    }
}
