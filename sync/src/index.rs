//! What was hashed and how it looked then, so that it needn't be hashed again.
//!
//! Invariant: an entry is relied on only while size, both times, inode and device are
//! the same, and only if the times were old enough when it was hashed: within one
//! tick of a disk's clock a file can be written twice under one time.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

use crate::store;
use crate::{Entry, EntryPath};

/// How old the times of a file must be, in nanoseconds: the coarsest clock of a disk
/// (FAT's) ticks every two seconds.
const SETTLED: i64 = 2_000_000_000;

/// How a file looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    size: u64,
    /// Nanoseconds since 1970.
    modified: i64,
    /// Nanoseconds since 1970.
    changed: i64,
    inode: u64,
    device: u64,
    mode: u32,
}

impl Stamp {
    /// Of what the standard library says of a file.
    pub fn of_metadata(meta: &Metadata) -> Self {
        Self {
            size: meta.size(),
            modified: nanoseconds(meta.mtime(), meta.mtime_nsec()),
            changed: nanoseconds(meta.ctime(), meta.ctime_nsec()),
            inode: meta.ino(),
            device: meta.dev(),
            mode: meta.mode(),
        }
    }

    /// Of what the system says of a file.
    #[expect(
        clippy::useless_conversion,
        reason = "the fields' types differ from system to system"
    )]
    pub fn of(stat: &Stat) -> Self {
        let time = |seconds: i64, part| nanoseconds(seconds, i64::try_from(part).unwrap_or(0));
        Self {
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: time(stat.st_mtime.into(), stat.st_mtime_nsec),
            changed: time(stat.st_ctime.into(), stat.st_ctime_nsec),
            inode: stat.st_ino.into(),
            device: u64::try_from(stat.st_dev).unwrap_or(0),
            mode: stat.st_mode.into(),
        }
    }

    /// Whether it is the same file with the same content, which may have been moved.
    pub(crate) fn is_same_but_for_a_move(&self, later: &Self) -> bool {
        Self {
            changed: later.changed,
            ..*self
        } == *later
    }

    /// Whether it was written so lately that its time doesn't tell two writings apart.
    pub(crate) fn is_recent(&self) -> bool {
        self.modified > now() - SETTLED
    }

    fn is_settled_before(&self, moment: i64) -> bool {
        self.modified.max(self.changed) < moment - SETTLED
    }
}

fn nanoseconds(seconds: i64, part: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(part)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

/// What was hashed in one tree.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StatIndex {
    entries: HashMap<EntryPath, Known>,
}

/// One file as it was hashed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    stamp: Stamp,
    entry: Entry,
}

/// The moment from which a scan's stamps are judged.
#[derive(Debug, Clone, Copy)]
pub struct Began(i64);

impl Began {
    /// Now.
    pub fn now() -> Self {
        Self(now())
    }
}

impl StatIndex {
    /// The index in `file`. One that isn't there, is damaged or comes from another
    /// version is an empty one: everything is hashed then.
    pub fn read(file: &Path) -> Self {
        store::read(file).ok().flatten().unwrap_or_default()
    }

    /// Replace `file`.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        store::write(file, self, store::Durability::UntilRestart)
    }

    /// What `path` is, if it still looks as it did.
    pub fn get(&self, path: &EntryPath, stamp: &Stamp) -> Option<&Entry> {
        let known = self.entries.get(path)?;
        (known.stamp == *stamp).then_some(&known.entry)
    }

    /// The stamp under which `path` was hashed.
    pub fn stamp(&self, path: &EntryPath) -> Option<Stamp> {
        self.entries.get(path).map(|known| known.stamp)
    }

    /// Note what was hashed in a scan that `began` then. What was written too lately
    /// isn't noted.
    pub fn note(&mut self, began: Began, stamp: Stamp, entry: Entry) {
        if stamp.is_settled_before(began.0) {
            self.entries
                .insert(entry.path.clone(), Known { stamp, entry });
        }
    }

    /// How many files are in it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rstest::rstest;

    use super::*;
    use crate::{Digest, EntryKind};

    #[rstest]
    #[case::lately(0, false)]
    #[case::within_a_tick(1, false)]
    #[case::long_ago(60, true)]
    fn a_file_is_known_only_if_it_was_not_written_just_before_it_was_hashed(
        #[case] seconds: u64,
        #[case] known: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let meta = folder.path().symlink_metadata().unwrap();
        let mut stamp = Stamp::of_metadata(&meta);
        let age = i64::try_from(Duration::from_secs(seconds).as_nanos()).unwrap();
        (stamp.modified, stamp.changed) = (now() - age, now() - age);
        let path = EntryPath::parse(b"a").unwrap();
        let entry = Entry {
            path: path.clone(),
            kind: EntryKind::File { executable: false },
            size: 0,
            digest: Digest::of(b""),
        };
        let mut index = StatIndex::default();
        index.note(Began::now(), stamp, entry);
        assert_eq!(index.get(&path, &stamp).is_some(), known);
        let file = folder.path().join("index");
        index.write(&file).unwrap();
        assert_eq!(StatIndex::read(&file), index);
        let later = Stamp {
            changed: stamp.changed + 1,
            ..stamp
        };
        assert_eq!(index.get(&path, &later), None);
    }
}
