//! What a sync is going to do, and what it leaves alone.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{EntryPath, State};

/// One of the two trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Side {
    /// The project.
    Laptop,
    /// The copy.
    Vm,
}

impl Side {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Laptop => Self::Vm,
            Self::Vm => Self::Laptop,
        }
    }
}

/// Something to be done at one path of one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Where.
    pub path: EntryPath,
    /// What lies there as far as is known: anything else, and it isn't done.
    pub from: State,
    /// What shall lie there.
    pub to: State,
}

impl Change {
    /// Whether a file or link goes and nothing of the kind takes its place.
    pub fn deletes(&self) -> bool {
        self.from.holds_content() && !self.to.holds_content()
    }

    /// Whether only the executable bit changes.
    pub fn is_mode_only(&self) -> bool {
        matches!(
            (self.from, self.to),
            (State::File { digest: a, size: m, .. }, State::File { digest: b, size: n, .. })
                if a == b && m == n
        )
    }
}

/// Why a path stays different.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Both sides changed it since they were last the same.
    BothChanged,
    /// The sides were never known to be the same, and they differ.
    NoCommonState,
    /// It changed on the VM, and changes there never come back by themselves.
    NeverTakenBack,
    /// On the target's disk it has the same name as this path.
    SameName(EntryPath),
    /// What lies at this path above it is no folder on the target.
    Above(EntryPath),
    /// A folder becomes something else, and this below it changed on the target.
    Below(EntryPath),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BothChanged => write!(f, "changed on both sides"),
            Self::NoCommonState => write!(f, "differs, and it isn't known which is newer"),
            Self::NeverTakenBack => write!(f, "changed on the VM, and is never taken back"),
            Self::SameName(other) => write!(f, "is the same name as {other} on the target's disk"),
            Self::Above(folder) => write!(f, "{folder} is no folder on the target"),
            Self::Below(path) => write!(f, "{path} in it changed on the other side"),
        }
    }
}

/// A path that stays different, with all that lies below it: each side keeps its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Where.
    pub path: EntryPath,
    /// What the laptop keeps.
    pub laptop: State,
    /// What the VM keeps.
    pub vm: State,
    /// Why.
    pub reason: Reason,
}

/// What a sync is going to do. Changes of one side are sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// To be done in the project.
    pub laptop: Vec<Change>,
    /// To be done in the copy.
    pub vm: Vec<Change>,
    /// What stays different until a person takes one side.
    pub conflicts: Vec<Conflict>,
    /// What is newer on the VM and stays there, because the sync is a mirror.
    pub kept: Vec<EntryPath>,
    /// What the policy never sends, and what differs there isn't looked at.
    pub withheld: Vec<EntryPath>,
    /// Paths that became the same on both sides without this sync.
    pub(crate) agreed: Vec<(EntryPath, State)>,
}

impl Plan {
    /// What is to be done on `side`.
    pub fn changes(&self, side: Side) -> &[Change] {
        match side {
            Side::Laptop => &self.laptop,
            Side::Vm => &self.vm,
        }
    }

    #[cfg(feature = "laptop")]
    pub(crate) fn changes_mut(&mut self, side: Side) -> &mut Vec<Change> {
        match side {
            Side::Laptop => &mut self.laptop,
            Side::Vm => &mut self.vm,
        }
    }

    /// Whether there is nothing to do and nothing differs.
    pub fn is_same(&self) -> bool {
        !self.has_changes() && self.conflicts.is_empty() && self.kept.is_empty()
    }

    /// Whether there is something to do.
    pub fn has_changes(&self) -> bool {
        !self.laptop.is_empty() || !self.vm.is_empty()
    }

    /// Whether the last common state moves, even if nothing is to be done.
    pub fn moves_base(&self) -> bool {
        self.has_changes() || !self.agreed.is_empty()
    }

    /// The conflict that holds `path` back, itself or above it.
    pub fn conflict_at(&self, path: &EntryPath) -> Option<&Conflict> {
        self.conflicts.iter().find(|c| path.is_within(&c.path))
    }
}
