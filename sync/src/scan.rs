//! The laptop's side: walk the project and hash what counts.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::index::{Began, Stamp, StatIndex};
use crate::{Digest, Entry, EntryKind, EntryPath, Rules, Sieve, Snapshot, SyncError};

/// How often a file that changes while it is read is read again.
const ATTEMPTS: usize = 3;

/// What a scan is told by its caller.
#[derive(Debug, Clone, Default)]
pub struct ScanOptions {
    /// The user's excludes where git names none: `$XDG_CONFIG_HOME/git/ignore`.
    pub user_excludes: Option<Utf8PathBuf>,
}

/// A project as it was read.
#[derive(Debug)]
pub struct Scan {
    /// What counts.
    pub snapshot: Snapshot,
    /// Why it counts; the copy is read under the same rules.
    pub rules: Rules,
    /// Files that kept changing while they were read; their entries are a guess.
    pub unsettled: Vec<EntryPath>,
    /// Sockets, FIFOs and devices, which are never copied.
    pub skipped: Vec<EntryPath>,
}

impl Scan {
    /// Read the project `root`: in a git repository the tracked files and the
    /// untracked ones that aren't ignored, elsewhere all that aren't ignored.
    pub fn read(root: &Utf8Path, options: &ScanOptions) -> Result<Self, SyncError> {
        Self::read_indexed(root, options, &StatIndex::default()).map(|(scan, _)| scan)
    }

    /// Like [`Scan::read`], but a file that looks as `index` knows it isn't read. Also
    /// what is known now.
    pub fn read_indexed(
        root: &Utf8Path,
        options: &ScanOptions,
        index: &StatIndex,
    ) -> Result<(Self, StatIndex), SyncError> {
        let began = Began::now();
        let meta = root.as_std_path().metadata();
        let meta = meta.map_err(|source| SyncError::Root {
            root: root.to_owned(),
            source,
        })?;
        if !meta.is_dir() {
            let source = io::Error::from(io::ErrorKind::NotADirectory);
            return Err(SyncError::Root {
                root: root.to_owned(),
                source,
            });
        }
        let rules = Rules::read(root, options)?;
        let mut walk = Walk {
            rules,
            entries: Vec::new(),
            files: Vec::new(),
            skipped: Vec::new(),
        };
        walk.folder(None)?;
        walk.tracked()?;
        let Walk {
            rules,
            mut entries,
            files,
            skipped,
        } = walk;
        let mut unsettled = Vec::new();
        let mut known = StatIndex::default();
        for reading in hash_all(root.as_std_path(), &files, index)? {
            if let (Some(entry), Some(stamp)) = (&reading.entry, reading.stamp) {
                known.note(began, stamp, entry.clone());
            }
            entries.extend(reading.entry);
            unsettled.extend(reading.unsettled);
        }
        let scan = Self {
            snapshot: Snapshot::new(entries),
            rules,
            unsettled,
            skipped,
        };
        Ok((scan, known))
    }
}

impl Scan {
    /// Files that don't count and whose name is `wanted`, in folders that are walked.
    pub fn left_out(&self, wanted: fn(&[u8]) -> bool) -> Vec<EntryPath> {
        let mut sieve = Sieve::new(&self.rules);
        let mut found = Vec::new();
        for folder in std::iter::once(None).chain(self.snapshot.folders().map(Some)) {
            let full = match folder {
                Some(folder) => self.rules.root().as_std_path().join(folder.as_path()),
                None => self.rules.root().as_std_path().to_owned(),
            };
            // What can't be listed is only not named.
            for item in fs::read_dir(full).into_iter().flatten().flatten() {
                let path = EntryPath::child(folder, &item.file_name());
                let is_file = item.file_type().is_ok_and(|kind| kind.is_file());
                if is_file && wanted(path.file_name()) && !sieve.counts(&path, false) {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }
}

struct Walk {
    rules: Rules,
    entries: Vec<Entry>,
    files: Vec<EntryPath>,
    skipped: Vec<EntryPath>,
}

impl Walk {
    /// Everything below `folder` (`None`: the top), depth first. The stack is
    /// ours, so that a deep tree can't overflow the thread's.
    fn folder(&mut self, folder: Option<EntryPath>) -> Result<(), SyncError> {
        let mut waiting = vec![folder];
        while let Some(folder) = waiting.pop() {
            if let Some(folder) = &folder {
                self.rules.enter(folder)?;
            }
            let full = self.full(folder.as_ref());
            let failed = |source| match &folder {
                Some(path) => SyncError::Read {
                    path: path.clone(),
                    source,
                },
                None => SyncError::Root {
                    root: self.rules.root().to_owned(),
                    source,
                },
            };
            let listed = match fs::read_dir(&full) {
                Ok(listed) => listed.collect::<Result<Vec<_>, _>>().map_err(failed)?,
                // Removed since its own folder was listed.
                Err(error) if folder.is_some() && error.kind() == io::ErrorKind::NotFound => {
                    continue;
                }
                Err(error) => return Err(failed(error)),
            };
            if let Some(path) = &folder {
                let kind = EntryKind::Folder {
                    empty: listed.is_empty(),
                };
                self.entries.push(Entry {
                    path: path.clone(),
                    kind,
                    size: 0,
                    digest: Digest::NONE,
                });
            }
            for item in listed {
                let path = EntryPath::child(folder.as_ref(), &item.file_name());
                let kind = match item.file_type() {
                    Ok(kind) => kind,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(source) => return Err(SyncError::Read { path, source }),
                };
                if !self.rules.counts_here(&path, kind.is_dir()) {
                    continue;
                }
                if kind.is_dir() {
                    waiting.push(Some(path));
                } else if kind.is_file() {
                    self.files.push(path);
                } else if kind.is_symlink() {
                    self.link(path)?;
                } else {
                    self.skipped.push(path);
                }
            }
        }
        Ok(())
    }

    /// The tracked files that the walk didn't come to, because they are ignored
    /// or lie in an ignored folder.
    fn tracked(&mut self) -> Result<(), SyncError> {
        let mut sieve = Sieve::new(&self.rules);
        let hidden: Vec<EntryPath> = self
            .rules
            .tracked()
            .filter(|path| !sieve.reaches(path))
            .cloned()
            .collect();
        for path in hidden {
            // A folder that became a link would lead out of the project.
            let real = path.folders().all(|folder| {
                self.full(Some(&folder))
                    .symlink_metadata()
                    .is_ok_and(|meta| meta.is_dir())
            });
            match self.full(Some(&path)).symlink_metadata() {
                Ok(meta) if real && meta.is_file() => self.files.push(path),
                Ok(meta) if real && meta.is_symlink() => self.link(path)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn link(&mut self, path: EntryPath) -> Result<(), SyncError> {
        let target = match fs::read_link(self.full(Some(&path))) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(SyncError::Read { path, source }),
        };
        self.entries
            .push(link_entry(path, target.as_os_str().as_bytes()));
        Ok(())
    }

    fn full(&self, path: Option<&EntryPath>) -> std::path::PathBuf {
        let root = self.rules.root().as_std_path();
        path.map_or_else(|| root.to_owned(), |path| root.join(path.as_path()))
    }
}

/// The entry of a link.
pub(crate) fn link_entry(path: EntryPath, target: &[u8]) -> Entry {
    let (size, digest) = (target.len() as u64, Digest::of(target));
    Entry {
        path,
        kind: EntryKind::Link,
        size,
        digest,
    }
}

/// What came of reading one file: no entry when it is gone.
#[derive(Debug, Default)]
struct Reading {
    entry: Option<Entry>,
    unsettled: Option<EntryPath>,
    /// How it looked, if it stayed so.
    stamp: Option<Stamp>,
}

/// Read `files` with as many threads as there are processors.
fn hash_all(
    root: &Path,
    files: &[EntryPath],
    index: &StatIndex,
) -> Result<Vec<Reading>, SyncError> {
    let workers = std::thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(8);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        let mut buffer = vec![0; 128 * 1024];
        while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push(match as_known(root, path, index) {
                Some(reading) => reading,
                None => hash_settled(root, path, &mut buffer, File::read)?,
            });
        }
        Ok(done)
    };
    if files.len() < 64 || workers == 1 {
        return work();
    }
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::with_capacity(files.len());
        for worker in started {
            all.extend(
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?,
            );
        }
        Ok(all)
    })
}

/// A file that looks as it did when it was hashed.
fn as_known(root: &Path, path: &EntryPath, index: &StatIndex) -> Option<Reading> {
    if index.is_empty() {
        return None;
    }
    let meta = root.join(path.as_path()).symlink_metadata().ok()?;
    let stamp = Stamp::of_metadata(&meta);
    let entry = index.get(path, &stamp)?;
    Some(Reading {
        entry: Some(entry.clone()),
        unsettled: None,
        stamp: Some(stamp),
    })
}

/// Read one file until it stays as it is for the time of a reading. `read` is
/// `Read::read`, which the tests come between.
fn hash_settled(
    root: &Path,
    path: &EntryPath,
    buffer: &mut [u8],
    read: impl Fn(&mut File, &mut [u8]) -> io::Result<usize>,
) -> Result<Reading, SyncError> {
    let full = root.join(path.as_path());
    let mut last = Reading::default();
    for _ in 0..ATTEMPTS {
        let failed = |source| SyncError::Read {
            path: path.clone(),
            source,
        };
        let Some(mut file) = open(&full).map_err(failed)? else {
            return Ok(Reading::default());
        };
        let before = file.metadata().map_err(failed)?;
        let mut hasher = blake3::Hasher::new();
        let mut size = 0;
        loop {
            match read(&mut file, buffer) {
                Ok(0) => break,
                Ok(count) => {
                    hasher.update(&buffer[..count]);
                    size += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(failed(source)),
            }
        }
        let after = file.metadata().map_err(failed)?;
        let entry = Entry {
            path: path.clone(),
            kind: EntryKind::File {
                executable: is_executable(&after),
            },
            size,
            digest: Digest(*hasher.finalize().as_bytes()),
        };
        if is_settled(&before, &after, size) {
            return Ok(Reading {
                entry: Some(entry),
                unsettled: None,
                stamp: Some(Stamp::of_metadata(&after)),
            });
        }
        last = Reading {
            entry: Some(entry),
            unsettled: Some(path.clone()),
            stamp: None,
        };
    }
    Ok(last)
}

/// Open a regular file, never through a link and never waiting for a FIFO's
/// writer; `None` when it is gone or something else by now.
fn open(full: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    match File::options().read(true).custom_flags(flags).open(full) {
        Ok(file) => Ok(file.metadata()?.is_file().then_some(file)),
        Err(error)
            if matches!(
                Errno::from_io_error(&error),
                Some(Errno::NOENT | Errno::LOOP | Errno::NXIO)
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Whether a file was the same before and after `size` bytes were read from it.
fn is_settled(before: &Metadata, after: &Metadata, size: u64) -> bool {
    let state = |meta: &Metadata| {
        (
            meta.len(),
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime(),
            meta.ctime_nsec(),
        )
    };
    state(before) == state(after) && after.len() == size
}

/// The owner's executable bit, the only permission that git keeps too.
fn is_executable(meta: &Metadata) -> bool {
    meta.mode() & 0o100 != 0
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write as _;

    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::never(0, "0", false)]
    #[case::once(1, "01", false)]
    #[case::at_every_reading(ATTEMPTS, "012", true)]
    fn a_file_that_changes_while_it_is_read_is_read_again(
        #[case] changes: usize,
        #[case] content: &str,
        #[case] unsettled: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = EntryPath::parse(b"file").unwrap();
        let full = folder.path().join("file");
        let append = |byte: u8| {
            let mut file = File::options()
                .create(true)
                .append(true)
                .open(&full)
                .unwrap();
            file.write_all(&[byte]).unwrap();
        };
        append(b'0');
        let done = Cell::new(0);
        let reading = hash_settled(folder.path(), &path, &mut [0; 8], |file, buffer| {
            let count = file.read(buffer)?;
            if count == 0 && done.get() < changes {
                done.set(done.get() + 1);
                append(b'0' + u8::try_from(done.get()).unwrap());
            }
            Ok(count)
        })
        .unwrap();
        assert_eq!(
            reading.entry.unwrap().digest,
            Digest::of(content.as_bytes())
        );
        assert_eq!(reading.unsettled, unsettled.then_some(path));
    }
}
