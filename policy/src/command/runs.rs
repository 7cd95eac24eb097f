//! What a program runs in turn: shells, wrappers, and the odd ones.

use super::arg::{Arg, Shape};
use super::stdin::Input;
use super::tables;
use super::walk::{Around, Denied, Place, Walk, deeper};
use super::wrapper::{self, Runs, Wrapper};

/// Programs that take a text of shell with `-c`, or on their standard input.
pub(super) const SHELLS: &[&str] = &[
    "sh",
    "bash",
    "zsh",
    "dash",
    "ash",
    "ksh",
    "mksh",
    "oksh",
    "pdksh",
    "ksh93",
    "rbash",
    "yash",
    "posh",
    "fish",
    "csh",
    "tcsh",
    "elvish",
    "nu",
    "xonsh",
    "osh",
    "ysh",
    "lksh",
    "bosh",
    "hush",
    "sash",
    "rc",
    "es",
    "scsh",
    "ion",
    "brush",
    "murex",
    "pwsh",
    "powershell",
    "cmd",
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
        if args[0].text.contains('/') {
            self.run_written(&args[0], around)?;
        }
        let Some((program, known)) = tables::find(program) else {
            return Ok(());
        };
        if known.shell {
            return self.shell(text, program, args, around);
        }
        if known.options {
            self.option_texts(program, args, around)?;
        }
        if known.language {
            self.interpreter(program, args, around)?;
        }
        let rest = &args[1..];
        match program {
            "eval" => self.joined(text, without_dashes(rest), around),
            "trap" => match without_dashes(rest) {
                [action, _signal, ..] if action.text != "-" => self.one_text(text, action, around),
                _ => Ok(()),
            },
            "alias" => self.aliased(text, rest, around),
            "source" | "." => match rest.first() {
                Some(file) if file.process => {
                    self.unclear(
                        "what a shell reads is only known when it runs",
                        around.place.span(&file.range),
                    );
                    Ok(())
                }
                Some(file) if reads_stdin(file) => self.fed_or_open(text, around, file),
                Some(file) => self.run_written(file, around),
                None => Ok(()),
            },
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                self.assigning(text, rest, around)?;
                self.subscripts(rest, around)
            }
            "let" | "test" | "[" | "[[" | "unset" | "read" => self.subscripts(rest, around),
            "printf" => match rest {
                [option, name, ..] if option.text == "-v" => {
                    self.subscripts(std::slice::from_ref(name), around)
                }
                _ => Ok(()),
            },
            "compgen" | "complete" => {
                for arg in rest {
                    let span = around.place.span(&arg.range);
                    self.expansions(&arg.text, span, around.depth)?;
                }
                Ok(())
            }
            "jobs" => match rest {
                [option, command @ ..] if option.text == "-x" => {
                    self.command(text, command, deeper(around))
                }
                _ => Ok(()),
            },
            // `hash -p /usr/bin/git g` makes `g` run git.
            "hash" => {
                if let [option, path, name] = rest
                    && option.text == "-p"
                {
                    self.note_alias(&name.text, &path.text);
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
            "env" => {
                self.assigning(text, rest, around)?;
                self.env(text, args, around)
            }
            "find" => self.find_exec(text, rest, around),
            "fd" => self.fd_exec(text, rest, around),
            "xargs" => self.xargs(text, args, around),
            "parallel" => self.parallel(text, args, around),
            "su" | "runuser" | "script" | "flock" | "sg" => {
                self.dash_c(text, program, args, around)?;
                self.launched(text, program, known, args, around)
            }
            "git" => self.git(text, rest, around),
            "ssh" | "autossh" if self.judge.follows_ssh() => self.remote(text, args, around),
            "at" => {
                if args
                    .windows(2)
                    .any(|pair| pair[0].text == "-f" && pair[1].process)
                {
                    self.unclear(
                        "what is to run at another time is only known when it runs",
                        around.place.span(&args[0].range),
                    );
                }
                self.fed(text, around, &args[0])
            }
            "crontab" | "incrontab" => self.crontab(program, args, around),
            "make" => self.make(args, around),
            "ed" | "vim" => match self.input(around) {
                Input::Text(lines) => {
                    let span = around.place.span(&args[0].range);
                    self.escapes(&lines, span, around.depth)
                }
                Input::Unknown | Input::Other => Ok(()),
            },
            "uv" | "poetry" | "pipenv" | "hatch" | "pdm" | "rye" | "bundle" | "mise" | "asdf"
            | "pixi" | "conda" | "mamba" | "micromamba" | "devbox" | "pnpm" | "yarn" | "npm"
            | "op" | "doppler" | "rbenv" | "pyenv" | "nodenv" | "jenv" | "goenv" | "plenv"
            | "volta" | "fnm" | "opam" | "stack" | "cabal" | "dune" | "composer" | "bun" => {
                self.tool_run(text, program, rest, around)
            }
            _ => match known.wrapper {
                None => {
                    self.docker_build(program, args, around)?;
                    self.launched(text, program, known, args, around)
                }
                Some(wrapper) => self.wrapped(text, wrapper, args, around),
            },
        }
    }

    /// The command behind a wrapper's options.
    fn wrapped(
        &mut self,
        text: &str,
        wrapper: &Wrapper,
        args: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        let at = match wrapper.command_at(args) {
            Ok(at) => at,
            Err(at) => {
                let option = &args[at];
                self.unclear(
                    format!(
                        "what `{}` runs behind `{}` can't be told",
                        wrapper.name, option.text
                    ),
                    around.place.span(&option.range),
                );
                return Ok(());
            }
        };
        self.assigning(text, args.get(1..at).unwrap_or_default(), around)?;
        let rest = &args[at..];
        match wrapper.runs {
            Runs::Words => self.command(text, rest, deeper(around))?,
            Runs::Joined => self.joined(text, rest, around)?,
        }
        // `setarch ARCHITECTURE COMMAND`, where the first may be left out.
        if wrapper.name == "setarch" && rest.len() > 1 {
            return self.command(text, &rest[1..], deeper(around));
        }
        // `sudo -s 'a b'` is a text for a shell.
        if let [only] = rest
            && only.text.contains(' ')
            && matches!(wrapper.name, "sudo" | "doas")
        {
            return self.one_text(text, only, around);
        }
        Ok(())
    }

    /// `alias NAME=VALUE`, and `alias NAME WORDS` as csh has it.
    fn aliased(&mut self, text: &str, rest: &[Arg], around: Around<'_>) -> Result<(), Denied> {
        if let [option, ..] = rest
            && matches!(option.text.as_str(), "-g" | "-s")
        {
            // zsh: it stands for something anywhere in a command.
            self.unclear(
                "what an alias of zsh does to other words can't be told",
                around.place.span(&option.range),
            );
        }
        if let [name, words @ ..] = rest
            && !name.text.contains('=')
            && !name.text.starts_with('-')
            && !words.is_empty()
            && words.iter().all(|word| !word.text.contains('='))
        {
            return self.probe(|walk| walk.joined(text, words, around));
        }
        for arg in rest {
            if let Some((_, value)) = arg.known().and_then(|arg| arg.split_once('=')) {
                let place = self.inner_place(text, *around.place, &arg.range, value);
                self.text(value, &place, around.depth + 1)?;
            }
        }
        Ok(())
    }

    /// A shell that is told to read its standard input as a file.
    fn fed_or_open(&mut self, text: &str, around: Around<'_>, file: &Arg) -> Result<(), Denied> {
        let own = matches!(
            file.text.as_str(),
            "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" | "-"
        );
        if own {
            return self.fed(text, around, file);
        }
        self.unclear(
            "what a shell reads is only known when it runs",
            around.place.span(&file.range),
        );
        Ok(())
    }

    /// A shell: its `-c` text, its script, or what it is fed.
    fn shell(
        &mut self,
        text: &str,
        program: &str,
        args: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        if matches!(program, "pwsh" | "powershell" | "cmd") {
            return self.windows_shell(text, args, around);
        }
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
            // What has blanks is the text, and no option.
            if runs_text && word.contains([' ', '\n', '\t']) {
                break;
            }
            match word {
                "--" => {
                    at += 1;
                    break;
                }
                "-" => stdin = true,
                "--command" => runs_text = true,
                "--rcfile" | "--init-file" => {
                    at += 1;
                    if let Some(file) = args.get(at).filter(|file| file.process) {
                        self.unclear(
                            "what a shell reads is only known when it runs",
                            around.place.span(&file.range),
                        );
                    }
                }
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
                    // `-n` only checks the syntax.
                    if word.starts_with('-') && letters.contains('n') && !letters.contains('o') {
                        return Ok(());
                    }
                    runs_text |= word.starts_with('-') && letters.contains('c');
                    stdin |= word.starts_with('-') && letters.contains('s');
                    at += letters.matches(['o', 'O']).count();
                    // fish 4: `-C` takes a text that runs first.
                    if letters == "C" && program == "fish" {
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
            Some(script) if !stdin && !reads_stdin(script) => self.run_written(script, around),
            Some(script) if !stdin && !runs_text => self.fed_or_open(text, around, script),
            _ if runs_text => Ok(()),
            _ => self.fed(text, around, &args[0]),
        }
    }

    /// `pwsh -Command …`, `cmd /c …`.
    fn windows_shell(
        &mut self,
        text: &str,
        args: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        for (at, arg) in args.iter().enumerate().skip(1) {
            let option = arg.text.to_ascii_lowercase();
            let behind = &args[at + 1..];
            match option.as_str() {
                "/c" | "/k" | "/r" => return self.joined(text, behind, around),
                "-ec" | "-e" | "-enc" | "-encodedcommand" => {
                    self.unclear(
                        "the text that a shell runs is encoded",
                        around.place.span(&arg.range),
                    );
                    return Ok(());
                }
                _ if option.len() > 1 && "-command".starts_with(&option) => {
                    return self.joined(text, behind, around);
                }
                _ => {}
            }
        }
        if args.len() == 1 {
            return self.fed(text, around, &args[0]);
        }
        Ok(())
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
            let behind: Vec<&str> = args
                .iter()
                .skip(from)
                .map(|arg| arg.text.as_str())
                .collect();
            let open = args
                .get(from.saturating_sub(1)..)
                .unwrap_or_default()
                .iter()
                .any(|arg| !arg.is_exact());
            let span = around.place.span(&args[at].range);
            if open {
                self.unclear(
                    "what `env` splits into words is only known when it runs",
                    span,
                );
            }
            // Its own quotes and escapes are nearly those of a shell; `\_` is a blank.
            let line = format!("env {} {}", value.replace("\\_", " "), behind.join(" "));
            return self.text(&line, &Place::Within(span), around.depth + 1);
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

    /// `su`, `runuser`, `sg`, `script` and `flock`: a text behind `-c`, or words.
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
            if word == "--command" || word == "--session-command" {
                return Some((at, None));
            }
            let letters = word
                .strip_prefix('-')
                .filter(|letters| !letters.starts_with('-'))?;
            let start = letters.find('c')?;
            // What stands before may take the rest as its value: `-uc`.
            if letters[..start].contains(['u', 'g', 'G', 's', 'w', 'E', 'o']) {
                return None;
            }
            let glued = &letters[start + 1..];
            Some((at, (!glued.is_empty()).then(|| glued.to_owned())))
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
            "runuser" => args.iter().enumerate().skip(1).find_map(|(at, arg)| {
                let word = arg.text.as_str();
                let glued = word.starts_with("--user=") || word.starts_with("-u") && word.len() > 2;
                matches!(word, "-u" | "--user")
                    .then_some(at + 2)
                    .or(glued.then_some(at + 1))
            }),
            // `sg GROUP 'TEXT'`.
            "sg" if command.is_none() => {
                if let Some(only) = args.get(2) {
                    self.one_text(text, only, around)?;
                }
                None
            }
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
            // `su USER -- -c TEXT` hands its later words to a shell.
            if let Some(dashes) = args.iter().position(|arg| arg.text == "--")
                && program == "su"
            {
                let mut shell = vec![Arg::exact("sh", args[0].range.clone())];
                shell.extend_from_slice(&args[dashes + 1..]);
                return self.shell(text, "sh", &shell, around);
            }
            if command.is_none() && matches!(program, "su" | "runuser") {
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

/// Whether a name stands for something that is already open.
fn reads_stdin(arg: &Arg) -> bool {
    let text = arg.text.as_str();
    matches!(text, "/dev/stdin" | "-")
        || text.starts_with("/dev/fd/")
        || text.starts_with("/proc/self/fd/")
}

fn without_dashes(args: &[Arg]) -> &[Arg] {
    match args.split_first() {
        Some((first, rest)) if first.text == "--" => rest,
        _ => args,
    }
}
