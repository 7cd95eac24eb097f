//! The messages of a run, kept until they may go.
//!
//! A *journal* keeps what isn't acknowledged: in memory while that is little, in
//! files of the run's folder beyond. A *log*, of a job, is always in files, and
//! keeps its head and its tail.
//!
//! Invariant: a file begins with a message and ends with one.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// What a journal holds in memory before it goes to a file.
const MEMORY: usize = 24 * 1024 * 1024;
/// Small messages are put together up to this.
const CHUNK: usize = 32 * 1024;
/// The size of a log's files.
const FILE: u64 = 4 * 1024 * 1024;
/// How many files a log keeps of its head, and how many in all.
const HEAD: usize = 2;
const FILES: usize = 6;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Journal,
    Log,
}

impl Kind {
    fn prefix(self) -> &'static str {
        match self {
            Self::Journal => "journal.",
            Self::Log => "log.",
        }
    }
}

/// A sequence of messages.
#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    kind: Kind,
    /// Nothing before it is wanted any more.
    start: u64,
    end: u64,
    files: VecDeque<Piece>,
    chunks: VecDeque<(u64, Vec<u8>)>,
    in_memory: usize,
    writing: Option<File>,
    reading: Option<(u64, File)>,
    disk_failed: bool,
}

/// One file.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u64,
    length: u64,
}

/// What stands at a position.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// So many bytes were read.
    Bytes(usize),
    /// Nothing is kept up to this position.
    Gap(u64),
    /// Nothing more has come.
    End,
}

impl Journal {
    /// An empty one.
    pub(crate) fn new(folder: &Path, kind: Kind) -> Self {
        Self {
            folder: folder.to_owned(),
            kind,
            start: 0,
            end: 0,
            files: VecDeque::new(),
            chunks: VecDeque::new(),
            in_memory: 0,
            writing: None,
            reading: None,
            disk_failed: false,
        }
    }

    /// What an ended job left.
    pub(crate) fn open_log(folder: &Path) -> Self {
        let mut log = Self::new(folder, Kind::Log);
        let mut files: Vec<Piece> = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name();
                let start = name
                    .to_str()?
                    .strip_prefix(Kind::Log.prefix())?
                    .parse()
                    .ok()?;
                let length = entry.metadata().ok()?.len();
                Some(Piece { start, length })
            })
            .collect();
        files.sort_by_key(|piece| piece.start);
        log.end = files.last().map_or(0, |piece| piece.start + piece.length);
        log.files = files.into();
        log
    }

    /// The position behind the last message.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The position of the first byte that isn't acknowledged.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Whether more can be kept: false once the disk took no more.
    pub(crate) fn can_grow(&self) -> bool {
        !self.disk_failed || self.in_memory < MEMORY
    }

    /// Add one message.
    pub(crate) fn append(&mut self, message: Vec<u8>) {
        let length = message.len();
        match self.kind {
            Kind::Journal => {
                let at = self.end;
                self.end += length as u64;
                self.in_memory += length;
                match self.chunks.back_mut() {
                    Some((_, chunk)) if chunk.len() + length <= CHUNK => chunk.extend(message),
                    _ => self.chunks.push_back((at, message)),
                }
                if self.in_memory > MEMORY {
                    self.disk_failed = self.spill().is_err();
                }
            }
            Kind::Log => {
                // A disk that is full costs a gap, never the job.
                if self.append_to_file(&message).is_err() {
                    self.writing = None;
                }
                self.end += length as u64;
            }
        }
    }

    fn path(&self, start: u64) -> PathBuf {
        self.folder.join(format!("{}{start}", self.kind.prefix()))
    }

    fn create(&self, start: u64) -> io::Result<File> {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.path(start))
    }

    /// Move what is in memory to a file.
    fn spill(&mut self) -> io::Result<()> {
        let Some((start, _)) = self.chunks.front() else {
            return Ok(());
        };
        let start = *start;
        let mut file = self.create(start)?;
        for (_, chunk) in &self.chunks {
            if let Err(error) = file.write_all(chunk) {
                fs::remove_file(self.path(start))?;
                return Err(error);
            }
        }
        let length = self.end - start;
        self.files.push_back(Piece { start, length });
        self.chunks.clear();
        self.in_memory = 0;
        Ok(())
    }

    fn append_to_file(&mut self, message: &[u8]) -> io::Result<()> {
        let full = self.files.back().is_none_or(|piece| piece.length >= FILE);
        if full || self.writing.is_none() {
            self.writing = Some(self.create(self.end)?);
            self.files.push_back(Piece {
                start: self.end,
                length: 0,
            });
            if self.files.len() > FILES
                && let Some(piece) = self.files.remove(HEAD)
            {
                fs::remove_file(self.path(piece.start))?;
            }
        }
        if let (Some(file), Some(piece)) = (&mut self.writing, self.files.back_mut()) {
            file.write_all(message).inspect_err(|_| {
                // The next message begins a file of its own.
                drop(file.set_len(piece.length));
            })?;
            piece.length += message.len() as u64;
        }
        Ok(())
    }

    /// What was taken up to `offset` may go.
    pub(crate) fn acknowledge(&mut self, offset: u64) {
        self.start = self.start.max(offset.min(self.end));
        while let Some(piece) = self.files.front()
            && piece.start + piece.length <= self.start
        {
            // Left over, it goes with the folder.
            drop(fs::remove_file(self.path(piece.start)));
            self.files.pop_front();
        }
        while let Some((at, chunk)) = self.chunks.front()
            && at + chunk.len() as u64 <= self.start
        {
            self.in_memory -= chunk.len();
            self.chunks.pop_front();
        }
    }

    /// Read what stands at `position`, as far as `buffer` goes.
    pub(crate) fn read(
        &mut self,
        position: u64,
        buffer: &mut Vec<u8>,
        limit: usize,
    ) -> io::Result<Found> {
        buffer.clear();
        let index = self.files.partition_point(|piece| piece.start <= position);
        if let Some(piece) = index
            .checked_sub(1)
            .and_then(|index| self.files.get(index).copied())
            && position < piece.start + piece.length
        {
            let rest = piece.start + piece.length - position;
            let length = usize::try_from(rest).unwrap_or(limit).min(limit);
            buffer.resize(length, 0);
            if self
                .reading
                .as_ref()
                .is_none_or(|(start, _)| *start != piece.start)
            {
                self.reading = Some((piece.start, File::open(self.path(piece.start))?));
            }
            if let Some((_, file)) = &self.reading {
                file.read_exact_at(buffer, position - piece.start)?;
            }
            return Ok(Found::Bytes(length));
        }
        let first = self.chunks.partition_point(|(at, _)| *at <= position);
        if let Some(first) = first.checked_sub(1) {
            for (at, chunk) in self.chunks.iter().skip(first) {
                let skip = usize::try_from(position.saturating_sub(*at)).unwrap_or(usize::MAX);
                let rest = chunk.get(skip..).unwrap_or_default();
                buffer.extend(&rest[..rest.len().min(limit - buffer.len())]);
                if buffer.len() == limit {
                    break;
                }
            }
            if !buffer.is_empty() {
                return Ok(Found::Bytes(buffer.len()));
            }
        }
        if position >= self.end {
            return Ok(Found::End);
        }
        let next = self.files.get(index).map_or(self.end, |piece| piece.start);
        Ok(Found::Gap(next))
    }

    /// The one message at `position`.
    pub(crate) fn read_message(
        &mut self,
        position: u64,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Found> {
        match self.read(position, buffer, 4)? {
            Found::Bytes(4) => {}
            Found::Bytes(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            other => return Ok(other),
        }
        let length = buffer
            .first_chunk()
            .map_or(0, |prefix| u32::from_le_bytes(*prefix) as usize);
        if length > boxery_wire::MAX_MESSAGE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let found = self.read(position, buffer, length + 4)?;
        if found != Found::Bytes(length + 4) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(found)
    }

    /// Remove every file.
    pub(crate) fn clear(&mut self) {
        let files = std::mem::take(&mut self.files);
        for piece in files {
            drop(fs::remove_file(self.path(piece.start)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u32, length: usize) -> Vec<u8> {
        let mut bytes = u32::try_from(length).unwrap().to_le_bytes().to_vec();
        bytes.extend(number.to_le_bytes().iter().cycle().take(length));
        bytes
    }

    fn read_from(journal: &mut Journal, mut position: u64) -> Vec<u8> {
        let (mut all, mut buffer) = (Vec::new(), Vec::new());
        while let Found::Bytes(length) = journal.read(position, &mut buffer, 70_000).unwrap() {
            all.extend(&buffer);
            position += length as u64;
        }
        all
    }

    #[test]
    fn a_journal_gives_every_unacknowledged_byte_from_memory_and_files() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::new(folder.path(), Kind::Journal);
        let mut all = Vec::new();
        for number in 0..1000 {
            let bytes = message(number, 60_000);
            all.extend(&bytes);
            journal.append(bytes);
        }
        let files = || fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files(), 2);
        assert!(journal.in_memory <= MEMORY);
        for position in [0, 1, 59_999, 25 * 1024 * 1024 + 7, all.len() - 1, all.len()] {
            assert!(
                read_from(&mut journal, position as u64) == all[position..],
                "{position}"
            );
        }
        journal.acknowledge(30 * 1024 * 1024);
        assert_eq!(files(), 1);
        let rest = read_from(&mut journal, 30 * 1024 * 1024);
        assert!(rest == all[30 * 1024 * 1024..]);
        journal.acknowledge(u64::MAX);
        assert_eq!(
            (files(), journal.in_memory, journal.start()),
            (0, 0, all.len() as u64)
        );
    }

    #[test]
    fn a_log_keeps_head_and_tail_and_says_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Journal::new(folder.path(), Kind::Log);
        for number in 0..1000 {
            log.append(message(number, 60_000));
        }
        let mut again = Journal::open_log(folder.path());
        assert_eq!(again.end(), log.end());
        for log in [&mut log, &mut again] {
            let (mut position, mut numbers, mut gaps) = (0, Vec::new(), 0);
            let mut buffer = Vec::new();
            loop {
                match log.read_message(position, &mut buffer).unwrap() {
                    Found::Bytes(length) => {
                        numbers.push(u32::from_le_bytes(*buffer[4..].first_chunk().unwrap()));
                        position += length as u64;
                    }
                    Found::Gap(next) => {
                        gaps += 1;
                        position = next;
                    }
                    Found::End => break,
                }
            }
            assert_eq!((gaps, numbers[0], *numbers.last().unwrap()), (1, 0, 999));
            assert!(
                numbers.len() > 300 && numbers.len() < 500,
                "{}",
                numbers.len()
            );
        }
    }
}
