//! Reading events back.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::vec::IntoIter;

use crate::event::{Entry, Event};
use crate::log::{Log, RecordError, open_own, segment_name};

/// Which events are wanted; every field that is set must agree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this session.
    pub session: Option<String>,
    /// Of this agent.
    pub agent: Option<String>,
    /// About this VM.
    pub vm: Option<String>,
    /// At this time or later, seconds since 1970.
    pub since: Option<u64>,
    /// Only denials.
    pub denied: bool,
}

impl Filter {
    /// Whether `event` is wanted.
    pub fn matches(&self, event: &Event) -> bool {
        let agrees =
            |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        agrees(&self.session, &event.session)
            && agrees(&self.agent, &event.agent)
            && agrees(&self.vm, &event.vm)
            && self.since.is_none_or(|since| event.time >= since)
            && (!self.denied || event.decision.as_deref() == Some("deny"))
    }
}

impl Log {
    /// The events that `filter` wants, oldest first. A line that isn't an event
    /// is an `Err` of its own, and the events after it follow; an unfinished
    /// line at the end isn't there yet.
    pub fn entries(&self, filter: Filter) -> Result<Entries, RecordError> {
        let mut segments = self.segments()?;
        if let Some(since) = filter.since {
            // An event never lies in an earlier segment than its day's.
            let first = segment_name(since);
            segments.retain(|name| *name >= first);
        }
        Ok(Entries {
            log: self.clone(),
            filter,
            segments: segments.into_iter(),
            open: None,
        })
    }
}

/// The events of a log, by [`Log::entries`].
#[derive(Debug)]
pub struct Entries {
    log: Log,
    filter: Filter,
    segments: IntoIter<String>,
    open: Option<OpenSegment>,
}

#[derive(Debug)]
struct OpenSegment {
    name: String,
    reader: BufReader<File>,
    line: u64,
}

impl Iterator for Entries {
    type Item = Result<Entry, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(open) = &mut self.open else {
                let name = self.segments.next()?;
                let path = self.log.folder.join(&name);
                match open_own(&path, fs::OpenOptions::new().read(true)) {
                    Ok(file) => {
                        self.open = Some(OpenSegment {
                            name,
                            reader: BufReader::new(file),
                            line: 0,
                        });
                    }
                    Err(source) => return Some(Err(self.log.read_error(&name, source))),
                }
                continue;
            };
            let mut line = Vec::new();
            match open.reader.read_until(b'\n', &mut line) {
                Ok(_) if line.last() == Some(&b'\n') => open.line += 1,
                // The end, or a line that is being written.
                Ok(_) => {
                    self.open = None;
                    continue;
                }
                Err(source) => {
                    let error = self.log.read_error(&open.name, source);
                    self.open = None;
                    return Some(Err(error));
                }
            }
            match serde_json::from_slice::<Entry>(&line) {
                Ok(entry) if self.filter.matches(&entry.event) => return Some(Ok(entry)),
                Ok(_) => {}
                Err(source) => {
                    return Some(Err(RecordError::Line {
                        path: self.log.folder.join(&open.name),
                        line: open.line,
                        source,
                    }));
                }
            }
        }
    }
}
