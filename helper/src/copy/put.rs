//! Takes a copy: writes what comes below one target, and nowhere else.
//!
//! Invariant: below the target no link is followed, whoever puts one there, and a
//! file has its name only when it is whole.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use boxery_wire::{Item, RESUMED, Taken};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, renameat, symlinkat, unlinkat};
use rustix::io::Errno;

use super::talk::{Talk, Trouble};

/// A file that is on its way.
struct Coming {
    path: Vec<u8>,
    folder: OwnedFd,
    temporary: Vec<u8>,
    name: Vec<u8>,
    file: File,
    position: u64,
    size: u64,
    mode: u32,
    modified: i64,
}

/// Take everything up to the end. The target's own folder has to be there.
pub(super) fn everything(talk: &mut Talk, target: &Path) -> Result<(), Trouble> {
    let mut coming: Option<Coming> = None;
    loop {
        let item: Item = talk.next().map_err(|error| Trouble {
            path: Vec::new(),
            error,
        })?;
        let path = match &item {
            Item::Folder { path, .. } | Item::File { path, .. } | Item::Link { path, .. } => {
                path.0.clone()
            }
            Item::Data(_) | Item::Hole(_) => coming.as_ref().map_or(Vec::new(), |f| f.path.clone()),
            Item::Left { .. } | Item::End => Vec::new(),
        };
        let trouble = |error| Trouble { path, error };
        let ends = !matches!(item, Item::Data(_) | Item::Hole(_) | Item::Left { .. });
        if ends && let Some(file) = coming.take() {
            let path = file.path.clone();
            file.finish().map_err(|error| Trouble { path, error })?;
        }
        match item {
            Item::End => return Ok(()),
            // What came of a file may be of use the next time.
            Item::Left { .. } => coming = None,
            item => take(talk, target, item, &mut coming).map_err(trouble)?,
        }
    }
}

fn take(talk: &mut Talk, target: &Path, item: Item, coming: &mut Option<Coming>) -> io::Result<()> {
    match item {
        Item::Folder { path, mode } => {
            let (folder, name) = place(target, &path)?;
            // Whoever writes into it has to be able to.
            match mkdirat(&folder, name.as_slice(), Mode::from_raw_mode(mode | 0o700)) {
                Err(Errno::EXIST) => enter(&folder, &name).map(drop),
                done => Ok(done?),
            }
        }
        Item::Link { path, target: to } => {
            let (folder, name) = place(target, &path)?;
            let temporary = [b".", name.as_slice(), b".boxery-link"].concat();
            match unlinkat(&folder, temporary.as_slice(), AtFlags::empty()) {
                Err(error) if error != Errno::NOENT => return Err(error.into()),
                Ok(()) | Err(_) => {}
            }
            symlinkat(to.0.as_slice(), &folder, temporary.as_slice())?;
            Ok(renameat(
                &folder,
                temporary.as_slice(),
                &folder,
                name.as_slice(),
            )?)
        }
        Item::File {
            path,
            mode,
            size,
            modified,
        } => {
            let file = Coming::open(target, path.0, mode, size, modified)?;
            if size >= RESUMED {
                talk.say(&Taken::Have(file.position))?;
            }
            *coming = Some(file);
            Ok(())
        }
        Item::Data(bytes) => {
            let file = coming.as_mut().ok_or(io::ErrorKind::InvalidData)?;
            file.advance(bytes.len() as u64)?;
            file.file
                .write_all_at(&bytes, file.position - bytes.len() as u64)
        }
        Item::Hole(length) => coming
            .as_mut()
            .ok_or(io::ErrorKind::InvalidData)?
            .advance(length),
        Item::Left { .. } | Item::End => Ok(()),
    }
}

impl Coming {
    fn open(target: &Path, path: Vec<u8>, mode: u32, size: u64, modified: i64) -> io::Result<Self> {
        let (folder, name) = place(target, &path)?;
        // The same name means the same file: size and time are in it.
        let suffix = format!(".boxery-{size:x}-{modified:x}");
        let kept = name.len().min(200);
        let temporary = [b".", &name[..kept], suffix.as_bytes()].concat();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(
            &folder,
            temporary.as_slice(),
            flags,
            Mode::from_raw_mode(0o600),
        )?;
        let file = File::from(file);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let position = if size >= RESUMED && metadata.len() <= size {
            metadata.len()
        } else {
            file.set_len(0)?;
            0
        };
        Ok(Self {
            path,
            folder,
            temporary,
            name,
            file,
            position,
            size,
            mode,
            modified,
        })
    }

    fn advance(&mut self, length: u64) -> io::Result<()> {
        self.position = self
            .position
            .checked_add(length)
            .filter(|position| *position <= self.size)
            .ok_or(io::ErrorKind::InvalidData)?;
        Ok(())
    }

    /// Give a file that is whole its name.
    fn finish(self) -> io::Result<()> {
        if self.position != self.size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.file.set_len(self.size)?;
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(self.mode & 0o777))?;
        if let Ok(modified) = u64::try_from(self.modified) {
            let modified = UNIX_EPOCH + Duration::from_nanos(modified);
            self.file.set_modified(modified)?;
        }
        let (folder, temporary) = (&self.folder, self.temporary.as_slice());
        Ok(renameat(folder, temporary, folder, self.name.as_slice())?)
    }
}

/// The folder that a path lies in, and its name there. The target itself has the
/// empty path.
fn place(target: &Path, path: &[u8]) -> io::Result<(OwnedFd, Vec<u8>)> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let parent = target.parent().map(PathBuf::from).ok_or_else(invalid)?;
    let name = target.file_name().ok_or_else(invalid)?.as_bytes().to_vec();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = openat(CWD, &parent, flags, Mode::empty())?;
    let mut last = name;
    if path.is_empty() {
        return Ok((folder, last));
    }
    for part in path.split(|byte| *byte == b'/') {
        if part.is_empty() || part == b"." || part == b".." {
            return Err(invalid());
        }
        folder = enter(&folder, &last)?;
        last = part.to_vec();
    }
    Ok((folder, last))
}

/// Enter a real folder, never a link to one.
fn enter(folder: &OwnedFd, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(
        folder,
        OsStr::from_bytes(name),
        flags,
        Mode::empty(),
    )?)
}
