//! Answers one question: where does a process keep files that end with it?
//!
//! In a private folder below the system's temporary one. Its owner holds a lock on it
//! for as long as it lives, so that whoever makes the next one can tell, and remove,
//! what a killed owner left.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use fs2::FileExt as _;
use tempfile::TempDir;

const PREFIX: &str = "boxery-ssh-";
/// A folder so young may be one that its owner is about to lock.
const YOUNG: Duration = Duration::from_secs(10);

/// A private folder; removed when dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: TempDir,
    _lock: File,
}

impl Scratch {
    /// Make one below `parent`, and remove those whose owners are gone.
    pub(crate) fn create(parent: &Path) -> io::Result<Self> {
        sweep(parent);
        let folder = TempDir::with_prefix_in(PREFIX, parent)?;
        let lock = File::open(folder.path())?;
        lock.lock_exclusive()?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// What can't be looked at or removed is left alone: it does no harm.
fn sweep(parent: &Path) {
    let own = rustix::process::getuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let Ok(metadata) = fs::symlink_metadata(entry.path()) else {
            continue;
        };
        let age = metadata
            .modified()
            .map(|made| made.elapsed().unwrap_or_default());
        let is_ours = metadata.is_dir() && metadata.uid() == own;
        if is_ours
            && age.is_ok_and(|age| age > YOUNG)
            && File::open(entry.path()).is_ok_and(|folder| folder.try_lock_exclusive().is_ok())
        {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn age(path: &Path) {
        let hour = SystemTime::now() - Duration::from_hours(1);
        File::open(path).unwrap().set_modified(hour).unwrap();
    }

    #[test]
    fn what_a_killed_owner_left_goes_when_the_next_folder_is_made() {
        let parent = TempDir::new().unwrap();
        let living = Scratch::create(parent.path()).unwrap();
        let young = parent.path().join("boxery-ssh-young");
        let left = parent.path().join("boxery-ssh-left");
        let other = parent.path().join("other");
        for folder in [&young, &left, &other] {
            fs::create_dir(folder).unwrap();
        }
        for folder in [living.path(), &left, &other] {
            age(folder);
        }
        let next = Scratch::create(parent.path()).unwrap();
        assert!(!left.exists());
        for folder in [living.path(), next.path(), &young, &other] {
            assert!(folder.exists(), "{folder:?}");
        }
        let path = next.path().to_owned();
        drop(next);
        assert!(!path.exists());
    }
}
