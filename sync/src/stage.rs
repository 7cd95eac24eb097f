//! Where content waits until it is whole: a folder of its own at the top of the tree,
//! on the same disk, left out of every snapshot.
//!
//! What is in it: `HEX.part`, content on its way; `HEX`, whole content under its own
//! digest; `new-…` and `gone-…`, what is being moved in and out. After a crash the
//! next sync goes on with the first two and clears up the others, but deletes
//! nothing whose content it doesn't know from elsewhere.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, Dir, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, mkdirat, openat,
    renameat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::root::Root;
use crate::{Digest, State};

/// The stage's name at the top of a tree.
pub const STAGE: &str = ".boxery-stage";

/// Where a sync puts content that it found in a stage and knows from nowhere.
pub const KEPT: &str = ".boxery-kept";

/// A longer target is none of a link's.
const LONGEST_TARGET: u64 = 64 * 1024;

/// The stage of one tree. While it is open no other sync has it.
#[derive(Debug)]
pub struct Stage {
    pub(crate) folder: OwnedFd,
    counter: u64,
}

impl Stage {
    /// Open the stage, made if it isn't there. [`io::ErrorKind::WouldBlock`] says that
    /// another sync is at work.
    pub fn open(root: &Root) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            match mkdirat(root.top(), STAGE, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let folder = openat(root.top(), STAGE, flags, Mode::empty())?;
            flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
            // Another sync may have removed it between the two.
            let here = fstat(&folder)?;
            match statat(root.top(), STAGE, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(there) if (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino) => {
                    let stage = Self { folder, counter: 0 };
                    stage.hide_from_git()?;
                    return Ok(stage);
                }
                Ok(_) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// `git status` doesn't show what isn't the user's.
    fn hide_from_git(&self) -> io::Result<()> {
        let mut file = File::from(self.create(b".gitignore")?);
        file.write_all(b"*\n")
    }

    fn create(&self, name: &[u8]) -> io::Result<OwnedFd> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(
            &self.folder,
            name,
            flags,
            Mode::from_raw_mode(0o600),
        )?)
    }

    fn open_file(&self, name: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.folder, name, flags, Mode::empty())?.into())
    }

    /// Whether `digest` is here as a whole.
    pub fn has(&self, digest: Digest, size: u64) -> bool {
        let name = digest.to_string();
        statat(&self.folder, name.as_str(), AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| u64::try_from(stat.st_size) == Ok(size))
    }

    /// Begin or go on taking content. What came of it before a crash is hashed again.
    pub fn begin(&self, digest: Digest, size: u64) -> io::Result<Incoming<'_>> {
        let part = format!("{digest}.part").into_bytes();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(
            &self.folder,
            part.as_slice(),
            flags,
            Mode::from_raw_mode(0o600),
        )?;
        let mut file = File::from(file);
        let mut hasher = blake3::Hasher::new();
        let mut position = 0;
        if file.metadata()?.len() > size {
            file.set_len(0)?;
        }
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            hasher.update(&buffer[..count]);
            position += count as u64;
        }
        Ok(Incoming {
            stage: self,
            digest,
            size,
            part,
            file,
            hasher,
            position,
        })
    }

    /// A name for something that is being moved.
    pub(crate) fn name(&mut self, what: &str) -> Vec<u8> {
        self.counter += 1;
        format!("{what}-{}", self.counter).into_bytes()
    }

    /// Make what shall be moved to its place, and say under which name. `is_last`
    /// says that nothing else needs the content.
    pub(crate) fn prepare(
        &mut self,
        to: &State,
        mode: Mode,
        is_last: bool,
    ) -> io::Result<Option<Vec<u8>>> {
        let Some((digest, size)) = to.content() else {
            return Ok(None);
        };
        if !self.has(digest, size) {
            return Ok(None);
        }
        let content = digest.to_string().into_bytes();
        let name = self.name("new");
        if matches!(to, State::Link { .. }) {
            let mut target = Vec::new();
            self.open_file(&content)?
                .take(LONGEST_TARGET)
                .read_to_end(&mut target)?;
            symlinkat(target.as_slice(), &self.folder, name.as_slice())?;
        } else {
            if is_last {
                renameat(
                    &self.folder,
                    content.as_slice(),
                    &self.folder,
                    name.as_slice(),
                )?;
            } else {
                let mut copy = File::from(self.create(&name)?);
                io::copy(&mut self.open_file(&content)?, &mut copy)?;
            }
            rustix::fs::fchmod(&self.open_file(&name)?, mode)?;
        }
        Ok(Some(name))
    }

    /// Clear up what an earlier sync left. What was moved aside is deleted if its digest
    /// `is_known`; anything else goes to [`KEPT`], and its names there are given back.
    /// What was staged stays if it is known, for somebody may still need it, and with
    /// `all` goes too.
    pub fn sweep(
        &self,
        root: &Root,
        all: bool,
        is_known: impl Fn(&Digest) -> bool,
    ) -> io::Result<Vec<String>> {
        let mut kept = Vec::new();
        for name in self.names()? {
            if name == b".gitignore" {
                continue;
            }
            let part = part_of(&name);
            let digest = match part {
                Some(part) => Some(part),
                None => self.digest(&name)?,
            };
            let is_known = digest.is_some_and(|digest| is_known(&digest));
            let is_staged = part.is_some()
                || digest.is_some_and(|digest| name == digest.to_string().as_bytes());
            if is_staged && is_known && !all {
                continue;
            }
            if is_staged || is_known {
                unlinkat(&self.folder, name.as_slice(), AtFlags::empty())?;
            } else {
                kept.push(self.keep(root, &name)?);
            }
        }
        Ok(kept)
    }

    /// The digests of what [`Stage::sweep`] asks about.
    pub fn leftovers(&self) -> io::Result<Vec<Digest>> {
        let mut leftovers = Vec::new();
        for name in self.names()? {
            if name == b".gitignore" {
                continue;
            }
            leftovers.extend(match part_of(&name) {
                Some(part) => Some(part),
                None => self.digest(&name)?,
            });
        }
        Ok(leftovers)
    }

    fn names(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(name.to_vec());
            }
        }
        Ok(names)
    }

    fn digest(&self, name: &[u8]) -> io::Result<Option<Digest>> {
        match rustix::fs::readlinkat(&self.folder, name, Vec::new()) {
            Ok(target) => return Ok(Some(Digest::of(target.as_bytes()))),
            Err(Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
        let mut hasher = blake3::Hasher::new();
        match self.open_file(name) {
            Ok(file) => hash(&file, &mut hasher)?,
            // Unreadable: nobody knows what it is.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(Digest(*hasher.finalize().as_bytes())))
    }

    /// Move what nobody knows out of the stage, where it can be found.
    fn keep(&self, root: &Root, name: &[u8]) -> io::Result<String> {
        let folder = crate::root::make(root.top(), KEPT.as_bytes())?;
        for number in 1_u32.. {
            let kept = format!("{}-{number}", String::from_utf8_lossy(name));
            let moved = rename_new(&self.folder, name, &folder, kept.as_bytes());
            match moved {
                Ok(()) => return Ok(format!("{KEPT}/{kept}")),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Leave the stage, and remove it if nothing waits in it.
    pub fn close(self, root: &Root) -> io::Result<()> {
        if self.names()? == [b".gitignore"] {
            unlinkat(&self.folder, ".gitignore", AtFlags::empty())?;
            match unlinkat(root.top(), STAGE, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOTEMPTY | Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Of which content a file is a part, by its name.
fn part_of(name: &[u8]) -> Option<Digest> {
    let hex = std::str::from_utf8(name.strip_suffix(b".part")?).ok()?;
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    let mut digest = [0; 32];
    for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&hex[at..at + 2], 16).ok()?;
    }
    Some(Digest(digest))
}

/// Rename to a name that isn't there yet.
pub(crate) fn rename_new(
    from: &OwnedFd,
    name: &[u8],
    to: &OwnedFd,
    new: &[u8],
) -> Result<(), Errno> {
    match renameat_with(from, name, to, new, RenameFlags::NOREPLACE) {
        // A disk that can't: look first.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            match statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) => Err(Errno::EXIST),
                Err(Errno::NOENT) => renameat(from, name, to, new),
                Err(error) => Err(error),
            }
        }
        done => done,
    }
}

/// Hash a file from where it stands, and say how many bytes that were.
pub(crate) fn hash(mut file: &File, hasher: &mut blake3::Hasher) -> io::Result<u64> {
    let mut buffer = vec![0; 64 * 1024];
    let mut size = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(size),
            Ok(count) => {
                hasher.update(&buffer[..count]);
                size += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Content on its way into a stage.
#[derive(Debug)]
pub struct Incoming<'a> {
    stage: &'a Stage,
    digest: Digest,
    size: u64,
    part: Vec<u8>,
    file: File,
    hasher: blake3::Hasher,
    position: u64,
}

impl Incoming<'_> {
    /// How many bytes are here: the sender goes on from there.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether so many bytes more are no more than was announced.
    pub fn fits(&self, length: u64) -> bool {
        self.position + length <= self.size
    }

    /// Begin at the first byte, whatever is here.
    pub fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.hasher.reset();
        self.position = 0;
        Ok(())
    }

    /// Take the next bytes. If they find no room, what came before gives its own back.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let pushed = self.take(bytes);
        if pushed.is_err() {
            self.restart().ok();
        }
        pushed
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len() as u64;
        if self.position + length > self.size {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.file.write_all(bytes)?;
        self.hasher.update(bytes);
        self.position += length;
        Ok(())
    }

    /// The end of the content. False if it isn't what was announced, as when the
    /// sender's file changed: nothing is kept of it then.
    pub fn finish(self) -> io::Result<bool> {
        let digest = Digest(*self.hasher.finalize().as_bytes());
        let folder = &self.stage.folder;
        if digest != self.digest || self.position != self.size {
            unlinkat(folder, self.part.as_slice(), AtFlags::empty())?;
            return Ok(false);
        }
        let name = digest.to_string();
        renameat(folder, self.part.as_slice(), folder, name.as_str())?;
        Ok(true)
    }
}
