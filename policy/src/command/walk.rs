//! Walks every command that a text may run, and asks a judge about each.

use std::collections::BTreeMap;
use std::ops::Range;

use super::arg::{Arg, Variables};
use super::crude;
use super::parse::parse;
use super::script::{Feed, Simple, Word};
use super::written::File;
use crate::{Matched, Span, Verdict};

/// How far texts within texts are followed, as in `sh -c "sh -c '…'"`.
const MOST_NESTED: usize = 16;
/// How many wrappers may stand before one command.
const MOST_WRAPPED: usize = 48;

/// One command, as far as it is known before it runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Command<'a> {
    /// The program and its arguments.
    pub(crate) args: &'a [Arg],
    /// Whether another program starts it.
    pub(crate) wrapped: bool,
    /// Whether its output goes somewhere else than the caller's.
    pub(crate) writes: bool,
}

/// What a judge says of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Nothing against it.
    Pass,
    /// A rule forbids it; with the argument that decided it.
    Deny(Matched, usize),
    /// It depends on what isn't known; with the argument that isn't.
    Unclear(String, usize),
}

/// Judges single commands.
pub(crate) trait Judge {
    /// What is to be said of this command alone, not of what it runs in turn.
    fn judge(&self, command: &Command<'_>) -> Finding;
    /// Whether the words of a remote command are looked into as if they ran here.
    fn follows_ssh(&self) -> bool;
}

/// Judge everything that `text` may run.
pub(crate) fn walk(judge: &dyn Judge, text: &str) -> Verdict {
    let mut walk = Walk {
        judge,
        budget: text.len() * 4 + (64 << 10),
        work: text.len() * 16 + (1 << 20),
        exhausted: false,
        unclear: None,
        inherited: Feed::Inherited,
        aliases: BTreeMap::new(),
        open_aliases: Vec::new(),
        files: BTreeMap::new(),
        open_files: Vec::new(),
    };
    match walk.text(text, &Place::Exact(0), 0) {
        Err(Denied { matched, span }) => Verdict::Deny {
            rule: matched,
            span,
        },
        Ok(()) => match walk.unclear {
            Some((reason, span)) => Verdict::Unclear { reason, span },
            None if walk.exhausted => Verdict::Unclear {
                reason: TOO_MUCH.to_owned(),
                span: Span {
                    start: 0,
                    end: text.len(),
                },
            },
            None => Verdict::Allow,
        },
    }
}

const TOO_MUCH: &str = "too much text of shell stands in one another";

/// The end of a walk: a rule forbids something.
#[derive(Debug)]
pub(crate) struct Denied {
    matched: Matched,
    span: Span,
}

/// Where a text stands in the one that is judged.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// Verbatim, from this byte on.
    Exact(usize),
    /// Somewhere inside.
    Within(Span),
}

impl Place {
    pub(crate) fn span(self, range: &Range<usize>) -> Span {
        match self {
            Self::Exact(offset) => Span {
                start: range.start + offset,
                end: range.end + offset,
            },
            Self::Within(span) => span,
        }
    }
}

/// What surrounds a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(crate) place: &'a Place,
    pub(crate) feed: &'a Feed,
    /// Whether the feed stands in this text, and not in one around it.
    pub(crate) own_feed: bool,
    pub(crate) variables: &'a Variables,
    pub(crate) writes: bool,
    pub(crate) depth: usize,
    pub(crate) wrapped: usize,
}

pub(crate) struct Walk<'a> {
    pub(crate) judge: &'a dyn Judge,
    /// How many more bytes of text may be parsed.
    budget: usize,
    /// How many more words may be looked at.
    work: usize,
    /// Whether something wasn't looked at for want of these.
    pub(super) exhausted: bool,
    unclear: Option<(String, Span)>,
    /// What the commands of a nested text read, unless they say otherwise.
    pub(super) inherited: Feed,
    aliases: BTreeMap<String, String>,
    open_aliases: Vec<String>,
    /// Files that the text itself writes.
    pub(super) files: BTreeMap<String, File>,
    pub(super) open_files: Vec<String>,
}

impl Walk<'_> {
    /// Note what can't be told; the first one is kept.
    pub(crate) fn unclear(&mut self, reason: impl Into<String>, span: Span) {
        self.unclear.get_or_insert_with(|| (reason.into(), span));
    }

    /// Note that this many words are looked at; false when that is too much.
    pub(super) fn spend(&mut self, words: usize) -> bool {
        match self.work.checked_sub(words + 1) {
            Some(left) => self.work = left,
            None => self.exhausted = true,
        }
        !self.exhausted
    }

    /// Look for what a rule denies and no further: what isn't known doesn't count.
    pub(super) fn probe(
        &mut self,
        look: impl FnOnce(&mut Self) -> Result<(), Denied>,
    ) -> Result<(), Denied> {
        let unclear = self.unclear.clone();
        let done = look(self);
        self.unclear = unclear;
        done
    }

    /// Look for what a rule denies in a text that is a command or part of one.
    pub(super) fn probe_text(
        &mut self,
        text: &str,
        span: Span,
        depth: usize,
    ) -> Result<(), Denied> {
        self.probe(|walk| walk.text(text, &Place::Within(span), depth + 1))
    }

    /// Every command of a text of shell.
    pub(crate) fn text(&mut self, text: &str, place: &Place, depth: usize) -> Result<(), Denied> {
        let whole = place.span(&(0..text.len()));
        if depth > MOST_NESTED || self.budget < text.len() {
            self.exhausted = true;
            self.unclear(TOO_MUCH, whole);
            return Ok(());
        }
        self.budget -= text.len();
        let script = match parse(text) {
            Ok(script) => script,
            Err(trouble) => {
                let found = crude::split(text).into_iter().find_map(|args| {
                    match self.judge.judge(&Command {
                        args: &args,
                        wrapped: false,
                        writes: true,
                    }) {
                        Finding::Deny(matched, _) => Some(matched),
                        Finding::Pass | Finding::Unclear(..) => None,
                    }
                });
                if let Some(matched) = found {
                    return Err(Denied {
                        matched,
                        span: whole,
                    });
                }
                self.unclear(trouble.reason(), whole);
                return Ok(());
            }
        };
        let variables = Variables::of(&script);
        // A shell reads an alias before the lines that use it, a function body later.
        for command in &script.commands {
            if command.words.first().and_then(Word::bare) == Some("alias") {
                self.note_aliases(&variables.resolve_all(&command.words[1..]));
            }
        }
        let mut inherited = self.inherited.clone();
        for command in &script.commands {
            self.assignments(text, command, place, depth)?;
            let args = variables.resolve_all(&command.words);
            let around = Around {
                place,
                feed: match &command.feed {
                    Feed::Inherited => &inherited,
                    own => own,
                },
                own_feed: !matches!(command.feed, Feed::Inherited),
                variables: &variables,
                writes: command.writes,
                depth,
                wrapped: 0,
            };
            self.command(text, &args, around)?;
            if !command.outputs.is_empty() || args.first().and_then(Arg::known) == Some("tee") {
                self.note_written(command, &args, around)?;
            }
            // `exec < <(…)` gives the shell itself another input.
            let alone = matches!(args.as_slice(), [only] if only.known() == Some("exec"));
            if alone && !matches!(command.feed, Feed::Inherited) {
                inherited = Feed::Unknown;
            }
        }
        Ok(())
    }

    fn assignments(
        &mut self,
        text: &str,
        command: &Simple,
        place: &Place,
        depth: usize,
    ) -> Result<(), Denied> {
        for assignment in &command.assignments {
            let span = place.span(&assignment.value.range);
            match assignment.value.literal() {
                Some(value) => {
                    let place = self.inner_place(text, *place, &assignment.value.range, &value);
                    self.assigned(&assignment.name, &value, &place, depth)?;
                }
                None => self.assigned_unknown(&assignment.name, &assignment.value, span),
            }
        }
        Ok(())
    }

    /// One command, and what it runs in turn.
    pub(crate) fn command(
        &mut self,
        text: &str,
        args: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        let Some(first) = args.first() else {
            return Ok(());
        };
        let span = around.place.span(&first.range);
        if around.wrapped > MOST_WRAPPED {
            self.unclear("too many programs start one another", span);
            return Ok(());
        }
        let Some(program) = first.program() else {
            self.unclear("which program runs is only known when it runs", span);
            // It may come to nothing, and then the next word is the program.
            if !first.text.contains('/') && args.len() > 1 {
                return self.command(text, &args[1..], deeper(around));
            }
            return Ok(());
        };
        if !self.spend(args.len()) {
            return Ok(());
        }
        self.judged(args, around)?;
        // Other names of the same program.
        let other: &[&str] = match program {
            "sudoedit" => &["sudo", "-e"],
            _ => match program.strip_prefix("git-") {
                Some(subcommand) => &["git", subcommand],
                None => &[],
            },
        };
        if !other.is_empty() {
            let same: Vec<Arg> = other
                .iter()
                .map(|word| Arg::exact(word, first.range.clone()))
                .chain(args[1..].iter().cloned())
                .collect();
            self.judged(&same, around)?;
        }
        let inner = self.settled(around);
        let outer = std::mem::replace(&mut self.inherited, inner);
        let done = self
            .alias(program, args, around)
            .and_then(|()| self.runs(text, program, args, around));
        self.inherited = outer;
        done
    }

    /// What the judge says of a command.
    fn judged(&mut self, args: &[Arg], around: Around<'_>) -> Result<(), Denied> {
        let command = Command {
            args,
            wrapped: around.wrapped > 0,
            writes: around.writes,
        };
        match self.judge.judge(&command) {
            Finding::Pass => {}
            Finding::Unclear(reason, at) => {
                self.unclear(
                    reason,
                    around.place.span(&args[at.min(args.len() - 1)].range),
                );
            }
            Finding::Deny(matched, at) => {
                let last = &args[at.min(args.len() - 1)].range;
                let start = around.place.span(&args[0].range);
                let end = around.place.span(last);
                return Err(Denied {
                    matched,
                    span: Span {
                        start: start.start.min(end.start),
                        end: end.end.max(start.end),
                    },
                });
            }
        }
        Ok(())
    }

    /// What an alias that the text defines makes of a command.
    fn alias(&mut self, program: &str, args: &[Arg], around: Around<'_>) -> Result<(), Denied> {
        let Some(value) = self.aliases.get(program) else {
            return Ok(());
        };
        if self.open_aliases.iter().any(|open| open == program) {
            return Ok(());
        }
        let mut joined = value.clone();
        for arg in &args[1..] {
            // An alias that ends with a blank goes on to the next word.
            let next = joined
                .ends_with([' ', '\t'])
                .then(|| self.aliases.get(&arg.text))
                .flatten();
            joined.push(' ');
            joined.push_str(next.map_or(arg.text.as_str(), String::as_str));
        }
        let span = around.place.span(&args[0].range);
        self.open_aliases.push(program.to_owned());
        let done = self.text(&joined, &Place::Within(span), around.depth + 1);
        self.open_aliases.pop();
        done
    }

    /// Note that `name` stands for `value`.
    pub(super) fn note_alias(&mut self, name: &str, value: &str) {
        self.aliases.insert(name.to_owned(), value.to_owned());
    }

    fn note_aliases(&mut self, args: &[Arg]) {
        for arg in args {
            if let Some((name, value)) = arg.known().and_then(|text| text.split_once('=')) {
                self.note_alias(name, value);
            }
        }
    }

    /// Where a text that was one word stands, so that a caret can point into it.
    pub(crate) fn inner_place(
        &self,
        text: &str,
        place: Place,
        range: &Range<usize>,
        inner: &str,
    ) -> Place {
        if let Place::Exact(offset) = place
            && let Some(raw) = text.get(range.clone())
            && let Some(at) = raw.find(inner)
            && !inner.is_empty()
        {
            return Place::Exact(offset + range.start + at);
        }
        Place::Within(place.span(range))
    }

    /// Words that are joined by blanks to a text of shell.
    pub(crate) fn joined(
        &mut self,
        text: &str,
        args: &[Arg],
        around: Around<'_>,
    ) -> Result<(), Denied> {
        let [first, .., last] = args else {
            return match args {
                [only] => self.one_text(text, only, around),
                _ => Ok(()),
            };
        };
        let span = around
            .place
            .span(&(first.range.start..last.range.end.max(first.range.end)));
        if let Some(open) = args.iter().find(|arg| !arg.is_exact()) {
            self.unclear(
                "the text that a shell runs is only known when it runs",
                around.place.span(&open.range),
            );
        }
        let words: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
        self.text(&words.join(" "), &Place::Within(span), around.depth + 1)
    }

    /// A word that is a text of shell.
    pub(crate) fn one_text(
        &mut self,
        text: &str,
        arg: &Arg,
        around: Around<'_>,
    ) -> Result<(), Denied> {
        if !arg.is_exact() {
            self.unclear(
                "the text that a shell runs is only known when it runs",
                around.place.span(&arg.range),
            );
        }
        let place = self.inner_place(text, *around.place, &arg.range, &arg.text);
        self.text(&arg.text, &place, around.depth + 1)
    }
}

/// The same surroundings behind one more wrapper.
pub(crate) fn deeper(around: Around<'_>) -> Around<'_> {
    Around {
        wrapped: around.wrapped + 1,
        ..around
    }
}
