//! Carries a plan out on one side.
//!
//! Everything that goes is moved aside first and looked at there, so that what a
//! person wrote in the last moment comes back instead of being lost. A file has its
//! name only when it is whole. Stopping anywhere leaves each path as it was, as the
//! plan wants it, or (only where something else takes its place) absent.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, UTIME_NOW, fchmod,
    futimens, openat, readlinkat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::index::Stamp;
use crate::plan::Change;
use crate::root::{Root, make};
use crate::stage::{Stage, hash, rename_new};
use crate::{Digest, EntryPath, State};

/// What the tests come between: a point at which the program may be killed, or a
/// person may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Nothing was done for this change.
    Begin,
    /// What lies there was looked at.
    Checked,
    /// What lay there is aside.
    MovedAside,
    /// It was what the plan saw.
    Verified,
    /// The new content lies in the stage with its mode and time.
    Prepared,
    /// New and old have changed places.
    Exchanged,
    /// The change is made.
    Made,
}

/// Why a change wasn't made. The path keeps what it has, and the next sync looks again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Left {
    /// Something else lies there than the plan saw.
    Changed,
    /// The folder holds something that doesn't count, such as ignored files.
    Occupied,
    /// The content isn't in the stage: it changed at its source meanwhile.
    NotStaged,
    /// The system refused.
    Refused(String),
}

/// What came of each change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// Made.
    pub done: Vec<EntryPath>,
    /// Not made.
    pub left: Vec<(EntryPath, Left)>,
    /// Folders that are gone on the other side and stay here, because something that
    /// doesn't count lies in them.
    pub occupied: Vec<EntryPath>,
}

/// What is known of a tree, and what is asked by the tests.
pub struct Applying<'a> {
    /// The stamp under which a path's content was hashed, if it can be relied on.
    pub known: &'a dyn Fn(&EntryPath) -> Option<Stamp>,
    /// Whether the disk keeps the executable bit.
    pub modes: bool,
    /// Called at each step; an error stops everything as a kill would.
    pub probe: &'a mut dyn FnMut(Step) -> io::Result<()>,
}

/// How a change ended, within the step that made it.
enum Done {
    Made,
    /// A folder stays, because of what lies in it.
    Stays,
    Left(Left),
}

/// Make `changes` below `root`, with content that was put into `stage`.
///
/// An error is one that stops everything; what the system refuses for a path is in
/// the answer.
pub fn apply(
    root: &Root,
    stage: &mut Stage,
    changes: &[Change],
    applying: &mut Applying<'_>,
) -> io::Result<Applied> {
    let mut applied = Applied::default();
    let mut held: Vec<EntryPath> = Vec::new();
    let mut uses = HashMap::new();
    for (digest, _) in changes.iter().filter_map(|change| change.to.content()) {
        *uses.entry(digest).or_insert(0_usize) += 1;
    }
    // What goes, from the inside out: a folder after what is in it. What changes its
    // kind goes here too.
    for change in changes.iter().rev().filter(|change| goes_first(change)) {
        (applying.probe)(Step::Begin)?;
        let mut work = Work {
            root,
            stage,
            applying,
        };
        match work.remove(change)? {
            Ok(Done::Made) if change.to == State::Absent => applied.done.push(change.path.clone()),
            Ok(Done::Made) => {}
            Ok(Done::Stays) => {
                applied.occupied.push(change.path.clone());
                applied.done.push(change.path.clone());
            }
            Ok(Done::Left(left)) => {
                held.push(change.path.clone());
                applied.left.push((change.path.clone(), left));
            }
            Err(error) => {
                held.push(change.path.clone());
                let left = Left::Refused(error.to_string());
                applied.left.push((change.path.clone(), left));
            }
        }
        (applying.probe)(Step::Made)?;
    }
    for change in changes.iter().filter(|change| change.to != State::Absent) {
        if held.contains(&change.path) {
            continue;
        }
        (applying.probe)(Step::Begin)?;
        let uses = change
            .to
            .content()
            .and_then(|(digest, _)| uses.get_mut(&digest));
        let is_last = uses.is_none_or(|uses| {
            *uses -= 1;
            *uses == 0
        });
        let mut work = Work {
            root,
            stage,
            applying,
        };
        match work.create(change, is_last)? {
            Ok(Done::Made | Done::Stays) => applied.done.push(change.path.clone()),
            Ok(Done::Left(left)) => applied.left.push((change.path.clone(), left)),
            Err(error) => {
                let left = Left::Refused(error.to_string());
                applied.left.push((change.path.clone(), left));
            }
        }
        (applying.probe)(Step::Made)?;
    }
    Ok(applied)
}

/// Up to so many changes are put on the disk one by one; beyond, all of the disk is.
const FEW: usize = 100;

/// Wait until `changes` are on the disk, so that a crash of the machine can't take
/// back what the last common state says is there.
pub(crate) fn settle(root: &Root, changes: &[Change]) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if changes.len() > FEW {
        return Ok(rustix::fs::syncfs(root.top())?);
    }
    let mut folders = std::collections::BTreeSet::new();
    for change in changes {
        if let State::File { .. } = change.to
            && let Ok(folder) = root.parent(&change.path)
            && let Ok(file) = open(&folder, change.path.file_name())
        {
            file.sync_data()?;
        }
        folders.insert(change.path.parent());
    }
    for folder in folders {
        match root.folder(folder.as_ref()) {
            Ok(folder) => rustix::fs::fsync(&folder)?,
            // It went with what was in it; the one above it is in the list too.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether something has to be taken away before anything can be made there.
pub(crate) fn goes_first(change: &Change) -> bool {
    match (change.from, change.to) {
        (State::Absent, _) => false,
        (_, State::Absent) => true,
        (from, to) => (from == State::Folder) != (to == State::Folder),
    }
}

/// The outer error stops everything, the inner one is about this path.
type Outcome = io::Result<io::Result<Done>>;

/// Turns an error about a path into one that doesn't stop the others.
macro_rules! attempt {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return Ok(Err(error.into())),
        }
    };
}

struct Work<'a, 'b> {
    root: &'a Root,
    stage: &'a mut Stage,
    applying: &'a mut Applying<'b>,
}

impl Work<'_, '_> {
    fn step(&mut self, step: Step) -> io::Result<()> {
        (self.applying.probe)(step)
    }

    /// Take away what lies at the path.
    fn remove(&mut self, change: &Change) -> Outcome {
        let folder = match self.root.parent(&change.path) {
            Ok(folder) => folder,
            // Nothing can lie there.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Ok(Done::Made)),
            Err(error) => return Ok(Err(error.into())),
        };
        let name = change.path.file_name();
        if change.from == State::Folder {
            return Ok(remove_folder(&folder, name, change));
        }
        let seen = match attempt!(self.look(&folder, name, &change.path, &change.from)) {
            Seen::Same(seen) => seen,
            Seen::Other => return Ok(Ok(Done::Left(Left::Changed))),
            Seen::Nothing => return Ok(Ok(Done::Made)),
        };
        self.step(Step::Checked)?;
        let aside = self.stage.name("gone");
        let beside = beside(&aside);
        let (place, aside) = match rename_new(&folder, name, &self.stage.folder, &aside) {
            Ok(()) => (None, aside),
            Err(Errno::NOENT) => return Ok(Ok(Done::Made)),
            // Another disk is mounted there.
            Err(Errno::XDEV) => {
                attempt!(rename_new(&folder, name, &folder, &beside));
                (Some(&folder), beside)
            }
            Err(error) => return Ok(Err(error.into())),
        };
        self.step(Step::MovedAside)?;
        let aside_folder = place.unwrap_or(&self.stage.folder);
        let unchanged = is_unchanged(
            aside_folder,
            &aside,
            &change.from,
            seen.as_ref(),
            self.applying.modes,
        );
        if !unchanged.as_ref().is_ok_and(|unchanged| *unchanged) {
            // Somebody wrote in between, or nobody can say: it goes back.
            attempt!(rename_new(aside_folder, &aside, &folder, name));
            attempt!(unchanged);
            return Ok(Ok(Done::Left(Left::Changed)));
        }
        (self.applying.probe)(Step::Verified)?;
        attempt!(unlinkat(aside_folder, aside.as_slice(), AtFlags::empty()));
        Ok(Ok(Done::Made))
    }

    /// Make what shall lie at the path.
    fn create(&mut self, change: &Change, is_last: bool) -> Outcome {
        let name = change.path.file_name();
        // What changed its kind was taken away already.
        let from = if goes_first(change) {
            State::Absent
        } else {
            change.from
        };
        let folder = match self.root.make_folder(change.path.parent().as_ref()) {
            Ok(folder) => folder,
            // A file or a link lies on the way, which the plan didn't see.
            Err(Errno::NOTDIR | Errno::LOOP | Errno::EXIST) => {
                return Ok(Ok(Done::Left(Left::Changed)));
            }
            Err(error) => return Ok(Err(error.into())),
        };
        if change.to == State::Folder {
            return Ok(match make(&folder, name) {
                Ok(_) => Ok(Done::Made),
                Err(Errno::NOTDIR | Errno::LOOP) => Ok(Done::Left(Left::Changed)),
                Err(error) => Err(error.into()),
            });
        }
        let seen = match attempt!(self.look(&folder, name, &change.path, &from)) {
            Seen::Same(seen) => seen,
            Seen::Nothing | Seen::Other => {
                // An earlier sync may have come so far.
                return Ok(match self.look(&folder, name, &change.path, &change.to) {
                    Ok(Seen::Same(_)) => Ok(Done::Made),
                    Ok(Seen::Nothing | Seen::Other) => Ok(Done::Left(Left::Changed)),
                    Err(error) => Err(error),
                });
            }
        };
        self.step(Step::Checked)?;
        if change.is_mode_only() {
            return Ok(change_mode(&folder, name, &change.to));
        }
        let mode = mode_for(&change.to, seen.as_ref());
        let Some(new) = attempt!(self.stage.prepare(&change.to, mode, is_last)) else {
            return Ok(Ok(Done::Left(Left::NotStaged)));
        };
        self.step(Step::Prepared)?;
        let placed = self.place(&folder, name, &from, seen, new)?;
        Ok(placed)
    }

    /// Give the staged `new` its name in `folder`.
    fn place(
        &mut self,
        folder: &OwnedFd,
        name: &[u8],
        from: &State,
        seen: Option<Stat>,
        new: Vec<u8>,
    ) -> Outcome {
        attempt!(touch(&self.stage.folder, &new));
        let moved = exchange_or_new(&self.stage.folder, &new, folder, name, seen.is_some());
        let (crossed, new) = match moved {
            Err(Errno::XDEV) => {
                let beside = beside(&new);
                attempt!(copy_across(&self.stage.folder, &new, folder, &beside));
                attempt!(unlinkat(
                    &self.stage.folder,
                    new.as_slice(),
                    AtFlags::empty()
                ));
                let moved = exchange_or_new(folder, &beside, folder, name, seen.is_some());
                match moved {
                    Ok(()) => (true, beside),
                    Err(error) => {
                        unlinkat(folder, beside.as_slice(), AtFlags::empty()).ok();
                        return Ok(not_moved(error));
                    }
                }
            }
            Ok(()) => (false, new),
            Err(error) => return Ok(not_moved(error)),
        };
        let Some(seen) = seen else {
            return Ok(Ok(Done::Made));
        };
        self.step(Step::Exchanged)?;
        let aside = if crossed { folder } else { &self.stage.folder };
        match statat(aside, new.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
            // The disk can't exchange: the old one is gone, and was looked at just before.
            Err(Errno::NOENT) => return Ok(Ok(Done::Made)),
            Err(error) => return Ok(Err(error.into())),
            Ok(_) => {}
        }
        let unchanged = is_unchanged(aside, &new, from, Some(&seen), self.applying.modes);
        if !unchanged.as_ref().is_ok_and(|unchanged| *unchanged) {
            let back = RenameFlags::EXCHANGE;
            attempt!(renameat_with(aside, new.as_slice(), folder, name, back));
            if crossed {
                attempt!(unlinkat(aside, new.as_slice(), AtFlags::empty()));
            }
            attempt!(unchanged);
            return Ok(Ok(Done::Left(Left::Changed)));
        }
        (self.applying.probe)(Step::Verified)?;
        let aside = if crossed { folder } else { &self.stage.folder };
        attempt!(unlinkat(aside, new.as_slice(), AtFlags::empty()));
        Ok(Ok(Done::Made))
    }

    /// Whether `state` lies at `name`.
    fn look(
        &self,
        folder: &OwnedFd,
        name: &[u8],
        path: &EntryPath,
        state: &State,
    ) -> io::Result<Seen> {
        let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) if *state == State::Absent => return Ok(Seen::Same(None)),
            Err(Errno::NOENT) => return Ok(Seen::Nothing),
            Err(error) => return Err(error.into()),
        };
        if (self.applying.known)(path).is_some_and(|known| known == Stamp::of(&stat))
            && shape_is(&stat, state, self.applying.modes)
        {
            return Ok(Seen::Same(Some(stat)));
        }
        Ok(
            if content_is(folder, name, &stat, state, self.applying.modes)? {
                Seen::Same(Some(stat))
            } else {
                Seen::Other
            },
        )
    }
}

/// What was found where something was expected.
enum Seen {
    /// It, with what the system said of it.
    Same(Option<Stat>),
    Nothing,
    Other,
}

/// The name of something that waits beside its place, on another disk than the stage.
fn beside(name: &[u8]) -> Vec<u8> {
    [crate::own::BESIDE.as_bytes(), name].concat()
}

fn not_moved(error: Errno) -> io::Result<Done> {
    match error {
        // Something came to be there, or went.
        Errno::EXIST | Errno::NOENT => Ok(Done::Left(Left::Changed)),
        error => Err(error.into()),
    }
}

fn remove_folder(folder: &OwnedFd, name: &[u8], change: &Change) -> io::Result<Done> {
    match unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(Done::Made),
        Err(Errno::NOTEMPTY | Errno::EXIST) if change.to == State::Absent => Ok(Done::Stays),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Done::Left(Left::Occupied)),
        Err(Errno::NOTDIR) => Ok(Done::Left(Left::Changed)),
        Err(error) => Err(error.into()),
    }
}

/// Move `new` to `name`: in exchange for what is there, or as something new.
fn exchange_or_new(
    from: &OwnedFd,
    new: &[u8],
    folder: &OwnedFd,
    name: &[u8],
    exchange: bool,
) -> Result<(), Errno> {
    if !exchange {
        return rename_new(from, new, folder, name);
    }
    match renameat_with(from, new, folder, name, RenameFlags::EXCHANGE) {
        // A disk that can't exchange.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => renameat(from, new, folder, name),
        done => done,
    }
}

const NOW: Timestamps = Timestamps {
    last_access: Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    },
    last_modification: Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    },
};

/// Arrival time: an older one would leave `make` and `cargo` on old code.
fn touch(folder: &OwnedFd, name: &[u8]) -> io::Result<()> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    Ok(rustix::fs::utimensat(folder, name, &NOW, flags)?)
}

fn copy_across(from: &OwnedFd, name: &[u8], to: &OwnedFd, new: &[u8]) -> io::Result<()> {
    let stat = statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        let target = readlinkat(from, name, Vec::new())?;
        return Ok(rustix::fs::symlinkat(target.as_c_str(), to, new)?);
    }
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut copy = File::from(openat(to, new, flags, Mode::from_raw_mode(0o600))?);
    let mut source = open(from, name)?;
    io::copy(&mut source, &mut copy)?;
    fchmod(&copy, Mode::from_raw_mode(stat.st_mode & 0o777))?;
    Ok(futimens(&copy, &NOW)?)
}

fn open(folder: &OwnedFd, name: &[u8]) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::empty())?.into())
}

/// Everything but the content.
fn shape_is(stat: &Stat, state: &State, modes: bool) -> bool {
    let kind = FileType::from_raw_mode(stat.st_mode);
    match *state {
        State::Absent => false,
        State::Folder => kind == FileType::Directory,
        State::Link { size, .. } => kind == FileType::Symlink && size_is(stat, size),
        State::File {
            executable, size, ..
        } => {
            kind == FileType::RegularFile
                && size_is(stat, size)
                && (!modes || (stat.st_mode & 0o100 != 0) == executable)
        }
    }
}

fn size_is(stat: &Stat, size: u64) -> bool {
    u64::try_from(stat.st_size) == Ok(size)
}

fn content_is(
    folder: &OwnedFd,
    name: &[u8],
    stat: &Stat,
    state: &State,
    modes: bool,
) -> io::Result<bool> {
    if !shape_is(stat, state, modes) {
        return Ok(false);
    }
    match *state {
        State::Absent => Ok(false),
        State::Folder => Ok(true),
        State::Link { digest, .. } => {
            let target = readlinkat(folder, name, Vec::new())?;
            Ok(Digest::of(target.as_bytes()) == digest)
        }
        State::File { digest, size, .. } => {
            let mut hasher = blake3::Hasher::new();
            let count = hash(&open(folder, name)?, &mut hasher)?;
            Ok(count == size && Digest(*hasher.finalize().as_bytes()) == digest)
        }
    }
}

/// Whether what was moved aside is what was looked at before. Its change time is its
/// move's; if it was written so lately that one tick of the disk's clock may hold
/// two writings, its content decides.
fn is_unchanged(
    folder: &OwnedFd,
    name: &[u8],
    state: &State,
    seen: Option<&Stat>,
    modes: bool,
) -> io::Result<bool> {
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let same = seen.is_some_and(|seen| {
        let (before, now) = (Stamp::of(seen), Stamp::of(&stat));
        before.is_same_but_for_a_move(&now)
    });
    if !same || !shape_is(&stat, state, modes) {
        return Ok(false);
    }
    if Stamp::of(&stat).is_recent() {
        return content_is(folder, name, &stat, state, modes);
    }
    Ok(true)
}

/// A new file has git's two modes; a file that was there keeps what it allowed to
/// whom, but for executing.
fn mode_for(to: &State, seen: Option<&Stat>) -> Mode {
    let State::File { executable, .. } = to else {
        return Mode::from_raw_mode(0o644);
    };
    let before = seen.map_or(0o644, |stat| stat.st_mode & 0o666);
    Mode::from_raw_mode(with_execution(before, *executable))
}

/// Who may read may execute.
fn with_execution(mode: u32, executable: bool) -> u32 {
    let mode = mode & 0o666;
    if executable {
        mode | 0o100 | ((mode & 0o444) >> 2)
    } else {
        mode
    }
}

fn change_mode(folder: &OwnedFd, name: &[u8], to: &State) -> io::Result<Done> {
    let State::File { executable, .. } = *to else {
        return Ok(Done::Left(Left::Changed));
    };
    let file = open(folder, name)?;
    let mode = with_execution(rustix::fs::fstat(&file)?.st_mode, executable);
    fchmod(&file, Mode::from_raw_mode(mode))?;
    Ok(Done::Made)
}
