//! Sends a file, or a folder and all that is in it.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use boxery_wire::{Blob, Item, RESUMED, Taken};
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::talk::Talk;

/// Bytes in one message.
const PIECE: usize = 64 * 1024;

/// Send what lies at `root`. Errors are those of the conversation; what can't be
/// read is told and left.
pub(super) fn everything(talk: &mut Talk, root: &Path) -> io::Result<()> {
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let relative = path.strip_prefix(root).unwrap_or(&path);
        let name = Blob::from(relative.as_os_str().as_bytes());
        if let Err(why) = one(talk, &path, &name, &mut open)? {
            let why = why.to_string();
            talk.say(&Item::Left { path: name, why })?;
        }
    }
    Ok(())
}

/// Send one entry, and note what is in it. The outer error is the conversation's.
fn one(
    talk: &mut Talk,
    path: &Path,
    name: &Blob,
    open: &mut Vec<std::path::PathBuf>,
) -> io::Result<io::Result<()>> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return Ok(Err(error)),
    };
    let kind = metadata.file_type();
    if kind.is_dir() {
        let entries: io::Result<Vec<_>> =
            fs::read_dir(path).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
        let mode = metadata.mode() & 0o7777;
        talk.say(&Item::Folder {
            path: name.clone(),
            mode,
        })?;
        return Ok(entries.map(|mut entries| {
            // The last one is taken first.
            entries.sort_by(|a, b| b.cmp(a));
            open.extend(entries);
        }));
    }
    if kind.is_symlink() {
        return match fs::read_link(path) {
            Ok(target) => {
                let path = name.clone();
                let target = Blob::from(target.as_os_str().as_bytes());
                talk.say(&Item::Link { path, target }).map(Ok)
            }
            Err(error) => Ok(Err(error)),
        };
    }
    if !kind.is_file() {
        return Ok(Err(io::Error::other("neither a file, a folder nor a link")));
    }
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, rustix::fs::Mode::empty()) {
        Ok(file) => bytes(talk, &File::from(file), &metadata, name),
        Err(error) => Ok(Err(error.into())),
    }
}

fn bytes(
    talk: &mut Talk,
    file: &File,
    metadata: &Metadata,
    name: &Blob,
) -> io::Result<io::Result<()>> {
    let size = metadata.len();
    talk.say(&Item::File {
        path: name.clone(),
        mode: metadata.mode() & 0o7777,
        size,
        modified: metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec(),
    })?;
    let mut position = 0;
    if size >= RESUMED {
        match talk.next()? {
            Taken::Have(have) if have <= size => position = have,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
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
            talk.say(&Item::Hole(data - position))?;
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
                    talk.say(&Item::Data(Blob::from(&buffer[..length])))?;
                    position += length as u64;
                }
                Err(error) => return Ok(Err(error)),
            }
        }
    }
    Ok(Ok(()))
}
