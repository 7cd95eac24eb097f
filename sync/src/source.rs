//! Content to be sent: what a plan saw at a path, read again.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek as _, SeekFrom};

use rustix::fs::{Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

use crate::root::Root;
use crate::{EntryPath, State};

/// A file's bytes or a link's target. Whoever takes them knows their digest, and so
/// whether they are still what the plan saw.
#[derive(Debug)]
pub enum Source {
    /// A file.
    File(File),
    /// A link's target.
    Link(Cursor<Vec<u8>>),
}

impl Source {
    /// What lies at `path`; `None` if nothing of the kind of `state` does any more.
    pub fn open(root: &Root, path: &EntryPath, state: &State) -> io::Result<Option<Self>> {
        let gone = |error: Errno| match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::INVAL | Errno::NXIO => Ok(None),
            error => Err(io::Error::from(error)),
        };
        let folder = match root.parent(path) {
            Ok(folder) => folder,
            Err(error) => return gone(error),
        };
        match state {
            State::File { .. } => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                match openat(&folder, path.file_name(), flags, Mode::empty()) {
                    Ok(file) => {
                        let file = File::from(file);
                        let is_file = file.metadata()?.is_file();
                        Ok(is_file.then_some(Self::File(file)))
                    }
                    Err(error) => gone(error),
                }
            }
            State::Link { .. } => match readlinkat(&folder, path.file_name(), Vec::new()) {
                Ok(target) => Ok(Some(Self::Link(Cursor::new(target.into_bytes())))),
                Err(error) => gone(error),
            },
            State::Absent | State::Folder => Ok(None),
        }
    }

    /// Leave out what the taker has.
    pub fn skip(&mut self, position: u64) -> io::Result<()> {
        let position = SeekFrom::Start(position);
        match self {
            Self::File(file) => file.seek(position).map(drop),
            Self::Link(target) => target.seek(position).map(drop),
        }
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Link(target) => target.read(buffer),
        }
    }
}
