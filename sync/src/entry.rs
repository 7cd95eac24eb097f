//! What a tree consists of.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::EntryPath;

/// BLAKE3 of a file's content or of a link's target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// What stands in entries without content.
    pub(crate) const NONE: Self = Self([0; 32]);
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A regular file.
    File {
        /// Whether its owner may execute it; no other permission is compared.
        executable: bool,
    },
    /// A symbolic link. Its target is its content; it is never followed.
    Link,
    /// A folder.
    Folder {
        /// Whether nothing at all lies in it, ignored files included.
        empty: bool,
    },
}

/// One file, link or folder that counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Where.
    pub path: EntryPath,
    /// What.
    pub kind: EntryKind,
    /// Bytes of content.
    pub size: u64,
    /// Digest of the content.
    pub digest: Digest,
}

/// A whole tree, as far as it counts, in the order of its paths' bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    entries: Vec<Entry>,
}

impl Snapshot {
    /// The tree of `entries`, whatever their order. Of two with one path the
    /// later one stands, as in a tar stream.
    pub fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        entries.dedup_by(|later, kept| {
            let same = later.path == kept.path;
            if same {
                std::mem::swap(later, kept);
            }
            same
        });
        Self { entries }
    }

    /// The entries, sorted.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry at `path`.
    pub fn get(&self, path: &EntryPath) -> Option<&Entry> {
        let at = self
            .entries
            .binary_search_by(|entry| entry.path.cmp(path))
            .ok()?;
        self.entries.get(at)
    }

    /// The folders in it.
    pub fn folders(&self) -> impl Iterator<Item = &EntryPath> {
        let folders = self.entries.iter();
        let folders = folders.filter(|entry| matches!(entry.kind, EntryKind::Folder { .. }));
        folders.map(|entry| &entry.path)
    }

    /// How many files and links it holds.
    pub fn files(&self) -> usize {
        self.entries
            .iter()
            .filter(|e| !matches!(e.kind, EntryKind::Folder { .. }))
            .count()
    }

    /// How many bytes they hold.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.size).sum()
    }
}
