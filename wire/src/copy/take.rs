//! Takes a copy: writes what comes below one target, and nowhere else.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, fchmod, flock, mkdirat, openat, renameat, symlinkat,
    unlinkat,
};
use rustix::io::Errno;

use super::folder::{OWNERS, enter, place};
use super::{Step, Talk, Trouble, Watch};
use crate::{Item, RESUMED, Taken};

/// So much of a name is kept in the name of the file that comes.
const KEPT: usize = 200;

/// Take everything up to the end, and say how it went. `refuse` says why something
/// must not be written, by its path below the target.
pub fn take(
    talk: &mut Talk,
    target: &Path,
    refuse: &dyn Fn(&[u8]) -> Option<String>,
    watch: Watch<'_>,
) -> Result<(), Trouble> {
    let mut taker = Taker {
        talk,
        target,
        refuse,
        watch,
        coming: Coming::Nothing,
        locked: Vec::new(),
        held: Vec::new(),
    };
    let taken = taker.everything();
    if taken.is_err() {
        // The file that was on its way is let go of first; whoever tries again opens the
        // folders again.
        taker.coming = Coming::Nothing;
        drop(taker.lock());
    }
    match taken {
        Ok(()) => talk.say(&Taken::Done).map_err(Trouble::Broken),
        Err(Trouble::Here { path, source }) => {
            let failed = Taken::Failed {
                path: path.as_slice().into(),
                why: source.to_string(),
            };
            if talk.say(&failed).is_ok() {
                talk.let_go();
            }
            Err(Trouble::Here { path, source })
        }
        Err(trouble) => Err(trouble),
    }
}

struct Taker<'a, 'b> {
    talk: &'a mut Talk,
    target: &'a Path,
    refuse: &'a dyn Fn(&[u8]) -> Option<String>,
    watch: Watch<'b>,
    coming: Coming,
    /// Folders that get their permissions at the end, since until then somebody has
    /// to write into them.
    locked: Vec<(Vec<u8>, u32)>,
    /// Folders that were refused, and are made only for what may come into them: each
    /// path below is asked about for itself.
    held: Vec<(Vec<u8>, u32)>,
}

/// Where the bytes go that come.
enum Coming {
    /// None are due.
    Nothing,
    /// Into a file.
    File(Box<Half>),
    /// Nowhere: the file was refused.
    Refused,
}

/// A file that is on its way.
struct Half {
    path: Vec<u8>,
    folder: OwnedFd,
    temporary: Vec<u8>,
    name: Vec<u8>,
    file: File,
    position: u64,
    size: u64,
    mode: u32,
    modified: i64,
    /// Whether what has come is of use the next time.
    kept: bool,
}

impl Taker<'_, '_> {
    fn everything(&mut self) -> Result<(), Trouble> {
        loop {
            let item: Item = self.talk.hear().map_err(Trouble::Broken)?;
            let path = match &item {
                Item::Folder { path, .. } | Item::File { path, .. } | Item::Link { path, .. } => {
                    path.0.clone()
                }
                Item::Data(_)
                | Item::Hole(_)
                | Item::Changed { .. }
                | Item::Left { .. }
                | Item::Total { .. }
                | Item::End => match &self.coming {
                    Coming::File(half) => half.path.clone(),
                    Coming::Nothing | Coming::Refused => Vec::new(),
                },
            };
            match self.one(item, &path) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(Stopped::Path(source)) => return Err(Trouble::Here { path, source }),
                Err(Stopped::Talk(error)) => return Err(Trouble::Broken(error)),
            }
        }
    }

    /// Do what one item says; whether it was the last one.
    fn one(&mut self, item: Item, path: &[u8]) -> Result<bool, Stopped> {
        match item {
            Item::Data(bytes) => {
                let length = bytes.len() as u64;
                match &mut self.coming {
                    Coming::File(half) => {
                        half.advance(length)?;
                        let position = half.position - length;
                        half.file
                            .write_all_at(&bytes, position)
                            .map_err(Stopped::Path)?;
                    }
                    Coming::Refused => {}
                    Coming::Nothing => return Err(nonsense()),
                }
                (self.watch)(Step::Data(length));
                return Ok(false);
            }
            Item::Hole(length) => {
                match &mut self.coming {
                    Coming::File(half) => half.advance(length)?,
                    Coming::Refused => {}
                    Coming::Nothing => return Err(nonsense()),
                }
                (self.watch)(Step::Hole(length));
                return Ok(false);
            }
            Item::Changed { path } => {
                (self.watch)(Step::Changed(&path));
                return Ok(false);
            }
            Item::Left { path, why } => {
                match std::mem::replace(&mut self.coming, Coming::Nothing) {
                    Coming::File(mut half) if half.path == path.0 => half.kept = false,
                    // The one before, which is whole.
                    Coming::File(half) => {
                        let placed = half.finish()?;
                        (self.watch)(Step::Placed(&placed));
                    }
                    Coming::Nothing | Coming::Refused => {}
                }
                let why = why.as_str();
                (self.watch)(Step::Left { path: &path, why });
                return Ok(false);
            }
            Item::Total { files, bytes } => {
                (self.watch)(Step::Total { files, bytes });
                return Ok(false);
            }
            Item::Folder { .. } | Item::File { .. } | Item::Link { .. } | Item::End => {}
        }
        if let Coming::File(half) = std::mem::replace(&mut self.coming, Coming::Nothing) {
            let path = half.finish()?;
            (self.watch)(Step::Placed(&path));
        }
        let refused = (self.refuse)(path);
        if refused.is_none() {
            self.make_held(path).map_err(Stopped::Path)?;
        }
        match item {
            Item::End => {
                self.lock().map_err(Stopped::Path)?;
                return Ok(true);
            }
            Item::File { size, .. } if refused.is_some() => {
                self.coming = Coming::Refused;
                if size >= RESUMED {
                    // None of it need come.
                    self.talk.say(&Taken::Have(size)).map_err(Stopped::Talk)?;
                }
            }
            Item::Folder { mode, .. } if refused.is_some() => {
                self.held.push((path.to_vec(), mode));
                return Ok(false);
            }
            _ if refused.is_some() => {}
            Item::Folder { mode, .. } => self.folder(path, mode).map_err(Stopped::Path)?,
            Item::Link { target, .. } => {
                link(self.target, path, &target).map_err(Stopped::Path)?;
                (self.watch)(Step::Placed(path));
            }
            Item::File {
                mode,
                size,
                modified,
                ..
            } => {
                let half =
                    Half::open(self.target, path, mode, size, modified).map_err(Stopped::Path)?;
                let have = half.position;
                (self.watch)(Step::File { path, size, have });
                self.coming = Coming::File(Box::new(half));
                if size >= RESUMED {
                    self.talk.say(&Taken::Have(have)).map_err(Stopped::Talk)?;
                }
            }
            Item::Data(_)
            | Item::Hole(_)
            | Item::Changed { .. }
            | Item::Left { .. }
            | Item::Total { .. } => {}
        }
        if let Some(why) = refused {
            (self.watch)(Step::Left { path, why: &why });
        }
        Ok(false)
    }

    /// Make the folders that were held back, if something in them may come.
    fn make_held(&mut self, path: &[u8]) -> io::Result<()> {
        for (folder, mode) in std::mem::take(&mut self.held) {
            let below = path.strip_prefix(folder.as_slice());
            if below.is_some_and(|below| folder.is_empty() || below.starts_with(b"/")) {
                self.folder(&folder, mode)?;
            } else {
                self.held.push((folder, mode));
            }
        }
        Ok(())
    }

    fn folder(&mut self, path: &[u8], mode: u32) -> io::Result<()> {
        let (folder, name) = place(self.target, path)?;
        let (mode, open) = (mode & 0o777, mode & 0o777 | OWNERS);
        let is_new = match mkdirat(&folder, name.as_slice(), Mode::from_raw_mode(OWNERS)) {
            Err(Errno::EXIST) => false,
            made => {
                made?;
                true
            }
        };
        // The folder of the target may be reached by a link, it itself may not be one.
        let made = enter(&folder, &name)?;
        let has = rustix::fs::fstat(&made)?.st_mode & 0o777;
        // An earlier try made it: one that was killed left it open, another one locked.
        let left_open = !path.is_empty() && has == open;
        let left_locked = has == mode;
        if is_new || (left_locked && mode != open) {
            fchmod(&made, Mode::from_raw_mode(open))?;
        }
        if mode != open && (is_new || left_open || left_locked) {
            self.locked.push((path.to_vec(), mode));
        }
        (self.watch)(Step::Placed(path));
        Ok(())
    }

    /// Give folders their permissions, the inner ones first.
    fn lock(&self) -> io::Result<()> {
        for (path, mode) in self.locked.iter().rev() {
            let (folder, name) = place(self.target, path)?;
            fchmod(enter(&folder, &name)?, Mode::from_raw_mode(*mode))?;
        }
        Ok(())
    }
}

/// What can't go on.
enum Stopped {
    /// The path.
    Path(io::Error),
    /// The conversation.
    Talk(io::Error),
}

fn nonsense() -> Stopped {
    Stopped::Talk(io::ErrorKind::InvalidData.into())
}

fn link(target: &Path, path: &[u8], to: &[u8]) -> io::Result<()> {
    let (folder, name) = place(target, path)?;
    let kept = name.len().min(KEPT);
    let temporary = [b".", &name[..kept], b".boxery-link"].concat();
    match unlinkat(&folder, temporary.as_slice(), AtFlags::empty()) {
        Err(error) if error != Errno::NOENT => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    symlinkat(to, &folder, temporary.as_slice())?;
    let renamed = renameat(&folder, temporary.as_slice(), &folder, name.as_slice());
    if renamed.is_err() {
        unlinkat(&folder, temporary.as_slice(), AtFlags::empty()).ok();
    }
    Ok(renamed?)
}

impl Half {
    fn open(target: &Path, path: &[u8], mode: u32, size: u64, modified: i64) -> io::Result<Self> {
        let (folder, name) = place(target, path)?;
        let old = rustix::fs::statat(&folder, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW);
        if old.is_ok_and(|old| rustix::fs::FileType::from_raw_mode(old.st_mode).is_dir()) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        // The same name means the same file: size and time are in it. A name that has
        // no room beside them says less.
        let kept = size >= RESUMED && name.len() <= KEPT;
        let start = [b".", &name[..name.len().min(KEPT)]].concat();
        let suffix = format!(".boxery-{size:x}-{modified:x}");
        let usual = [&start[..], suffix.as_bytes()].concat();
        let (temporary, file, alone) = match own(&folder, &usual)? {
            Some(file) => (usual, file, true),
            // Somebody copies the same file at this moment, or began to over a connection
            // that died without a word. What came of it is of use here, too.
            None => another(&folder, &start, kept.then_some(usual.as_slice()))?,
        };
        let position = file.metadata()?.len();
        let position = if kept && position <= size {
            position
        } else {
            file.set_len(0)?;
            0
        };
        let kept = kept && alone;
        Ok(Self {
            path: path.to_vec(),
            folder,
            temporary,
            name,
            file,
            position,
            size,
            mode,
            modified,
            kept,
        })
    }

    fn advance(&mut self, length: u64) -> Result<(), Stopped> {
        self.position = self
            .position
            .checked_add(length)
            .filter(|position| *position <= self.size)
            .ok_or_else(nonsense)?;
        Ok(())
    }

    /// Give a file that is whole its name; its path.
    fn finish(mut self) -> Result<Vec<u8>, Stopped> {
        if self.position != self.size {
            return Err(nonsense());
        }
        self.place().map_err(Stopped::Path)?;
        // It has its name: there is nothing to remove.
        self.kept = true;
        Ok(std::mem::take(&mut self.path))
    }

    fn place(&self) -> io::Result<()> {
        self.file.set_len(self.size)?;
        fchmod(&self.file, Mode::from_raw_mode(self.mode & 0o777))?;
        if let Ok(modified) = u64::try_from(self.modified) {
            let modified = UNIX_EPOCH + Duration::from_nanos(modified);
            self.file.set_modified(modified)?;
        }
        let (folder, temporary) = (&self.folder, self.temporary.as_slice());
        Ok(renameat(folder, temporary, folder, self.name.as_slice())?)
    }
}

/// Open a file that comes, for this process alone; `None` while another one has it.
fn own(folder: &OwnedFd, name: &[u8]) -> io::Result<Option<File>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let mode = Mode::from_raw_mode(0o600);
        let file = File::from(openat(folder, name, flags | OFlags::NONBLOCK, mode)?);
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.nlink() > 1 {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        // Where there are no locks it is taken as before.
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Ok(None);
        }
        // Whoever had it may have given it its name meanwhile.
        let there = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        let ours = rustix::fs::fstat(&file)?;
        if there.is_ok_and(|there| (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)) {
            return Ok(Some(file));
        }
    }
}

/// A file of a name that nobody else has, with what there is of `usual`, which isn't of
/// use the next time.
fn another(
    folder: &OwnedFd,
    start: &[u8],
    usual: Option<&[u8]>,
) -> io::Result<(Vec<u8>, File, bool)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (name, mut file) = loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let suffix = format!(".boxery-of-{}-{number}", std::process::id());
        let name = [start, suffix.as_bytes()].concat();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        match openat(folder, name.as_slice(), flags, Mode::from_raw_mode(0o600)) {
            Err(Errno::EXIST) => {}
            opened => break (name, File::from(opened?)),
        }
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let Some(usual) = usual
        && let Ok(there) = openat(folder, usual, flags, Mode::empty())
    {
        io::copy(&mut File::from(there), &mut file)?;
    }
    Ok((name, file, false))
}

impl Drop for Half {
    fn drop(&mut self) {
        if !self.kept {
            unlinkat(&self.folder, self.temporary.as_slice(), AtFlags::empty()).ok();
        }
    }
}
