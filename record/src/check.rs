//! Is the log as it was written?

use std::fmt;
use std::fs;
use std::io::{BufRead as _, BufReader};

use crate::chain::{Link, Tail, sha256_hex};
use crate::event::{Entry, Gap};
use crate::log::{Head, Log, RecordError, open_own};

/// What [`Log::check`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// How many lines of the chain were found good before the end or the problem.
    pub lines: u64,
    /// The number of the last good line.
    pub last_seq: u64,
    /// Its hash: what a witness elsewhere should have.
    pub last_hash: String,
    /// What happened and is accounted for: no event was lost by it.
    pub notes: Vec<Note>,
    /// The first thing that is wrong.
    pub problem: Option<Problem>,
}

/// Something that a killed writer left, and that is accounted for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The segment.
    pub segment: String,
    /// Its line, from 1.
    pub line: u64,
    /// What it is, in words.
    pub text: String,
}

/// Something that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The segment, or `head`.
    pub segment: String,
    /// Its line, from 1.
    pub line: u64,
    /// What is wrong.
    pub kind: ProblemKind,
}

/// What is wrong with a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProblemKind {
    /// The line isn't one that boxery wrote.
    Changed,
    /// The line is whole, but it or the one before isn't the one that was written.
    Unchained,
    /// These numbers are missing before the line.
    Missing {
        /// The first.
        from: u64,
        /// The last.
        to: u64,
    },
    /// The line comes before one that was written earlier.
    Reordered,
    /// The line has come before.
    Duplicated,
    /// These numbers are missing at the end.
    Cut {
        /// The first.
        from: u64,
        /// The last.
        to: u64,
    },
    /// The file `head` doesn't fit the log.
    Head,
    /// The file `head` was or is missing, so that lines may be missing unseen.
    NoHead,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            segment,
            line,
            kind,
        } = self;
        let numbers = |from: &u64, to: &u64| {
            if from == to {
                format!("event {from} is missing")
            } else {
                format!("events {from} to {to} are missing")
            }
        };
        match kind {
            ProblemKind::Changed => write!(f, "{segment}:{line}: the line was changed"),
            ProblemKind::Unchained => {
                write!(
                    f,
                    "{segment}:{line}: the line or the one before it was replaced"
                )
            }
            ProblemKind::Missing { from, to } => {
                write!(
                    f,
                    "{segment}:{line}: {} before this line",
                    numbers(from, to)
                )
            }
            ProblemKind::Reordered => write!(f, "{segment}:{line}: the line is out of order"),
            ProblemKind::Duplicated => write!(f, "{segment}:{line}: the line has come before"),
            ProblemKind::Cut { from, to } => write!(f, "{} at the end", numbers(from, to)),
            ProblemKind::Head => write!(f, "{segment}:{line}: `head` does not fit the log"),
            ProblemKind::NoHead => {
                write!(
                    f,
                    "{segment}:{line}: `head` is missing, so lines may be missing at the end"
                )
            }
        }
    }
}

impl Log {
    /// Find the first line that was changed, dropped, reordered, doubled or
    /// cut, the end included as far as `head` tells it.
    pub fn check(&self) -> Result<CheckReport, RecordError> {
        let _lock = match self.lock_for_reading()? {
            None if self.segments()?.is_empty() && self.read_small("head")?.is_none() => {
                return Ok(Walk::new(None).end(false));
            }
            // The first writer came in between; or it is a copy without a lock.
            None => self.lock_for_reading()?,
            lock => lock,
        };
        let head = self.read_head()?;
        let mut walk = Walk::new(head.as_ref());
        for segment in self.segments()? {
            let read = |source| self.read_error(&segment, source);
            let file = open_own(
                &self.folder.join(&segment),
                fs::OpenOptions::new().read(true),
            )
            .map_err(read)?;
            let mut reader = BufReader::new(file);
            walk.begin(&segment);
            loop {
                let mut line = Vec::new();
                if reader.read_until(b'\n', &mut line).map_err(read)? == 0 {
                    break;
                }
                walk.line(&line);
            }
        }
        Ok(walk.end(self.read_small("head")?.is_some()))
    }
}

/// A walk through the lines.
struct Walk<'a> {
    head: Option<&'a Head>,
    /// Where the line that `head` names was found.
    head_fits: bool,
    segment: String,
    line: u64,
    offset: u64,
    lines: u64,
    tail: Tail,
    /// Bytes since the last good line that aren't lines of the chain.
    rest: Vec<u8>,
    rest_at: (String, u64),
    /// Whether the last line lacks its end, and where that is.
    open: bool,
    open_at: (String, u64),
    notes: Vec<Note>,
    /// The first problem; a jump ahead may turn out as a change of order.
    problem: Option<Problem>,
}

impl<'a> Walk<'a> {
    fn new(head: Option<&'a Head>) -> Self {
        let tail = Tail::genesis();
        Self {
            head_fits: head.is_some_and(|head| head.tail() == tail && head.size == 0),
            head,
            segment: String::new(),
            line: 0,
            offset: 0,
            lines: 0,
            tail,
            rest: Vec::new(),
            rest_at: (String::new(), 0),
            open: false,
            open_at: (String::new(), 0),
            notes: Vec::new(),
            problem: None,
        }
    }

    fn begin(&mut self, segment: &str) {
        segment.clone_into(&mut self.segment);
        self.line = 0;
        self.offset = 0;
    }

    /// The next line, with its line end if it has one.
    fn line(&mut self, line: &[u8]) {
        if self.open && self.problem.is_none() {
            // A writer gives the line before its own its end.
            self.problem = Some(Problem {
                segment: self.open_at.0.clone(),
                line: self.open_at.1,
                kind: ProblemKind::Changed,
            });
        }
        self.line += 1;
        self.open = line.last() != Some(&b'\n');
        if self.open {
            self.open_at = (self.segment.clone(), self.line);
        }
        self.offset += line.len() as u64;
        let link = Link::of_line(line);
        if let Some(problem) = &mut self.problem {
            // Only whether a line that seemed missing comes later.
            if let (ProblemKind::Missing { from, .. }, Some(link)) = (&problem.kind, &link)
                && link.seq == *from
            {
                problem.kind = ProblemKind::Reordered;
            }
            return;
        }
        let Some(link) = link else {
            if self.rest.is_empty() {
                self.rest_at = (self.segment.clone(), self.line);
            }
            self.rest.extend_from_slice(line);
            return;
        };
        let gap = serde_json::from_slice::<Entry>(line)
            .ok()
            .and_then(|entry| entry.event.gap);
        if !self.rest.is_empty() && !gap.as_ref().is_some_and(|gap| tells_of(gap, &self.rest)) {
            let (segment, line) = self.rest_at.clone();
            self.problem = Some(Problem {
                segment,
                line,
                kind: ProblemKind::Changed,
            });
            return;
        }
        if let Some(kind) = self.misplaced(&link) {
            return self.wrong(kind);
        }
        match &gap {
            Some(Gap { headless: true, .. }) => return self.wrong(ProblemKind::NoHead),
            Some(Gap { foreign: true, .. }) => return self.wrong(ProblemKind::Changed),
            // It tells that lines were missing at the end, and none are.
            Some(Gap { bytes: 0, .. }) => return self.wrong(ProblemKind::Head),
            Some(Gap { bytes, .. }) => {
                let (segment, line) = self.rest_at.clone();
                let text = format!("a writer was killed; {bytes} bytes of its line are here");
                self.notes.push(Note {
                    segment,
                    line,
                    text,
                });
            }
            None => {}
        }
        self.rest.clear();
        self.lines += 1;
        self.tail = link.tail();
        if let Some(head) = self.head
            && head.seq == link.seq
        {
            self.head_fits = *head == Head::new(&self.segment, self.offset, &self.tail);
        }
    }

    /// What is wrong with the place of a whole line.
    fn misplaced(&self, link: &Link) -> Option<ProblemKind> {
        let expected = self.tail.seq + 1;
        if link.follows(&self.tail) {
            None
        } else if link.seq > expected {
            Some(ProblemKind::Missing {
                from: expected,
                to: link.seq - 1,
            })
        } else if link.seq < expected {
            Some(ProblemKind::Duplicated)
        } else {
            Some(ProblemKind::Unchained)
        }
    }

    fn wrong(&mut self, kind: ProblemKind) {
        self.problem = Some(Problem {
            segment: self.segment.clone(),
            line: self.line,
            kind,
        });
    }

    fn end(mut self, head_exists: bool) -> CheckReport {
        if self.problem.is_none() {
            self.problem = self.wrong_at_end(head_exists);
        }
        CheckReport {
            lines: self.lines,
            last_seq: self.tail.seq,
            last_hash: self.tail.hash,
            notes: self.notes,
            problem: self.problem,
        }
    }

    fn wrong_at_end(&mut self, head_exists: bool) -> Option<Problem> {
        let at_head = |kind| {
            Some(Problem {
                segment: "head".to_owned(),
                line: 1,
                kind,
            })
        };
        let (segment, line) = self.rest_at.clone();
        match self.head {
            None if head_exists => return at_head(ProblemKind::Head),
            None if self.line == 0 => return None,
            None => {
                let (segment, line) = (self.segment.clone(), self.line);
                return Some(Problem {
                    segment,
                    line,
                    kind: ProblemKind::NoHead,
                });
            }
            // The rest may be what is left of the first of them.
            Some(head) if head.seq > self.tail.seq => {
                let (segment, line) = if self.rest.is_empty() {
                    (self.segment.clone(), self.line)
                } else {
                    (segment, line)
                };
                let kind = ProblemKind::Cut {
                    from: self.tail.seq + 1,
                    to: head.seq,
                };
                return Some(Problem {
                    segment,
                    line,
                    kind,
                });
            }
            Some(_) if !self.head_fits => return at_head(ProblemKind::Head),
            Some(_) => {}
        }
        if self.rest.contains(&b'\n') {
            return Some(Problem {
                segment,
                line,
                kind: ProblemKind::Changed,
            });
        }
        if !self.rest.is_empty() {
            let text = format!(
                "a writer was killed; {} bytes of its line are here",
                self.rest.len()
            );
            self.notes.push(Note {
                segment,
                line,
                text,
            });
        }
        None
    }
}

/// Whether `gap` tells of exactly these bytes.
fn tells_of(gap: &Gap, rest: &[u8]) -> bool {
    let rest = rest.strip_suffix(b"\n").unwrap_or(rest);
    rest.len() as u64 == gap.bytes && sha256_hex(rest) == gap.sha256
}
