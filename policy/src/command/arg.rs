//! Words as far as they are known before anything runs.

use std::collections::BTreeMap;
use std::ops::Range;

use super::brace::expand_braces;
use super::script::{Piece, Script, Word};

/// What stands for a part that isn't known.
pub(super) const HOLE: char = '\u{fffd}';

/// How much of a word is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    /// All of it.
    Exact,
    /// It is one word and no option, such as `"$file"`.
    Operand,
    /// It is at most one word.
    OneWord,
    /// It may be any number of words.
    Words,
}

/// One argument, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arg {
    /// The text, with [`HOLE`] for what isn't known.
    pub(crate) text: String,
    pub(crate) shape: Shape,
    /// Whether it is the name of a pipe to a process.
    pub(crate) process: bool,
    /// Where the word stands in its text.
    pub(crate) range: Range<usize>,
}

impl Arg {
    pub(crate) fn exact(text: &str, range: Range<usize>) -> Self {
        Self {
            text: text.to_owned(),
            shape: Shape::Exact,
            process: false,
            range,
        }
    }

    /// An argument of which nothing is known.
    pub(crate) fn unknown(shape: Shape, range: Range<usize>) -> Self {
        Self {
            text: HOLE.to_string(),
            shape,
            process: false,
            range,
        }
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.shape == Shape::Exact
    }

    /// The text, if all of it is known.
    pub(crate) fn known(&self) -> Option<&str> {
        self.is_exact().then_some(self.text.as_str())
    }

    /// What it certainly begins with.
    pub(crate) fn head(&self) -> &str {
        if self.is_exact() {
            &self.text
        } else {
            self.text.split(HOLE).next().unwrap_or_default()
        }
    }

    /// Whether it may be `text`.
    pub(crate) fn may_be(&self, text: &str) -> bool {
        if self.is_exact() {
            return self.text == text;
        }
        let tail = self.text.rsplit(HOLE).next().unwrap_or_default();
        self.shape == Shape::Words
            || (text.len() >= self.head().len() + tail.len()
                && text.starts_with(self.head())
                && text.ends_with(tail))
    }

    /// The program's name without its folder, if it is known.
    pub(crate) fn program(&self) -> Option<&str> {
        let name = self.text.rsplit('/').next().unwrap_or_default();
        if name == "exe" && self.text.starts_with("/proc/") {
            // The program of a process: before another one is started, the shell's own.
            return Some("sh");
        }
        if self.is_exact() {
            return Some(if name.is_empty() {
                &self.text
            } else {
                plain(name)
            });
        }
        // `$HOME/bin/git` is git, whatever the variable holds.
        let known = self.shape != Shape::Words
            && self.text.contains('/')
            && !name.is_empty()
            && !name.contains(HOLE);
        known.then(|| plain(name))
    }
}

/// A program's name without what only some shells and systems write at it: `=git` (zsh),
/// `^git` (nushell), `git.exe`.
fn plain(name: &str) -> &str {
    let bare = name
        .strip_prefix(['=', '^'])
        .filter(|rest| !rest.is_empty())
        .unwrap_or(name);
    bare.strip_suffix(".exe")
        .filter(|rest| !rest.is_empty())
        .unwrap_or(bare)
}

/// What the text itself sets variables to.
#[derive(Debug, Default)]
pub(crate) struct Variables(BTreeMap<String, Option<String>>);

impl Variables {
    /// Of everything that `script` sets; what is set twice, or to what isn't known, is
    /// known to be set and no more.
    pub(crate) fn of(script: &Script) -> Self {
        let mut variables = Self::default();
        for name in &script.set_elsewhere {
            variables.0.insert(name.clone(), None);
        }
        for command in &script.commands {
            for assignment in &command.assignments {
                let value = assignment
                    .plain
                    .then(|| assignment.value.literal())
                    .flatten();
                variables.set(&assignment.name, value);
            }
            let Some(program) = command.words.first().and_then(Word::bare) else {
                continue;
            };
            let declares = ["export", "declare", "typeset", "local", "readonly"].contains(&program);
            let sets = [
                "read",
                "mapfile",
                "readarray",
                "getopts",
                "printf",
                "unset",
                "let",
            ]
            .contains(&program);
            if !declares && !sets {
                continue;
            }
            for word in &command.words[1..] {
                let text = word.literal().or_else(|| match word.pieces.first() {
                    Some(Piece::Text { text, .. }) => Some(text.clone()),
                    _ => None,
                });
                let Some(text) = text else { continue };
                match text.split_once('=') {
                    Some((name, value)) if declares => {
                        let known = word.literal().is_some() && !name.ends_with('+');
                        variables.set(name.trim_end_matches('+'), known.then(|| value.to_owned()));
                    }
                    _ if sets => drop(variables.0.insert(text, None)),
                    _ => {}
                }
            }
        }
        variables
    }

    fn set(&mut self, name: &str, value: Option<String>) {
        if self.0.contains_key(name) {
            self.0.insert(name.to_owned(), None);
        } else {
            self.0.insert(name.to_owned(), value);
        }
    }

    /// The arguments that `words` come to.
    pub(crate) fn resolve_all(&self, words: &[Word]) -> Vec<Arg> {
        let mut args = Vec::with_capacity(words.len());
        for word in words {
            self.resolve(word, &mut args);
        }
        args
    }

    /// The arguments that one word comes to.
    pub(crate) fn resolve(&self, word: &Word, args: &mut Vec<Arg>) {
        if let [Piece::Text { text, quoted }] = word.pieces.as_slice()
            && (*quoted || !text.contains(['{', '*', '?', '[']))
        {
            args.push(Arg::exact(text, word.range.clone()));
            return;
        }
        match expand_braces(&word.pieces) {
            None => self.push(&word.pieces, word, args),
            Some(Ok(expanded)) => {
                for pieces in expanded {
                    self.push(&pieces, word, args);
                }
            }
            Some(Err(())) => args.push(Arg::unknown(Shape::Words, word.range.clone())),
        }
    }

    fn push(&self, pieces: &[Piece], word: &Word, args: &mut Vec<Arg>) {
        let mut arg = Arg::exact("", word.range.clone());
        // A word of nothing but unquoted expansions vanishes when they are empty.
        let mut there = false;
        for piece in pieces {
            let shape = match piece {
                Piece::Text { text, quoted } => {
                    there = true;
                    match glob_start(text).filter(|_| !quoted) {
                        None => {
                            arg.text.push_str(text);
                            Shape::Exact
                        }
                        Some(start) => {
                            // What the pattern matches begins and ends like the pattern.
                            let end = text.rfind(['*', '?', ']']).map_or(start, |end| end + 1);
                            arg.text.push_str(&text[..start]);
                            arg.text.push(HOLE);
                            arg.text.push_str(&text[end.max(start)..]);
                            if arg.text.starts_with(HOLE) {
                                Shape::Operand
                            } else {
                                Shape::OneWord
                            }
                        }
                    }
                }
                Piece::Variable { name, quoted } => match (self.0.get(name), quoted) {
                    (Some(Some(value)), true) => {
                        arg.text.push_str(value);
                        there = true;
                        Shape::Exact
                    }
                    (Some(Some(value)), false) if !self.0.contains_key("IFS") => {
                        let mut fields = value.split([' ', '\t', '\n']);
                        arg.text.push_str(fields.next().unwrap_or_default());
                        for field in fields {
                            if there || !arg.text.is_empty() {
                                args.push(std::mem::replace(
                                    &mut arg,
                                    Arg::exact("", word.range.clone()),
                                ));
                            }
                            there = false;
                            arg.text.push_str(field);
                        }
                        there |= !arg.text.is_empty();
                        if glob_start(value).is_some() {
                            Shape::Operand
                        } else {
                            Shape::Exact
                        }
                    }
                    (Some(_), quoted) => {
                        arg.text.push(HOLE);
                        there |= *quoted;
                        if *quoted {
                            Shape::OneWord
                        } else {
                            Shape::Words
                        }
                    }
                    (None, quoted) => {
                        arg.text.push(HOLE);
                        there |= *quoted;
                        if *quoted {
                            Shape::Operand
                        } else {
                            Shape::OneWord
                        }
                    }
                },
                Piece::Opaque => {
                    arg.text.push(HOLE);
                    there = true;
                    Shape::Operand
                }
                Piece::Process => {
                    arg.text.push(HOLE);
                    arg.process = true;
                    there = true;
                    Shape::Operand
                }
                Piece::Unknown { quoted } => {
                    arg.text.push(HOLE);
                    there |= *quoted;
                    if *quoted {
                        Shape::OneWord
                    } else {
                        Shape::Words
                    }
                }
            };
            arg.shape = arg.shape.max(shape);
        }
        if there || !arg.text.is_empty() {
            // `-$x` is an option whatever follows.
            if arg.shape == Shape::Operand && arg.head().starts_with('-') {
                arg.shape = Shape::OneWord;
            }
            args.push(arg);
        }
    }
}

/// Where unquoted text begins to be a pattern for file names.
fn glob_start(text: &str) -> Option<usize> {
    let star = text.find(['*', '?']);
    let class = text
        .find('[')
        .filter(|start| text[start + 1..].contains(']'));
    match (star, class) {
        (Some(star), Some(class)) => Some(star.min(class)),
        (star, class) => star.or(class),
    }
}
