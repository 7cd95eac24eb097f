//! Matches a command against a rule, as Fence does and a little further.
//!
//! Tokens at the front must be equal; the program by its name alone; a token that ends
//! with `=` must stand anywhere; options before a subcommand are skipped. A rule that
//! denies also knows that options have no order, that `-rf` is `-r -f`, and what can't
//! be known; one that allows matches word for word.

use crate::command::{Arg, Command, Shape};
use crate::path::clean;

/// A rule of `command.deny` or `command.allow`.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    /// As the file has it.
    pub(crate) written: String,
    /// Its program's name.
    pub(crate) program: String,
    rest: Vec<String>,
}

/// How a command stands to a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    No,
    /// It depends on the argument at this index.
    Maybe(usize),
    /// The argument at this index is the last one that it took.
    Yes(usize),
}

/// Programs that take what follows the first operand as somebody else's words.
const STOP_AT_OPERAND: &[&str] = &[
    "docker", "podman", "nerdctl", "kubectl", "ssh", "env", "sudo", "find",
];

/// Short and long names of one option (coreutils 9.7, git 2.47).
const SAME_OPTION: &[(&str, char, &str)] = &[
    ("rm", 'r', "recursive"),
    ("rm", 'R', "recursive"),
    ("rm", 'f', "force"),
    ("cp", 'r', "recursive"),
    ("cp", 'R', "recursive"),
    ("cp", 'f', "force"),
    ("mv", 'f', "force"),
    ("chmod", 'R', "recursive"),
    ("chown", 'R', "recursive"),
    ("chgrp", 'R', "recursive"),
    ("git", 'f', "force"),
    ("git", 'n', "dry-run"),
    ("git", 'd', "delete"),
    ("git", 'D', "delete"),
    ("git", 'a', "all"),
    ("git", 'u', "set-upstream"),
    ("npm", 'g', "global"),
    ("npm", 'f', "force"),
    ("docker", 'v', "volume"),
    ("podman", 'v', "volume"),
];

impl Pattern {
    /// A rule as a file has it; `None` for a blank one, which matches nothing.
    pub(crate) fn parse(written: &str) -> Option<Self> {
        let mut tokens = split_tokens(written).into_iter();
        let first = tokens.next()?;
        Some(Self {
            written: written.to_owned(),
            program: base_name(&first).to_owned(),
            rest: tokens.collect(),
        })
    }

    /// As Fence matches, on words that are all known.
    pub(crate) fn covers(&self, args: &[Arg]) -> bool {
        if args.first().and_then(Arg::program) != Some(self.program.as_str())
            || args.len() <= self.rest.len()
        {
            return false;
        }
        let mut at = 1;
        if let Some(first) = self.rest.first()
            && is_subcommand(first)
        {
            match after_options(args, at, first) {
                Skipped::To(next) => at = next,
                Skipped::Unknown(_) => return false,
            }
        }
        for token in &self.rest {
            if token.ends_with('=') {
                if !args[1..].iter().any(|arg| {
                    arg.known()
                        .is_some_and(|arg| arg.starts_with(token.as_str()))
                }) {
                    return false;
                }
            } else {
                if args.get(at).and_then(Arg::known) != Some(token.as_str()) {
                    return false;
                }
                at += 1;
            }
        }
        true
    }

    /// Whether a rule that denies means this command.
    pub(crate) fn denies(&self, command: &Command<'_>) -> Match {
        let args = command.args;
        if args.first().and_then(Arg::program) != Some(self.program.as_str()) {
            return Match::No;
        }
        let (mut at, mut last, mut maybe) = (1, 0, None);
        let mut after_flag = false;
        for token in &self.rest {
            let found = if token.ends_with('=') {
                self.anywhere(token, command)
            } else if token == "--" {
                find(args, at, |arg| arg.may_be("--") && arg.is_exact())
            } else if token.starts_with('-') && token.len() > 1 {
                self.option(token, args, at)
            } else if after_flag {
                operand_of_option(token, args, at)
            } else {
                match after_options(args, at, token) {
                    Skipped::Unknown(unknown) => Match::Maybe(unknown),
                    Skipped::To(next) => match args.get(next) {
                        Some(arg) if arg.known() == Some(token) => {
                            at = next + 1;
                            Match::Yes(next)
                        }
                        Some(arg) if !arg.is_exact() && arg.may_be(token) => {
                            at = next + 1;
                            Match::Maybe(next)
                        }
                        Some(_) | None => Match::No,
                    },
                }
            };
            match found {
                Match::No => return Match::No,
                Match::Maybe(index) => {
                    maybe.get_or_insert(index);
                }
                Match::Yes(index) => last = last.max(index),
            }
            after_flag = token.starts_with('-') && token != "--";
        }
        maybe.map_or(Match::Yes(last), Match::Maybe)
    }

    /// `if=` of `dd if=`, in any order.
    fn anywhere(&self, token: &str, command: &Command<'_>) -> Match {
        // Fence's own tests let `sudo dd if=/dev/zero` pass: it only reads.
        if self.program == "dd"
            && token == "if="
            && command.wrapped
            && !command.writes
            && command.args[1..]
                .iter()
                .all(|arg| arg.is_exact() && !arg.text.starts_with("of="))
        {
            return Match::No;
        }
        find(command.args, 1, |arg| {
            let head = arg.head();
            head.starts_with(token)
                || (!arg.is_exact() && arg.shape > Shape::Operand && token.starts_with(head))
        })
    }

    /// An option, in any order, glued to others or spelled out.
    fn option(&self, token: &str, args: &[Arg], from: usize) -> Match {
        let stops = STOP_AT_OPERAND.contains(&self.program.as_str()) && self.program != "find";
        let end = args[from..]
            .iter()
            .position(|arg| {
                arg.text == "--" || (stops && arg.is_exact() && !arg.text.starts_with('-'))
            })
            .map_or(args.len(), |end| end + from);
        let area = &args[from..end];
        let wanted = wanted_options(&self.program, token);
        let mut last = 0;
        let mut maybe = None;
        // The token as it stands, for programs whose options are words, such as find.
        if let Some(at) = area.iter().position(|arg| arg.known() == Some(token)) {
            return Match::Yes(at + from);
        }
        if self.program == "find" && !token.starts_with("--") {
            return Match::No;
        }
        for option in wanted {
            let at = area
                .iter()
                .position(|arg| arg.is_exact() && option.is_in(&arg.text));
            match at {
                Some(at) => last = last.max(at + from),
                None => match area.iter().position(|arg| {
                    arg.shape > Shape::Operand
                        && (arg.head().is_empty() || arg.head().starts_with('-'))
                }) {
                    Some(at) => {
                        maybe.get_or_insert(at + from);
                    }
                    None => return Match::No,
                },
            }
        }
        maybe.map_or(Match::Yes(last), Match::Maybe)
    }
}

/// One option by all its names.
#[derive(Debug, Default)]
struct Wanted {
    letters: Vec<char>,
    long: Option<String>,
}

impl Wanted {
    fn is_in(&self, word: &str) -> bool {
        if let Some(long) = word.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or_default();
            // GNU and git take a unique beginning.
            return self
                .long
                .as_ref()
                .is_some_and(|wanted| !name.is_empty() && wanted.starts_with(name));
        }
        word.strip_prefix('-')
            .is_some_and(|cluster| self.letters.iter().any(|letter| cluster.contains(*letter)))
    }
}

fn wanted_options(program: &str, token: &str) -> Vec<Wanted> {
    let own = || {
        SAME_OPTION
            .iter()
            .filter(move |(owner, _, _)| *owner == program)
    };
    let letters_of = |long: &str| {
        own()
            .filter(|(_, _, name)| *name == long)
            .map(|(_, short, _)| *short)
            .collect::<Vec<_>>()
    };
    if let Some(long) = token.strip_prefix("--") {
        let long = long.split('=').next().unwrap_or_default();
        return vec![Wanted {
            letters: letters_of(long),
            long: Some(long.to_owned()),
        }];
    }
    token[1..]
        .chars()
        .map(|letter| {
            let long = own()
                .find(|(_, short, _)| *short == letter)
                .map(|(_, _, long)| *long);
            let mut letters = long.map(letters_of).unwrap_or_default();
            letters.push(letter);
            Wanted {
                letters,
                long: long.map(str::to_owned),
            }
        })
        .collect()
}

/// The value of the option that the rule named before.
fn operand_of_option(token: &str, args: &[Arg], from: usize) -> Match {
    let folder = token.starts_with('/').then(|| clean(token));
    find(args, from, |arg| match arg.known() {
        Some(text) => {
            text == token
                || (text.starts_with('/') && folder.as_ref() == Some(&clean(text)))
                || text.strip_suffix(token).is_some_and(|before| {
                    before.starts_with('-') && (before.ends_with('=') || before.len() == 2)
                })
        }
        None => arg.shape > Shape::Operand && arg.may_be(token),
    })
}

fn find(args: &[Arg], from: usize, wanted: impl Fn(&Arg) -> bool) -> Match {
    let exact = args
        .iter()
        .enumerate()
        .skip(from)
        .find(|(_, arg)| arg.is_exact() && wanted(arg));
    let any = || {
        args.iter()
            .enumerate()
            .skip(from)
            .find(|(_, arg)| wanted(arg))
    };
    match (exact, any) {
        (Some((at, _)), _) => Match::Yes(at),
        (None, any) => match any() {
            Some((at, arg)) if arg.head().len() > 2 => Match::Yes(at),
            Some((at, _)) => Match::Maybe(at),
            None => Match::No,
        },
    }
}

enum Skipped {
    /// The first word that is no option.
    To(usize),
    /// This word may hide the subcommand.
    Unknown(usize),
}

/// Past the options before a subcommand: a long one without `=` and a single letter
/// swallow a value, unless that is the subcommand wanted.
fn after_options(args: &[Arg], from: usize, wanted: &str) -> Skipped {
    let mut at = from;
    while let Some(arg) = args.get(at) {
        if !arg.is_exact() && arg.shape == Shape::Words {
            return Skipped::Unknown(at);
        }
        if !arg.is_exact()
            && arg.shape == Shape::OneWord
            && arg.head().is_empty()
            && !arg.text.contains('/')
        {
            // An empty variable vanishes, one with an option is skipped.
            return Skipped::Unknown(at);
        }
        let head = arg.head();
        if !head.starts_with('-') || arg.text == "--" {
            break;
        }
        let swallows = if head.starts_with("--") {
            !head.contains('=')
        } else {
            head.len() == 2 && arg.is_exact()
        };
        at += 1;
        if swallows
            && let Some(value) = args.get(at)
            && !value.head().starts_with('-')
            && value.known() != Some(wanted)
            && (value.is_exact() || value.shape != Shape::Words)
        {
            at += 1;
        }
    }
    Skipped::To(at)
}

fn is_subcommand(token: &str) -> bool {
    !token.is_empty() && !token.starts_with('-') && !token.ends_with('=')
}

/// Words at blanks, quotes taken off, empty ones dropped: Fence's own way.
pub(crate) fn split_tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let (mut token, mut quote) = (String::new(), None);
    for character in text.chars() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            (None, ' ' | '\t') => {
                if !token.is_empty() {
                    tokens.push(std::mem::take(&mut token));
                }
            }
            _ => token.push(character),
        }
    }
    if !token.is_empty() {
        tokens.push(token);
    }
    tokens
}

pub(crate) fn base_name(path: &str) -> &str {
    match path.rsplit('/').next() {
        Some(name) if !name.is_empty() => name,
        _ => path,
    }
}
