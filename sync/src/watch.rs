//! Which paths of a tree changed since a moment, as the kernel tells it, so that a tree
//! that is known needn't be read again.
//!
//! Start at [`Watch::open`], tell it each folder *before* it is read
//! ([`Watch::folder`]), and ask [`Watch::since`]. Folders that don't count aren't
//! watched, so that a build in an ignored folder costs nothing.
//!
//! The kernel puts an event into the queue before the call that made the change
//! returns; reading the queue until it is empty is therefore the barrier. What
//! inotify doesn't tell (inotify(7), "Limitations and caveats"): writes through a
//! mapping, which end in the file's time alone; writes under another name of the same
//! file; what another machine does on a network's disk. Whoever relies on the answer
//! looks at files of several names by itself, no network's disk is watched, and the
//! verbs that a person calls read everything.
//!
//! Invariant: the answer names every path that changed, or says that it can't.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::EntryPath;
use crate::own::is_own;

/// More changed paths than this aren't worth being told one by one.
const MANY: usize = 20_000;

/// A moment in the life of one [`Watch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Of which watch.
    watch: u128,
    /// The how manieth question.
    tick: u64,
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Since {
    /// These paths, sorted: something was made, written, given other permissions, moved
    /// or removed under that name. Of a folder, anything below it may have changed too.
    Paths(Vec<EntryPath>),
    /// Anything may have.
    Anything,
}

/// Watches the folders of one tree.
#[derive(Debug)]
pub struct Watch {
    id: u128,
    tick: u64,
    queue: queue::Queue,
    /// By the kernel's number.
    folders: HashMap<i32, Option<EntryPath>>,
    numbers: BTreeMap<Option<EntryPath>, i32>,
    /// When a path changed last.
    changed: BTreeMap<EntryPath, u64>,
    /// Nothing is known of what happened before this tick.
    blind: u64,
}

impl Watch {
    /// Watch the tree at `top`, so far without its folders. `id` is another number for
    /// each watch that ever was.
    ///
    /// Fails where changes aren't told: on another system than Linux, on a network's
    /// disk.
    pub fn open(top: &Path, id: u128) -> io::Result<Self> {
        Ok(Self {
            id,
            tick: 1,
            queue: queue::Queue::open(top)?,
            folders: HashMap::new(),
            numbers: BTreeMap::new(),
            changed: BTreeMap::new(),
            blind: 0,
        })
    }

    /// Tell changes in `folder` (`None`: the top) from now on. False if it is watched
    /// already, or isn't a folder any more.
    ///
    /// Fails if the system's limit of watches is reached ([`is_limit`]).
    pub fn folder(&mut self, folder: Option<&EntryPath>) -> io::Result<bool> {
        let key = folder.cloned();
        if self.numbers.contains_key(&key) {
            return Ok(false);
        }
        let Some(number) = self.queue.add(folder)? else {
            return Ok(false);
        };
        // One folder under two names: the kernel has one number for both, so neither
        // name can be relied on.
        if let Some(other) = self.folders.insert(number, key.clone())
            && other != key
        {
            self.numbers.remove(&other);
            self.forget_everything();
        }
        self.numbers.insert(key, number);
        Ok(true)
    }

    /// This moment.
    pub fn now(&mut self) -> io::Result<Moment> {
        self.drain()?;
        self.tick += 1;
        Ok(Moment {
            watch: self.id,
            tick: self.tick,
        })
    }

    /// What changed from `moment` until now.
    pub fn since(&mut self, moment: Moment) -> io::Result<Since> {
        self.drain()?;
        if moment.watch != self.id || moment.tick < self.blind {
            return Ok(Since::Anything);
        }
        let later = self
            .changed
            .iter()
            .filter(|(_, tick)| **tick >= moment.tick);
        Ok(Since::Paths(later.map(|(path, _)| path.clone()).collect()))
    }

    /// Whether anything changed from `moment` until now that a sync could be about.
    pub fn has_news(&mut self, moment: Moment) -> io::Result<bool> {
        Ok(match self.since(moment)? {
            Since::Anything => true,
            Since::Paths(paths) => paths.iter().any(is_news),
        })
    }

    /// How many folders are watched.
    pub fn len(&self) -> usize {
        self.folders.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }

    fn drain(&mut self) -> io::Result<()> {
        let mut events = Vec::new();
        let drained = self.queue.drain(&mut events);
        if drained.is_err() {
            self.forget_everything();
        }
        for event in events {
            self.take(event);
        }
        if !self.queue.is_same() {
            self.forget_everything();
        }
        drained
    }

    fn take(&mut self, event: queue::Event) {
        let folder = match event.number {
            // The queue was too small.
            None => return self.forget_everything(),
            Some(number) => match self.folders.get(&number) {
                Some(folder) => folder.clone(),
                // It was given up before.
                None => return,
            },
        };
        if event.is_gone {
            self.give_up(folder.as_ref());
        }
        match (event.name, &folder) {
            (Some(name), folder) => {
                let path = EntryPath::child(folder.as_ref(), &name);
                if event.moves_folder {
                    // Its watches would go on under a name that isn't theirs.
                    self.give_up(Some(&path));
                }
                self.note(path);
            }
            (None, Some(folder)) => self.note(folder.clone()),
            // The top itself.
            (None, None) if event.is_gone => self.forget_everything(),
            (None, None) => {}
        }
    }

    fn note(&mut self, path: EntryPath) {
        self.changed.insert(path, self.tick);
        if self.changed.len() > MANY {
            self.forget_everything();
        }
    }

    /// From here on nothing is known of the past.
    fn forget_everything(&mut self) {
        self.changed.clear();
        self.tick += 1;
        self.blind = self.tick;
    }

    /// Stop watching `folder` and what lies below it.
    fn give_up(&mut self, folder: Option<&EntryPath>) {
        let within = |path: &Option<EntryPath>| match (path, folder) {
            (_, None) => true,
            (Some(path), Some(folder)) => path.is_within(folder),
            (None, Some(_)) => false,
        };
        let from = self.numbers.range(folder.cloned()..);
        // What is within a folder isn't all in one row: `a`, `a.b`, `a/b`.
        let near = from.take_while(|(path, _)| match (path, folder) {
            (Some(path), Some(folder)) => path.as_bytes().starts_with(folder.as_bytes()),
            (_, None) | (None, _) => true,
        });
        let gone: Vec<(Option<EntryPath>, i32)> = near
            .filter(|(path, _)| within(path))
            .map(|(path, number)| (path.clone(), *number))
            .collect();
        for (path, number) in gone {
            self.numbers.remove(&path);
            self.folders.remove(&number);
            self.queue.remove(number);
        }
    }
}

/// Readable when there is something in the queue.
impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

/// What in a repository's own folder tells of a commit, another branch or another index.
const OF_GIT: &[&[u8]] = &[
    b".git/COMMIT_EDITMSG",
    b".git/HEAD",
    b".git/index",
    b".git/packed-refs",
];

fn is_news(path: &EntryPath) -> bool {
    let bytes = path.as_bytes();
    if bytes == b".git" || bytes.starts_with(b".git/") {
        return OF_GIT.contains(&bytes);
    }
    !is_own(path)
}

/// Whether no more folders can be watched, or no more trees.
pub fn is_limit(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOSPC | Errno::MFILE | Errno::NFILE)
    )
}

/// The setting of the system that [`is_limit`] is about.
pub const LIMIT: &str = "fs.inotify.max_user_watches";

#[cfg(target_os = "linux")]
mod queue {
    //! The kernel's queue.

    use std::ffi::{OsStr, OsString};
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::{Path, PathBuf};

    use rustix::fs::inotify::{
        CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch,
    };
    use rustix::io::Errno;

    use super::identity;
    use crate::EntryPath;

    const WANTED: WatchFlags = WatchFlags::CREATE
        .union(WatchFlags::DELETE)
        .union(WatchFlags::MODIFY)
        .union(WatchFlags::CLOSE_WRITE)
        .union(WatchFlags::ATTRIB)
        .union(WatchFlags::MOVED_FROM)
        .union(WatchFlags::MOVED_TO)
        .union(WatchFlags::DELETE_SELF)
        .union(WatchFlags::MOVE_SELF)
        .union(WatchFlags::ONLYDIR)
        .union(WatchFlags::DONT_FOLLOW)
        .union(WatchFlags::EXCL_UNLINK);

    /// Disks on which others write without this kernel's knowledge, by `statfs`'s type
    /// (Linux, `include/uapi/linux/magic.h` and each file system's own).
    const ELSEWHERE: &[i64] = &[
        0x6969,      // NFS
        0xff53_4d42, // CIFS
        0xfe53_4d42, // SMB2
        0x0102_1997, // 9p
        0x6573_5546, // FUSE
        0x5346_414f, // AFS
        0x00c3_6400, // Ceph
        0x786f_4256, // VirtualBox's shared folders
        0xbacb_acbc, // VMware's
    ];

    #[derive(Debug)]
    pub(super) struct Queue {
        descriptor: OwnedFd,
        top: PathBuf,
        /// Device and inode of the top.
        identity: (u64, u64),
    }

    /// Something happened.
    #[derive(Debug)]
    pub(super) struct Event {
        /// To the folder of this number; `None`: events were lost.
        pub(super) number: Option<i32>,
        /// To what lies in it under this name, or to itself.
        pub(super) name: Option<OsString>,
        /// A folder has another name now, or none.
        pub(super) moves_folder: bool,
        /// The watched folder isn't there any more.
        pub(super) is_gone: bool,
    }

    impl Queue {
        pub(super) fn open(top: &Path) -> io::Result<Self> {
            let disk = rustix::fs::statfs(top)?;
            #[expect(
                clippy::useless_conversion,
                reason = "the field's type differs from one processor to another"
            )]
            let kind = i64::from(disk.f_type);
            if ELSEWHERE.contains(&kind) {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "changes on this disk aren't told by the kernel",
                ));
            }
            Ok(Self {
                descriptor: init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?,
                top: top.to_owned(),
                identity: identity(top)?,
            })
        }

        pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
            self.descriptor.as_fd()
        }

        /// Whether the top is still the folder that it was: nobody tells that a folder
        /// above it has another name now.
        pub(super) fn is_same(&self) -> bool {
            identity(&self.top).is_ok_and(|found| found == self.identity)
        }

        /// The number of a folder that is watched from now on; `None` if it isn't one.
        pub(super) fn add(&self, folder: Option<&EntryPath>) -> io::Result<Option<i32>> {
            let path = folder.map_or_else(|| self.top.clone(), |f| self.top.join(f.as_path()));
            match add_watch(&self.descriptor, &path, WANTED) {
                Ok(number) => Ok(Some(number)),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
                Err(error) => Err(error.into()),
            }
        }

        pub(super) fn remove(&self, number: i32) {
            // The kernel may have done it already.
            remove_watch(&self.descriptor, number).ok();
        }

        /// Everything that is in the queue now.
        pub(super) fn drain(&self, events: &mut Vec<Event>) -> io::Result<()> {
            let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
            let mut reader = Reader::new(&self.descriptor, &mut buffer);
            loop {
                let event = match reader.next() {
                    Ok(event) => event,
                    Err(Errno::AGAIN) => return Ok(()),
                    Err(Errno::INTR) => continue,
                    Err(error) => return Err(error.into()),
                };
                let flags = event.events();
                let gone = ReadFlags::DELETE_SELF
                    | ReadFlags::MOVE_SELF
                    | ReadFlags::IGNORED
                    | ReadFlags::UNMOUNT;
                let moves = ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO | ReadFlags::DELETE;
                let name = event
                    .file_name()
                    .map(|name| OsStr::from_bytes(name.to_bytes()));
                events.push(Event {
                    number: (!flags.contains(ReadFlags::QUEUE_OVERFLOW)).then_some(event.wd()),
                    name: name.map(OsStr::to_owned),
                    moves_folder: flags.contains(ReadFlags::ISDIR) && flags.intersects(moves),
                    is_gone: flags.intersects(gone),
                });
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn identity(top: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = top.metadata()?;
    Ok((meta.dev(), meta.ino()))
}

#[cfg(not(target_os = "linux"))]
mod queue {
    //! Another system: nothing is told.

    use std::convert::Infallible;
    use std::ffi::OsString;
    use std::io;
    use std::os::fd::BorrowedFd;
    use std::path::Path;

    use crate::EntryPath;

    #[derive(Debug)]
    pub(super) struct Queue(Infallible);

    #[derive(Debug)]
    pub(super) struct Event {
        pub(super) number: Option<i32>,
        pub(super) name: Option<OsString>,
        pub(super) moves_folder: bool,
        pub(super) is_gone: bool,
    }

    impl Queue {
        pub(super) fn open(_: &Path) -> io::Result<Self> {
            Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "changes are watched on Linux only",
            ))
        }

        pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
            match self.0 {}
        }

        pub(super) fn is_same(&self) -> bool {
            match self.0 {}
        }

        pub(super) fn add(&self, _: Option<&EntryPath>) -> io::Result<Option<i32>> {
            match self.0 {}
        }

        pub(super) fn remove(&self, _: i32) {
            match self.0 {}
        }

        pub(super) fn drain(&self, _: &mut Vec<Event>) -> io::Result<()> {
            match self.0 {}
        }
    }
}
