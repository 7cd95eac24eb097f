//! What lies at one path, and a whole tree by path, as reconciling sees it.

use std::collections::BTreeMap;
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use crate::{Digest, Entry, EntryKind, EntryPath, Snapshot};

/// What lies at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum State {
    /// Nothing that counts.
    Absent,
    /// A folder.
    Folder,
    /// A symbolic link, which is data.
    Link {
        /// Bytes of its target.
        size: u64,
        /// Of its target.
        digest: Digest,
    },
    /// A regular file.
    File {
        /// Whether its owner may execute it.
        executable: bool,
        /// Bytes of content.
        size: u64,
        /// Of its content.
        digest: Digest,
    },
}

impl State {
    /// What an entry is, without its path.
    pub fn of(entry: &Entry) -> Self {
        let (size, digest) = (entry.size, entry.digest);
        match entry.kind {
            EntryKind::File { executable } => Self::File {
                executable,
                size,
                digest,
            },
            EntryKind::Link => Self::Link { size, digest },
            EntryKind::Folder { .. } => Self::Folder,
        }
    }

    /// The content that has to be there before this state can be made: a file's
    /// bytes or a link's target.
    pub fn content(&self) -> Option<(Digest, u64)> {
        match *self {
            Self::File { size, digest, .. } | Self::Link { size, digest } => Some((digest, size)),
            Self::Absent | Self::Folder => None,
        }
    }

    /// Whether something of its own would be lost if it went: a file or a link.
    pub fn holds_content(&self) -> bool {
        self.content().is_some()
    }
}

/// A tree by path. Every folder above an entry is in it; a folder in which only
/// ignored things lie isn't, so that it is neither created nor deleted elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    states: BTreeMap<EntryPath, State>,
}

impl Tree {
    /// The tree of a snapshot.
    pub fn of(snapshot: &Snapshot) -> Self {
        let mut tree = Self::default();
        for entry in snapshot.entries() {
            if !matches!(entry.kind, EntryKind::Folder { empty: false }) {
                tree.insert(entry.path.clone(), State::of(entry));
            }
        }
        tree
    }

    /// The same tree with those of `folders` that were in `base`: one that now holds only
    /// what doesn't count is there all the same, and isn't taken for a deleted one.
    #[cfg(feature = "laptop")]
    #[must_use]
    pub(crate) fn with_folders(mut self, folders: &[EntryPath], base: &Self) -> Self {
        for folder in folders {
            if self.at(folder) == State::Absent && base.at(folder) == State::Folder {
                self.insert(folder.clone(), State::Folder);
            }
        }
        self
    }

    /// Put `state` at `path`, and folders above it.
    pub(crate) fn insert(&mut self, path: EntryPath, state: State) {
        for folder in path.folders() {
            self.states.entry(folder).or_insert(State::Folder);
        }
        self.set(path, state);
    }

    /// Put `state` at `path` alone.
    pub(crate) fn set(&mut self, path: EntryPath, state: State) {
        match state {
            State::Absent => {
                self.states.remove(&path);
            }
            state => {
                self.states.insert(path, state);
            }
        }
    }

    /// What lies at `path`.
    pub fn at(&self, path: &EntryPath) -> State {
        self.states.get(path).copied().unwrap_or(State::Absent)
    }

    /// Everything, sorted by the bytes of the paths: a folder before what is in it.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&EntryPath, State)> {
        self.states.iter().map(|(path, state)| (path, *state))
    }

    /// Everything below the folder `path`, itself not included.
    pub fn below(&self, path: &EntryPath) -> impl Iterator<Item = (&EntryPath, State)> {
        let top = [path.as_bytes(), b"/"].concat();
        let from = (Bound::Excluded(top.as_slice()), Bound::Unbounded);
        let inside = self.states.range::<[u8], _>(from);
        inside
            .take_while(move |(path, _)| path.as_bytes().starts_with(&top))
            .map(|(path, state)| (path, *state))
    }

    /// How many files and links it holds.
    pub fn files(&self) -> usize {
        self.states.values().filter(|s| s.holds_content()).count()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }
}

impl FromIterator<(EntryPath, State)> for Tree {
    fn from_iter<T: IntoIterator<Item = (EntryPath, State)>>(entries: T) -> Self {
        let mut tree = Self::default();
        for (path, state) in entries {
            tree.insert(path, state);
        }
        tree
    }
}
