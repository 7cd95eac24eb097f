//! Sends a file, or a folder and all that is in it.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::folder::OWNERS;
use super::{Step, Talk, Trouble, Watch};
use crate::{Blob, Item, RESUMED, Taken};

/// Bytes in one message.
const PIECE: usize = 64 * 1024;
/// As many entries are counted before the first one is sent.
const COUNTED: usize = 100_000;

/// Send what lies at `root`, but nothing up to `after`, and wait until it is in place.
/// What can't be read is told and left.
pub fn send(
    talk: &mut Talk,
    root: &Path,
    after: Option<&[u8]>,
    watch: Watch<'_>,
) -> Result<(), Trouble> {
    let mut sender = Sender {
        talk,
        watch,
        before: None,
    };
    if let Some((files, bytes)) = count(root) {
        (sender.watch)(Step::Total { files, bytes });
        sender.say(&Item::Total { files, bytes })?;
    }
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let relative = path.strip_prefix(root).unwrap_or(&path).to_owned();
        let name = relative.as_os_str().as_bytes();
        // In the order of the walk, in which a folder comes before what is in it.
        let is_done = after.is_some_and(|after| path_of(after) >= relative.as_path());
        let sent = if is_done {
            sender
                .announce(&path, name)
                .map(|()| list(&path, &mut open))
        } else {
            sender.entry(&path, name, &mut open)
        };
        if let Err(why) = sent?
            && !is_done
        {
            let why = why.to_string();
            (sender.watch)(Step::Left {
                path: name,
                why: &why,
            });
            let path = Blob::from(name);
            sender.say(&Item::Left { path, why })?;
        }
        if !is_done {
            sender.before = Some(name.to_vec());
        }
    }
    sender.say(&Item::End)?;
    match sender.talk.hear::<Taken>().map_err(Trouble::Broken)? {
        Taken::Done => {
            if let Some(before) = &sender.before {
                (sender.watch)(Step::Placed(before));
            }
            Ok(())
        }
        Taken::Failed { path, why } => Err(Trouble::There { path: path.0, why }),
        Taken::Have(_) => Err(Trouble::Broken(io::ErrorKind::InvalidData.into())),
    }
}

fn path_of(bytes: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

/// How many files there are, and their bytes; `None` for more than are counted.
fn count(root: &Path) -> Option<(u64, u64)> {
    let (mut files, mut bytes, mut seen) = (0, 0, 0_usize);
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        seen += 1;
        if seen > COUNTED {
            return None;
        }
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_file() {
            files += 1;
            bytes += metadata.len();
        } else if metadata.is_dir() {
            // What can't be read is told when its turn comes.
            list(&path, &mut open).ok();
        }
    }
    Some((files, bytes))
}

/// Note what is in a folder; nothing is in what is none.
fn list(path: &Path, open: &mut Vec<PathBuf>) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return Ok(());
    }
    let entries: io::Result<Vec<_>> =
        fs::read_dir(path).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut entries = entries?;
    // The last one is taken first.
    entries.sort_by(|a, b| b.cmp(a));
    open.extend(entries);
    Ok(())
}

struct Sender<'a, 'b> {
    talk: &'a mut Talk,
    watch: Watch<'b>,
    /// The last path that was sent.
    before: Option<Vec<u8>>,
}

/// The outer error is the conversation's, the inner one the path's.
type Sent = Result<io::Result<()>, Trouble>;

impl Sender<'_, '_> {
    /// Say it, unless the other end has said meanwhile that it can't go on.
    fn say(&mut self, item: &Item) -> Result<(), Trouble> {
        self.listen()?;
        let Err(error) = self.talk.say(item) else {
            return Ok(());
        };
        // It may have said why before it went.
        self.listen()?;
        Err(Trouble::Broken(error))
    }

    /// What the other end says unasked is why it can't go on.
    fn listen(&mut self) -> Result<(), Trouble> {
        match self.talk.heard::<Taken>() {
            Ok(None) => Ok(()),
            Ok(Some(Taken::Failed { path, why })) => Err(Trouble::There { path: path.0, why }),
            Ok(Some(Taken::Done | Taken::Have(_))) => {
                Err(Trouble::Broken(io::ErrorKind::InvalidData.into()))
            }
            Err(error) => Err(Trouble::Broken(error)),
        }
    }

    /// Name a folder again that whoever takes opens while something comes into it: it was
    /// closed when the earlier try ended, or has to be at the end of this one.
    fn announce(&mut self, path: &Path, name: &[u8]) -> Result<(), Trouble> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() && found.mode() & OWNERS != OWNERS => {
                self.say(&Item::Folder {
                    path: name.into(),
                    mode: found.mode() & 0o7777,
                })
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Send one entry, and note what is in it.
    fn entry(&mut self, path: &Path, name: &[u8], open: &mut Vec<PathBuf>) -> Sent {
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => return Ok(Err(error)),
        };
        let kind = metadata.file_type();
        if kind.is_dir() {
            self.say(&Item::Folder {
                path: name.into(),
                mode: metadata.mode() & 0o7777,
            })?;
            return Ok(list(path, open));
        }
        if kind.is_symlink() {
            return match fs::read_link(path) {
                Ok(target) => self
                    .say(&Item::Link {
                        path: name.into(),
                        target: Blob::from(target.as_os_str().as_bytes()),
                    })
                    .map(Ok),
                Err(error) => Ok(Err(error)),
            };
        }
        if !kind.is_file() {
            return Ok(Err(io::Error::other("neither a file, a folder nor a link")));
        }
        // What takes its place meanwhile must not hold us up.
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => self.file(&File::from(file), name),
            Err(error) => Ok(Err(error.into())),
        }
    }

    fn file(&mut self, file: &File, name: &[u8]) -> Sent {
        let metadata = match file.metadata() {
            Ok(metadata) if metadata.is_file() => metadata,
            Ok(_) => return Ok(Err(io::Error::other("it is no file any more"))),
            Err(error) => return Ok(Err(error)),
        };
        let size = metadata.len();
        let modified = metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec();
        let mut position = 0;
        self.say(&Item::File {
            path: name.into(),
            mode: metadata.mode() & 0o7777,
            size,
            modified,
        })?;
        if size >= RESUMED {
            position = match self.talk.hear::<Taken>().map_err(Trouble::Broken)? {
                Taken::Have(have) if have <= size => have,
                Taken::Failed { path, why } => return Err(Trouble::There { path: path.0, why }),
                Taken::Have(_) | Taken::Done => {
                    return Err(Trouble::Broken(io::ErrorKind::InvalidData.into()));
                }
            };
            // The other end works in order.
            if let Some(before) = &self.before {
                (self.watch)(Step::Placed(before));
            }
        }
        (self.watch)(Step::File {
            path: name,
            size,
            have: position,
        });
        match self.bytes(file, size, position)? {
            Ok(()) => {}
            Err(error) => return Ok(Err(error)),
        }
        let is_same = file.metadata().is_ok_and(|now| {
            now.len() == size && now.mtime() * 1_000_000_000 + now.mtime_nsec() == modified
        });
        if !is_same {
            (self.watch)(Step::Changed(name));
            self.say(&Item::Changed { path: name.into() })?;
        }
        Ok(Ok(()))
    }

    fn bytes(&mut self, file: &File, size: u64, mut position: u64) -> Sent {
        let mut buffer = vec![0; PIECE];
        while position < size {
            let data = match rustix::fs::seek(file, SeekFrom::Data(position)) {
                Ok(data) => data.min(size),
                // Nothing but zeros up to the end.
                Err(Errno::NXIO) => size,
                // A file system that knows no holes.
                Err(_) => position,
            };
            if data > position {
                if file.metadata().is_ok_and(|now| now.len() < data) {
                    return Ok(Err(io::Error::other("it became shorter meanwhile")));
                }
                self.say(&Item::Hole(data - position))?;
                (self.watch)(Step::Hole(data - position));
                position = data;
                continue;
            }
            let end = rustix::fs::seek(file, SeekFrom::Hole(position)).unwrap_or(size);
            let end = end.clamp(position + 1, size);
            while position < end {
                let length = usize::try_from(end - position).unwrap_or(PIECE).min(PIECE);
                match file.read_at(&mut buffer[..length], position) {
                    Ok(0) => return Ok(Err(io::Error::other("it became shorter meanwhile"))),
                    Ok(length) => {
                        self.say(&Item::Data(Blob::from(&buffer[..length])))?;
                        (self.watch)(Step::Data(length as u64));
                        position += length as u64;
                    }
                    Err(error) => return Ok(Err(error)),
                }
            }
        }
        Ok(Ok(()))
    }
}
