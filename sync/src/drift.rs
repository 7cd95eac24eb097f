//! How project and copy differ.

use std::fmt::Write as _;

use crate::{Entry, EntryKind, EntryPath, Snapshot};

/// How one path differs. Which side is newer can't be told from one comparison:
/// that needs the last common state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DriftClass {
    /// On both sides, and not the same.
    Differs,
    /// On the laptop only.
    OnlyLaptop,
    /// On the VM only.
    OnlyVm,
}

/// Every path that differs, sorted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drift {
    /// The paths.
    pub paths: Vec<(EntryPath, DriftClass)>,
}

/// How many names a summary holds.
const NAMED: usize = 5;

impl Drift {
    /// What differs between the project and its copy.
    ///
    /// A folder is told only when it is empty: otherwise what lies in it tells, and
    /// a folder that holds nothing but ignored files is no drift.
    pub fn between(laptop: &Snapshot, vm: &Snapshot) -> Self {
        let mut paths = Vec::new();
        let (mut left, mut right) = (
            laptop.entries().iter().peekable(),
            vm.entries().iter().peekable(),
        );
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(a), Some(b)) => a.path.cmp(&b.path),
            };
            let (a, b) = match order {
                std::cmp::Ordering::Less => (left.next(), None),
                std::cmp::Ordering::Greater => (None, right.next()),
                std::cmp::Ordering::Equal => (left.next(), right.next()),
            };
            let class = match (a, b) {
                (Some(a), Some(b)) => (!is_same(a, b)).then_some(DriftClass::Differs),
                (Some(a), None) => is_told(a).then_some(DriftClass::OnlyLaptop),
                (None, Some(b)) => is_told(b).then_some(DriftClass::OnlyVm),
                (None, None) => None,
            };
            if let (Some(class), Some(entry)) = (class, a.or(b)) {
                paths.push((entry.path.clone(), class));
            }
        }
        Self { paths }
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// How many paths are in `class`.
    pub fn count(&self, class: DriftClass) -> usize {
        self.paths
            .iter()
            .filter(|(_, found)| *found == class)
            .count()
    }

    /// One line: up to five names and the counts in both directions.
    ///
    /// Paths that the laptop has come first, because a command in the VM misses them.
    pub fn summary(&self, vm: &str) -> String {
        if self.is_empty() {
            return format!("the copy on {vm} is the same as the project");
        }
        let mut order: Vec<&(EntryPath, DriftClass)> = self.paths.iter().collect();
        order.sort_by_key(|(_, class)| *class);
        let mut line = format!("the copy on {vm} isn't the same as the project: ");
        let names: Vec<String> = order
            .iter()
            .take(NAMED)
            .map(|(path, _)| path.to_string())
            .collect();
        line.push_str(&names.join(", "));
        if let Some(more) = self.paths.len().checked_sub(NAMED + 1) {
            // Writing to a string doesn't fail.
            let _ = write!(line, " and {} more", more + 1);
        }
        let _ = write!(
            line,
            " ({} differ, {} only on the laptop, {} only on {vm})",
            self.count(DriftClass::Differs),
            self.count(DriftClass::OnlyLaptop),
            self.count(DriftClass::OnlyVm),
        );
        line
    }
}

fn is_same(a: &Entry, b: &Entry) -> bool {
    match (a.kind, b.kind) {
        (EntryKind::Folder { .. }, EntryKind::Folder { .. }) => true,
        (EntryKind::File { .. }, EntryKind::File { .. }) | (EntryKind::Link, EntryKind::Link) => {
            a.kind == b.kind && a.size == b.size && a.digest == b.digest
        }
        (EntryKind::File { .. } | EntryKind::Link | EntryKind::Folder { .. }, _) => false,
    }
}

fn is_told(entry: &Entry) -> bool {
    !matches!(entry.kind, EntryKind::Folder { empty: false })
}
