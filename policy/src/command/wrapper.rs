//! Reads a wrapper's options, up to the command that it runs.

use super::arg::Arg;
use super::wrappers::WRAPPERS;

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

pub(super) const fn wrapper(
    name: &'static str,
    values: &'static str,
    flags: &'static str,
) -> Wrapper {
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
    pub(super) const fn long(
        mut self,
        values: &'static [&'static str],
        flags: &'static [&'static str],
    ) -> Self {
        self.long = (values, flags);
        self
    }
    pub(super) const fn skip(mut self, count: usize) -> Self {
        self.skip = count;
        self
    }
    pub(super) const fn assignments(mut self) -> Self {
        self.assignments = true;
        self
    }
    pub(super) const fn joined(mut self) -> Self {
        self.runs = Runs::Joined;
        self
    }
}

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
