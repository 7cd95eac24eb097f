//! Where the log lies: segments, `head` and lock.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use fs2::FileExt as _;
use serde::{Deserialize, Serialize};

use crate::chain::Tail;
use crate::event::timestamp_of;

/// A log that can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A file exists and can't be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file can't be written.
    #[error("cannot write `{path}`")]
    Write {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line isn't an event.
    #[error("line {line} of `{path}` is not an event")]
    Line {
        /// The segment.
        path: Utf8PathBuf,
        /// Its line, from 1.
        line: u64,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl RecordError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Read { .. } => None,
            Self::Write { .. } => Some("free some space, or see that the folder is yours"),
            Self::Line { .. } => Some("`boxery log check` tells more"),
        }
    }
}

/// Where a line ended up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Its number.
    pub seq: u64,
    /// Its hash: what a witness elsewhere keeps.
    pub hash: String,
}

/// The log in one folder.
#[derive(Debug, Clone)]
pub struct Log {
    /// The folder; made by the first append.
    pub folder: Utf8PathBuf,
}

impl Log {
    /// The log in `folder`.
    pub fn new(folder: Utf8PathBuf) -> Self {
        Self { folder }
    }

    /// The segments, oldest first.
    pub(crate) fn segments(&self) -> Result<Vec<String>, RecordError> {
        let read = |source| self.read_error("", source);
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(read(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(read)?.file_name();
            if let Some(name) = name.to_str()
                && is_segment(name)
            {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The file `head`: `Ok(None)` when there is none or it isn't one.
    pub(crate) fn read_head(&self) -> Result<Option<Head>, RecordError> {
        let text = self.read_small("head")?;
        Ok(text.and_then(|text| Head::parse(&text)))
    }

    pub(crate) fn read_small(&self, name: &str) -> Result<Option<String>, RecordError> {
        let mut text = Vec::new();
        match open_own(&self.folder.join(name), fs::OpenOptions::new().read(true)) {
            Ok(file) => {
                file.take(64 * 1024)
                    .read_to_end(&mut text)
                    .map_err(|source| self.read_error(name, source))?;
                Ok(String::from_utf8(text).ok())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.read_error(name, source)),
        }
    }

    /// Wait until no other process appends; the guard keeps it so.
    pub(crate) fn lock_for_writing(&self) -> Result<File, RecordError> {
        let path = self.folder.join("lock");
        let options = || {
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).truncate(false);
            options
        };
        let file = match open_own(&path, &mut options()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(&self.folder)
                    .map_err(|source| self.write_error("", source))?;
                open_own(&path, &mut options())
            }
            other => other,
        }
        .map_err(|source| self.write_error("lock", source))?;
        file.lock_exclusive()
            .map_err(|source| self.write_error("lock", source))?;
        Ok(file)
    }

    /// Like [`Log::lock_for_writing`], without writing anything: `None` when
    /// nothing was ever written.
    pub(crate) fn lock_for_reading(&self) -> Result<Option<File>, RecordError> {
        match open_own(&self.folder.join("lock"), fs::OpenOptions::new().read(true)) {
            Ok(file) => {
                fs2::FileExt::lock_shared(&file)
                    .map_err(|source| self.read_error("lock", source))?;
                Ok(Some(file))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.read_error("lock", source)),
        }
    }

    pub(crate) fn read_error(&self, name: &str, source: io::Error) -> RecordError {
        RecordError::Read {
            path: self.path(name),
            source,
        }
    }

    pub(crate) fn write_error(&self, name: &str, source: io::Error) -> RecordError {
        RecordError::Write {
            path: self.path(name),
            source,
        }
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        if name.is_empty() {
            self.folder.clone()
        } else {
            self.folder.join(name)
        }
    }
}

/// The file `head`: what the log ended with when the last line was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    pub(crate) v: u32,
    pub(crate) segment: String,
    /// The segment's size in bytes.
    pub(crate) size: u64,
    pub(crate) seq: u64,
    pub(crate) hash: String,
}

impl Head {
    pub(crate) fn new(segment: &str, size: u64, tail: &Tail) -> Self {
        Self {
            v: 1,
            segment: segment.to_owned(),
            size,
            seq: tail.seq,
            hash: tail.hash.clone(),
        }
    }

    pub(crate) fn tail(&self) -> Tail {
        Tail {
            seq: self.seq,
            hash: self.hash.clone(),
        }
    }

    /// One line of JSON, filled up with spaces to one length.
    pub(crate) fn render(&self) -> io::Result<String> {
        let json = serde_json::to_string(self)?;
        Ok(format!("{json:<width$}\n", width = HEAD_BYTES - 1))
    }

    /// Only what [`Head::render`] writes, to the byte.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let head: Self = serde_json::from_str(text).ok()?;
        let same = head.render().ok()? == text;
        (same && head.v == 1 && is_segment(&head.segment)).then_some(head)
    }
}

/// The length of `head`: more than the longest numbers need, less than a sector.
const HEAD_BYTES: usize = 256;

/// The segment that an event at `time` belongs to.
pub(crate) fn segment_name(time: u64) -> String {
    format!("{}.jsonl", timestamp_of(time).strftime("%Y-%m-%d"))
}

fn is_segment(name: &str) -> bool {
    let Some(date) = name.strip_suffix(".jsonl") else {
        return false;
    };
    date.len() == 10
        && date.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// Open a private regular file; a link or a pipe in its place is an error.
pub(crate) fn open_own(path: &Utf8Path, options: &mut fs::OpenOptions) -> io::Result<File> {
    let file = options
        .mode(0o600)
        .custom_flags(NO_FOLLOW_NO_WAIT)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ))
    }
}

const NO_FOLLOW_NO_WAIT: i32 =
    (rustix::fs::OFlags::NOFOLLOW.bits() | rustix::fs::OFlags::NONBLOCK.bits()).cast_signed();
