//! Writing a line, and mending what a killed writer left.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

use crate::chain::{Link, Tail, render, sha256_hex};
use crate::event::{Entry, Event, Gap, Kind};
use crate::log::{Appended, Head, Log, RecordError, open_own, segment_name};

/// Where the next line goes.
struct Place {
    segment: String,
    tail: Tail,
    /// What has to be told before it.
    gap: Option<Gap>,
    /// The segment whose last line lacks its end.
    unfinished: Option<String>,
}

impl Log {
    /// Append `event`: lock, look at `head`, write one line, replace `head`.
    ///
    /// An error means that the event is not on record.
    pub fn append(&self, event: &Event) -> Result<Appended, RecordError> {
        let _lock = self.lock_for_writing()?;
        let place = self.place(event)?;
        if let Some(segment) = &place.unfinished {
            self.write(segment, b"\n")?;
        }
        let mut tail = place.tail;
        let mut text = String::new();
        let told = place.gap.map(|gap| Event {
            gap: Some(gap),
            ..Event::new(event.time, Kind::Gap)
        });
        for event in told.iter().chain([event]) {
            let entry = Entry {
                v: Entry::VERSION,
                seq: tail.seq.saturating_add(1),
                event: event.clone(),
                prev: tail.hash,
                hash: String::new(),
            };
            let (line, next) =
                render(&entry).map_err(|source| self.write_error(&place.segment, source))?;
            text.push_str(&line);
            tail = next;
        }
        let (file, before) = self.write(&place.segment, text.as_bytes())?;
        let head = Head::new(&place.segment, before + text.len() as u64, &tail);
        if let Err(error) = self.write_head(&head) {
            // Not on record is not on record: the next append would adopt the line.
            drop(file.set_len(before));
            return Err(error);
        }
        Ok(Appended {
            seq: tail.seq,
            hash: tail.hash,
        })
    }

    /// Where the next line goes. When `head` agrees with its segment's size,
    /// nothing of the segment is read.
    fn place(&self, event: &Event) -> Result<Place, RecordError> {
        let today = segment_name(event.time);
        let Some(head) = self.read_head()? else {
            return self.place_without_head(today);
        };
        // A clock that was set back doesn't take the log back.
        let segment = today.max(head.segment.clone());
        if segment == head.segment && self.size(&segment)? == head.size {
            return Ok(Place {
                segment,
                tail: head.tail(),
                gap: None,
                unfinished: None,
            });
        }
        self.place_after(&head, segment)
    }

    /// `head` and the log disagree, or a new day begins.
    fn place_after(&self, head: &Head, today: String) -> Result<Place, RecordError> {
        let mut segments = self.segments()?;
        segments.retain(|name| *name >= head.segment);
        let mut cut = self.size(&head.segment)? < head.size;
        let mut tail = head.tail();
        let mut rest = Vec::new();
        if cut {
            // What is left is for `check`; only an unfinished line must be closed.
            if let Some(last) = segments.last() {
                let bytes = self.read_from(last, 0)?;
                let lines = bytes.iter().rposition(|byte| *byte == b'\n');
                rest.extend_from_slice(&bytes[lines.map_or(0, |at| at + 1)..]);
            }
        } else {
            for name in &segments {
                let offset = if *name == head.segment { head.size } else { 0 };
                rest.extend(self.read_from(name, offset)?);
            }
        }
        let open = rest.last().is_some_and(|byte| *byte != b'\n');
        if cut && Link::of_line(&rest).is_some_and(|link| link.tail() == tail) {
            // Only its line end is lost.
            rest.clear();
            cut = false;
        } else if !cut {
            let adopted = adopt(&mut tail, &rest);
            rest.drain(..adopted);
        }
        let gap = (cut || !rest.is_empty()).then(|| gap(&rest, false));
        Ok(place(segments, today, tail, gap, open))
    }

    fn place_without_head(&self, today: String) -> Result<Place, RecordError> {
        let segments = self.segments()?;
        if segments.is_empty() {
            // Head first, so that a log without one is never the work of a killed writer.
            self.write_head(&Head::new(&today, 0, &Tail::genesis()))?;
            return Ok(place(segments, today, Tail::genesis(), None, false));
        }
        // From the end back to the last line that is whole.
        let mut rest = Vec::new();
        let mut tail = Tail::genesis();
        let mut open = false;
        for name in segments.iter().rev() {
            let mut bytes = self.read_from(name, 0)?;
            if Some(name) == segments.last() {
                open = bytes.last().is_some_and(|byte| *byte != b'\n');
            }
            let found = last_link(&bytes);
            let whole = found.as_ref().map_or(0, |(_, end)| *end);
            let mut after = bytes.split_off(whole);
            after.append(&mut rest);
            rest = after;
            if let Some((link, _)) = found {
                tail = link.tail();
                break;
            }
        }
        let gap = gap(&rest, true);
        Ok(place(segments, today, tail, Some(gap), open))
    }

    /// Append `bytes` to a segment, all or nothing; its size before.
    fn write(&self, segment: &str, bytes: &[u8]) -> Result<(File, u64), RecordError> {
        let failed = |source| self.write_error(segment, source);
        let mut options = fs::OpenOptions::new();
        let mut file = open_own(
            &self.folder.join(segment),
            options.append(true).create(true),
        )
        .map_err(failed)?;
        let before = file.metadata().map_err(failed)?.len();
        if let Err(source) = file.write_all(bytes) {
            // A full disk takes a part of a line; nobody else writes, so it can go.
            drop(file.set_len(before));
            return Err(failed(source));
        }
        Ok((file, before))
    }

    /// Replace `head` by one write in place, of one length always.
    ///
    /// Linux copies so short a write in one piece even when the writer is
    /// killed, readers wait for the lock, and no room on the disk is needed. A
    /// rename over the old file would cost 2 ms of each call on ext4, which
    /// starts writing the new one out at once.
    fn write_head(&self, head: &Head) -> Result<(), RecordError> {
        let write = || {
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).truncate(false);
            let mut file = open_own(&self.folder.join("head"), &mut options)?;
            let text = head.render()?;
            file.write_all(text.as_bytes())?;
            if file.metadata()?.len() != text.len() as u64 {
                file.set_len(text.len() as u64)?;
            }
            Ok(())
        };
        write().map_err(|source| self.write_error("head", source))
    }

    /// A segment's size; 0 when there is none.
    fn size(&self, segment: &str) -> Result<u64, RecordError> {
        match fs::symlink_metadata(self.folder.join(segment)) {
            Ok(found) => Ok(found.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(source) => Err(self.read_error(segment, source)),
        }
    }

    fn read_from(&self, segment: &str, offset: u64) -> Result<Vec<u8>, RecordError> {
        let mut bytes = Vec::new();
        let mut read = || {
            let path = self.folder.join(segment);
            let mut file = match open_own(&path, fs::OpenOptions::new().read(true)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
                other => other?,
            };
            file.seek(SeekFrom::Start(offset))?;
            file.read_to_end(&mut bytes)
        };
        read().map_err(|source| self.read_error(segment, source))?;
        Ok(bytes)
    }
}

fn place(segments: Vec<String>, today: String, tail: Tail, gap: Option<Gap>, open: bool) -> Place {
    let last = segments.into_iter().next_back();
    Place {
        unfinished: last.clone().filter(|_| open),
        segment: last.map_or(today.clone(), |last| last.max(today)),
        tail,
        gap,
    }
}

fn gap(rest: &[u8], headless: bool) -> Gap {
    // The line end that closes an unfinished line isn't part of it.
    let rest = rest.strip_suffix(b"\n").unwrap_or(rest);
    Gap {
        bytes: rest.len() as u64,
        sha256: sha256_hex(rest),
        foreign: rest.contains(&b'\n'),
        headless,
    }
}

/// Take over the whole lines at the start of `bytes` that follow `tail`: their
/// writer was killed before it replaced `head`, or before the last line's end.
/// How many bytes they are.
fn adopt(tail: &mut Tail, bytes: &[u8]) -> usize {
    let mut adopted = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(link) = Link::of_line(line).filter(|link| link.follows(tail)) else {
            break;
        };
        *tail = link.tail();
        adopted += line.len();
    }
    adopted
}

/// The last whole line whose own hash fits, and where it ends.
fn last_link(bytes: &[u8]) -> Option<(Link, usize)> {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let mut end = bytes.len();
    for line in lines.into_iter().rev() {
        if let Some(link) = Link::of_line(line) {
            return Some((link, end));
        }
        end -= line.len();
    }
    None
}
