//! The last common state of the two repositories, one file per copy.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use fs2::FileExt as _;
use serde::{Deserialize, Serialize};

use super::look::Head;
use super::names::{Oid, RefName};

/// What both sides had last, and what was said of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Base {
    /// Which repository the copy's is; empty for none.
    pub(super) id: String,
    /// How often something moved.
    pub(super) number: u64,
    /// References that were the same.
    pub(super) refs: BTreeMap<RefName, Oid>,
    /// HEAD, its commit and the index, when they were the same.
    pub(super) checkout: Option<Checkout>,
    /// The index that holds nothing which a policy keeps from the VM.
    pub(super) cleared: Option<Oid>,
    /// A digest of what the copy's repository was last told to ignore.
    pub(super) told: String,
    /// What was said once and still holds.
    pub(super) said: BTreeSet<String>,
}

/// What is checked out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Checkout {
    /// Where HEAD points.
    pub(super) head: Head,
    /// The commit there.
    pub(super) at: Option<Oid>,
    /// The index's tree.
    pub(super) index: Oid,
}

/// The file, held for one exchange at a time.
#[derive(Debug)]
pub(super) struct Kept {
    path: Utf8PathBuf,
    /// Unlocked when it is closed.
    _lock: File,
}

impl Kept {
    /// Wait until no other exchange whose state lies in `folder` goes on.
    pub(super) async fn open(folder: &Utf8Path) -> io::Result<Self> {
        let path = folder.join("git");
        tokio::task::spawn_blocking(move || Self::lock(path))
            .await
            .map_err(io::Error::other)?
    }

    fn lock(path: Utf8PathBuf) -> io::Result<Self> {
        let lock = File::options()
            .create(true)
            .append(true)
            .open(path.with_extension("lock"))?;
        lock.lock_exclusive()?;
        Ok(Self { path, _lock: lock })
    }

    /// What is known; a file that can't be understood is nothing known.
    pub(super) fn read(&self) -> io::Result<Base> {
        match fs::read(&self.path) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Base::default()),
            Err(error) => Err(error),
        }
    }

    /// Keep it.
    pub(super) fn write(&self, base: &Base) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(&self.path);
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec(base)?)?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }
}
