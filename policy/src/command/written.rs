//! Files that the text itself writes, and may run later.

use super::arg::{Arg, HOLE};
use super::script::Simple;
use super::stdin::Input;
use super::walk::{Around, Denied, Place, Walk};

/// What a file holds, as far as the text says it; what isn't known is [`UNKNOWN`].
pub(super) type File = String;

/// A line that stands for what isn't known: to run it is unclear.
const UNKNOWN: &str = "$_\n";

/// Files that a shell or git runs by itself.
const RUN_BY_THEMSELVES: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".envrc",
];

impl Walk<'_> {
    /// What the text wrote to `name`: nothing at all, what isn't known, or this.
    pub(super) fn written(&self, name: &str) -> Input {
        match self.files.get(plain(name)) {
            None => Input::Other,
            Some(content) if content == UNKNOWN => Input::Unknown,
            Some(content) => Input::Text(content.clone()),
        }
    }

    /// Note what a command writes to files.
    pub(super) fn note_written(
        &mut self,
        command: &Simple,
        args: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        if self.exhausted {
            return Ok(());
        }
        let program = args.first().and_then(Arg::program).unwrap_or_default();
        let mut names: Vec<String> = command
            .outputs
            .iter()
            .filter_map(|word| {
                let mut name = Vec::new();
                around.variables.resolve(word, &mut name);
                name.first().map(|arg| arg.text.clone())
            })
            .collect();
        if program == "tee" {
            let operands = args[1..].iter().filter(|arg| !arg.text.starts_with('-'));
            names.extend(operands.map(|arg| arg.text.clone()));
        }
        if names.is_empty() {
            return Ok(());
        }
        let content = self.output(program, args, around);
        let span = around.place.span(&command.range);
        for name in names {
            if !self.spend(content.len() / 8) {
                return Ok(());
            }
            let by_itself = name.contains(".git/hooks/")
                || name.contains(".husky/")
                || RUN_BY_THEMSELVES.iter().any(|known| name.ends_with(known));
            if by_itself {
                self.probe_text(&content, span, around.depth)?;
            }
            self.files
                .entry(plain(&name).to_owned())
                .or_default()
                .push_str(&content);
        }
        Ok(())
    }

    /// What a command prints.
    fn output(&mut self, program: &str, args: &[Arg], around: Around<'_>) -> String {
        let rest = args.get(1..).unwrap_or_default();
        let words = || {
            rest.iter()
                .filter(|arg| {
                    !matches!(arg.text.as_str(), "-n" | "-e" | "-E" | "-en" | "-ne" | "--")
                })
                .map(|arg| arg.text.as_str())
        };
        let text = match program {
            "" => String::new(),
            "echo" => words().collect::<Vec<_>>().join(" ").replace("\\n", "\n"),
            "printf" => words()
                .map(|word| word.replace("\\n", "\n").replace("%s", ""))
                .collect::<Vec<_>>()
                .join("\n"),
            "cat" | "tee" => {
                let operand = rest.iter().find(|arg| !arg.text.starts_with('-'));
                let read = match operand.filter(|_| program == "cat") {
                    Some(file) => self.written(&file.text),
                    None => self.input(around),
                };
                match read {
                    Input::Text(text) => text,
                    Input::Unknown | Input::Other => UNKNOWN.to_owned(),
                }
            }
            _ => return UNKNOWN.to_owned(),
        };
        let mut text = text.replace(HOLE, "\"$_\"");
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text
    }

    /// Run a file that the text wrote, as a script.
    pub(super) fn run_written(&mut self, file: &Arg, around: Around<'_>) -> Result<(), Denied> {
        let Some(content) = file.known().and_then(|name| self.files.get(plain(name))) else {
            return Ok(());
        };
        let name = plain(&file.text).to_owned();
        if self.open_files.contains(&name) {
            return Ok(());
        }
        let content = content.clone();
        let span = around.place.span(&file.range);
        let interpreter = content
            .strip_prefix("#!")
            .and_then(|rest| rest.lines().next())
            .filter(|line| !line.contains("sh"))
            .and_then(|line| line.split([' ', '/']).rfind(|word| !word.is_empty()))
            .map(|word| {
                super::tables::find(word)
                    .map_or(word, |(name, _)| name)
                    .to_owned()
            });
        self.open_files.push(name);
        let done = match interpreter {
            Some(language) => self.program_text(&language, &content, span, around.depth),
            None => self.text(&content, &Place::Within(span), around.depth + 1),
        };
        self.open_files.pop();
        done
    }
}

fn plain(name: &str) -> &str {
    let mut name = name;
    while let Some(rest) = name.strip_prefix("./") {
        name = rest.trim_start_matches('/');
    }
    name
}
