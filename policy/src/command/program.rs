//! Programs in other languages on the command line: the shells that they start, as far as
//! their text says it plainly.

use super::arg::Arg;
use super::stdin::Input;
use super::walk::{Around, Denied, Place, Walk};
use crate::Span;

/// Interpreters, and the options with which they take a program: short ones by letter.
pub(super) const INTERPRETERS: &[(&str, &str, &[&str])] = &[
    ("python", "c", &[]),
    ("pypy", "c", &[]),
    ("perl", "eE", &[]),
    ("ruby", "e", &[]),
    ("rake", "e", &["execute"]),
    ("node", "ep", &["eval", "print"]),
    ("bun", "ep", &["eval", "print"]),
    ("deno", "", &["eval"]),
    ("php", "rBRE", &["run"]),
    ("lua", "e", &[]),
    ("luajit", "e", &[]),
    ("Rscript", "e", &[]),
    ("R", "e", &[]),
    ("julia", "eE", &["eval", "print"]),
    ("elixir", "e", &["eval"]),
    ("erl", "", &["eval"]),
    ("guile", "c", &[]),
    ("racket", "e", &["eval"]),
    ("emacs", "", &["eval", "execute"]),
    ("emacsclient", "e", &["eval"]),
    ("osascript", "e", &[]),
    ("tclsh", "", &[]),
    ("expect", "c", &[]),
    ("awk", "e", &["source"]),
    ("m4", "", &[]),
    ("groovy", "e", &[]),
    ("swipl", "g", &[]),
    ("ghc", "e", &[]),
];

/// Words behind which the first texts are a command, in any of these languages.
const RUNNERS: &[&str] = &[
    "system",
    "popen",
    "popen2",
    "popen3",
    "exec",
    "execl",
    "execle",
    "execlp",
    "execv",
    "execve",
    "execvp",
    "execvpe",
    "execSync",
    "execFile",
    "execFileSync",
    "spawn",
    "spawnSync",
    "spawnl",
    "spawnlp",
    "spawnv",
    "spawnvp",
    "posix_spawn",
    "posix_spawnp",
    "run",
    "call",
    "check_call",
    "check_output",
    "getoutput",
    "getstatusoutput",
    "Popen",
    "shell_exec",
    "passthru",
    "proc_open",
    "pcntl_exec",
    "Command",
    "sh",
    "execute",
    "cmd",
    "command",
    "process",
    "process-file",
    "process-shell-command",
    "open",
    "syscmd",
    "esyscmd",
    "capture2",
    "capture2e",
    "capture3",
    "create_subprocess_shell",
    "create_subprocess_exec",
    "script",
    "system2",
    "shell",
    "pipeline",
];

impl Walk<'_> {
    /// A program in another language that stands among the arguments or on the input.
    pub(super) fn interpreter(
        &mut self,
        language: &str,
        args: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        let Some((_, letters, words)) = INTERPRETERS.iter().find(|(name, _, _)| *name == language)
        else {
            return Ok(());
        };
        let mut operand = None;
        let mut found = false;
        for (at, arg) in args.iter().enumerate().skip(1) {
            let text = arg.text.as_str();
            let next = args.get(at + 1).map(|arg| arg.text.as_str());
            let value = match text.strip_prefix('-') {
                Some(long) if words.contains(&long.trim_start_matches('-')) => next,
                Some(long) if long.starts_with('-') => long[1..]
                    .split_once('=')
                    .filter(|(name, _)| words.contains(name))
                    .map(|(_, value)| value),
                Some(short) => short
                    .find(|letter| letters.contains(letter))
                    .and_then(|at| {
                        if at + 1 == short.len() {
                            next
                        } else {
                            short.get(at + 1..)
                        }
                    }),
                None if words.contains(&text) && operand.is_none() => next,
                None => {
                    operand.get_or_insert(arg);
                    None
                }
            };
            if let Some(value) = value {
                found = true;
                self.program_text(language, value, around.place.span(&arg.range), around.depth)?;
            }
        }
        let span = around.place.span(&args[0].range);
        match operand {
            _ if found => Ok(()),
            Some(script) if language == "awk" => self.program_text(
                language,
                &script.text,
                around.place.span(&script.range),
                around.depth,
            ),
            Some(script) if !matches!(script.text.as_str(), "-" | "/dev/stdin") => {
                match self.written(&script.text) {
                    Input::Text(content) => {
                        self.program_text(language, &content, span, around.depth)
                    }
                    Input::Unknown | Input::Other => Ok(()),
                }
            }
            _ => match self.input(around) {
                Input::Text(program) => self.program_text(language, &program, span, around.depth),
                Input::Unknown | Input::Other => Ok(()),
            },
        }
    }

    /// The commands that a program's text says plainly.
    pub(super) fn program_text(
        &mut self,
        language: &str,
        program: &str,
        span: Span,
        depth: usize,
    ) -> Result<(), Denied> {
        if language == "tclsh" || language == "expect" {
            return self.probe_text(program, span, depth);
        }
        if !self.spend(program.len() / 4) {
            return Ok(());
        }
        for call in calls(language, program) {
            match call {
                Call::Text(text) => self.probe_text(&text, span, depth)?,
                Call::Words(words) => {
                    let args: Vec<Arg> = words.iter().map(|word| Arg::exact(word, 0..0)).collect();
                    self.probe(|walk| walk.foreign(&args, &Place::Within(span), depth))?;
                }
            }
        }
        Ok(())
    }
}

/// What a program starts.
#[derive(Debug, PartialEq, Eq)]
enum Call {
    Text(String),
    Words(Vec<String>),
}

/// The commands that stand behind a [`RUNNERS`] word, or in backticks where those run.
fn calls(language: &str, program: &str) -> Vec<Call> {
    let mut found = Vec::new();
    let mut reader = Reader {
        text: program,
        at: 0,
        unclosed: Vec::new(),
    };
    let mut before = String::new();
    while let Some(letter) = reader.peek() {
        if letter == '`'
            && !matches!(
                language,
                "node" | "bun" | "deno" | "awk" | "m4" | "emacs" | ""
            )
        {
            match reader.literal() {
                Some(text) => found.push(Call::Text(text)),
                None => reader.at += 1,
            }
            before.clear();
        } else if matches!(letter, '"' | '\'' | '`') {
            let piped = before.trim_end().ends_with('|');
            let Some(text) = reader.literal() else {
                // An apostrophe in a comment, say.
                reader.at += 1;
                continue;
            };
            // awk: `"…" | getline`, `print | "…"`; perl and ruby: `open "|…"`.
            if language == "awk" && (piped || reader.rest().trim_start().starts_with('|')) {
                found.push(Call::Text(text));
            }
            before.clear();
        } else if letter.is_ascii_alphabetic() || letter == '_' {
            let word = reader.word();
            let shell_word = matches!(word, "qx" | "x")
                && before.ends_with(['%', ' ', '\n', '=', '(', ';'])
                || word == "qx";
            if shell_word && let Some(text) = reader.delimited() {
                found.push(Call::Text(text));
            } else if language == "m4" && matches!(word, "syscmd" | "esyscmd") {
                if let Some(text) = reader.delimited() {
                    found.push(Call::Text(text.trim_matches(['`', '\'']).to_owned()));
                }
            } else if RUNNERS.contains(&word) {
                call(&mut reader, &mut found);
            }
            before.clear();
            before.push_str(word);
        } else {
            before.push(letter);
            reader.at += letter.len_utf8();
        }
    }
    found
}

/// The texts of a call's arguments.
fn call(reader: &mut Reader<'_>, found: &mut Vec<Call>) {
    let start = reader.at;
    reader.blanks();
    let closed = reader.peek() == Some('(');
    let mut open = 0_usize;
    let mut texts = Vec::new();
    while let Some(letter) = reader.peek() {
        match letter {
            '"' | '\'' | '`' => match reader.literal() {
                Some(text) => {
                    texts.push(text);
                    continue;
                }
                None => break,
            },
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => {
                open = open.saturating_sub(1);
                if open == 0 {
                    break;
                }
            }
            ';' | '\n' if open == 0 => break,
            // Without parentheses only texts and commas may follow, as in perl and ruby.
            _ if !closed && open == 0 && letter.is_ascii_alphanumeric() && texts.is_empty() => {
                break;
            }
            '=' if !closed && texts.is_empty() => break,
            _ => {}
        }
        if reader.at - start > 2000 || texts.len() > 32 {
            break;
        }
        reader.at += letter.len_utf8();
    }
    let Some(first) = texts.first() else { return };
    found.push(Call::Text(first.trim_start_matches(['|', '-']).to_owned()));
    for skipped in 0..texts.len().min(3) {
        if texts.len() > skipped + 1 {
            found.push(Call::Words(texts[skipped..].to_vec()));
        }
    }
    // perl: `open(F, "-|", "…")`, `open(F, "…|")`.
    if first.ends_with('|') || first.starts_with(['|', '-']) {
        found.extend(
            texts
                .iter()
                .map(|text| Call::Text(text.trim_end_matches('|').to_owned())),
        );
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// Quotes that no other one closes any more.
    unclosed: Vec<char>,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn blanks(&mut self) {
        while self
            .peek()
            .is_some_and(|letter| letter == ' ' || letter == '\t')
        {
            self.at += 1;
        }
    }

    fn word(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest
            .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// A text in quotes that begins here.
    fn literal(&mut self) -> Option<String> {
        let quote = self.peek()?;
        if self.unclosed.contains(&quote) {
            return None;
        }
        let mut text = String::new();
        let mut letters = self.rest().char_indices().skip(1);
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => match letters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, letter)) => text.push(letter),
                    None => break,
                },
                letter if letter == quote => {
                    self.at += at + letter.len_utf8();
                    return Some(text);
                }
                letter => text.push(letter),
            }
        }
        self.unclosed.push(quote);
        None
    }

    /// A text between brackets or other signs that begins here.
    fn delimited(&mut self) -> Option<String> {
        let open = self.peek()?;
        let close = match open {
            '(' => ')',
            '{' => '}',
            '[' => ']',
            '<' => '>',
            '/' | '!' | '|' | '#' | '~' => open,
            _ => return None,
        };
        let rest = &self.rest()[open.len_utf8()..];
        let end = rest.find(close)?;
        self.at += open.len_utf8() + end + close.len_utf8();
        Some(rest[..end].to_owned())
    }
}

/// The commands that a script of sed runs: `e …`, and `s/…/…/e`, whose result is run.
pub(super) fn sed_commands(script: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in script.split(['\n', ';']) {
        let line = line.trim_start();
        let command = line.trim_start_matches(|letter: char| {
            letter.is_ascii_digit() || matches!(letter, '$' | ',' | '!' | ' ' | '{' | '~' | '+')
        });
        if let Some(text) = command.strip_prefix("e ") {
            found.push(text);
        }
        // The address may be a pattern of its own.
        let start = command
            .find('s')
            .filter(|at| *at == 0 || command[..*at].ends_with([' ', '/', '}', '!']));
        let Some(rest) = start.map(|at| &command[at + 1..]) else {
            continue;
        };
        let Some(sign) = rest
            .chars()
            .next()
            .filter(|sign| !sign.is_alphanumeric() && !sign.is_whitespace())
        else {
            continue;
        };
        let mut parts = rest[sign.len_utf8()..].split(sign);
        if let (Some(_), Some(text), Some(flags)) = (parts.next(), parts.next(), parts.next())
            && flags.starts_with(|flag: char| flag.is_alphanumeric())
            && flags
                .split(' ')
                .next()
                .is_some_and(|flags| flags.contains('e'))
        {
            found.push(text);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Call, calls, sed_commands};
    use rstest::rstest;

    #[rstest]
    #[case::python("python", "os.system('a b')", &["a b"])]
    #[case::perl("perl", "print `a b`; system \"c\"", &["a b", "c"])]
    #[case::ruby("ruby", "puts %x(a b)", &["a b"])]
    #[case::awk("awk", "BEGIN { \"a b\" | getline; print | \"c\" }", &["a b", "c"])]
    #[case::printed("python", "print('a b')", &[])]
    #[case::open_end("python", "system('a", &[])]
    #[case::open_backtick("perl", "print `a", &[])]
    #[case::apostrophe("python", "# it's\nos.system(\"a b\")", &["a b"])]
    fn a_program_says_what_it_starts(
        #[case] language: &str,
        #[case] text: &str,
        #[case] want: &[&str],
    ) {
        let want: Vec<Call> = want
            .iter()
            .map(|text| Call::Text((*text).to_owned()))
            .collect();
        assert_eq!(calls(language, text), want);
    }

    #[rstest]
    #[case::command("1e ls -l", &["ls -l"])]
    #[case::flag("s/a/ls b/ge", &["ls b"])]
    #[case::behind_an_address("/x/ s/a/ls/e", &["ls"])]
    #[case::plain("s/a/e/g; s|e|b|", &[])]
    fn a_script_of_sed_says_what_it_starts(#[case] script: &str, #[case] want: &[&str]) {
        assert_eq!(sed_commands(script), want);
    }
}
