//! What a sync does or leaves, as it is told: one line for each path, as git has it.

use std::collections::{HashMap, HashSet};
use std::fmt;

use boxery_sync::talk::Report;
use boxery_sync::{Change, Conflict, EntryPath, Left, Reason, Side, State};
use serde_json::{Value, json};

/// What happens to a path on one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// On which.
    pub(crate) to: Side,
    /// `A`dded, `M`odified, `D`eleted, `R`enamed, or another `T`ype.
    pub(crate) kind: char,
    /// The path.
    pub(crate) path: EntryPath,
    /// Its name before, of one that is renamed.
    pub(crate) from: Option<EntryPath>,
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (way, kind) = (arrow(self.to), self.kind);
        match &self.from {
            Some(from) => write!(f, "{way} {kind} {from} -> {}", self.path),
            None => write!(f, "{way} {kind} {}", self.path),
        }
    }
}

impl Item {
    /// The same for programs.
    pub(crate) fn to_json(&self) -> Value {
        let to = match self.to {
            Side::Laptop => "laptop",
            Side::Vm => "vm",
        };
        json!({
            "event": "change", "to": to, "kind": self.kind.to_string(),
            "path": self.path.to_string(), "from": self.from.as_ref().map(ToString::to_string),
        })
    }
}

fn arrow(to: Side) -> char {
    match to {
        Side::Vm => '>',
        Side::Laptop => '<',
    }
}

/// What is done on `side`, sorted by path: what couldn't be isn't in it, and a folder
/// only where nothing in it is told of.
pub(crate) fn items(report: &Report, side: Side) -> Vec<Item> {
    let left: HashSet<&EntryPath> = report.left(side).iter().map(|(path, _)| path).collect();
    let changes = report.plan.changes(side).iter();
    let changes: Vec<&Change> = changes
        .filter(|change| !left.contains(&change.path))
        .collect();
    let mut told: HashSet<EntryPath> = HashSet::new();
    for change in changes.iter().filter(|change| has_content(change)) {
        told.extend(change.path.folders());
    }
    let gone = renamed(&changes);
    let goes: HashSet<&EntryPath> = gone.values().copied().collect();
    let mut items = Vec::new();
    for change in changes {
        if !has_content(change) && told.contains(&change.path) {
            continue;
        }
        let from = gone.get(&change.path).copied();
        if goes.contains(&change.path) {
            continue;
        }
        items.push(Item {
            to: side,
            kind: from.map_or_else(|| kind(change), |_| 'R'),
            path: change.path.clone(),
            from: from.cloned(),
        });
    }
    items
}

fn has_content(change: &Change) -> bool {
    change.from.holds_content() || change.to.holds_content()
}

/// Which files that come are one that goes.
fn renamed<'a>(changes: &[&'a Change]) -> HashMap<&'a EntryPath, &'a EntryPath> {
    let mut gone: HashMap<State, &EntryPath> = HashMap::new();
    for change in changes {
        if change.deletes() && change.from.content().is_some_and(|(_, size)| size > 0) {
            gone.entry(change.from).or_insert(&change.path);
        }
    }
    let mut found = HashMap::new();
    for change in changes.iter().filter(|change| change.from == State::Absent) {
        if let Some(from) = gone.remove(&change.to) {
            found.insert(&change.path, from);
        }
    }
    found
}

fn kind(change: &Change) -> char {
    match (change.from, change.to) {
        (State::Absent, _) => 'A',
        (_, State::Absent) => 'D',
        (State::File { .. }, State::File { .. })
        | (State::Link { .. }, State::Link { .. })
        | (State::Folder, State::Folder) => 'M',
        (State::File { .. } | State::Link { .. } | State::Folder, _) => 'T',
    }
}

/// What stays different after a sync, and why: a line for each path.
pub(crate) fn open_ends(report: &Report, vm: &str) -> Vec<(EntryPath, String)> {
    let mut ends: Vec<(EntryPath, String)> = Vec::new();
    for Conflict { path, reason, .. } in &report.plan.conflicts {
        ends.push((path.clone(), reason_of(reason, vm)));
    }
    for path in &report.plan.kept {
        ends.push((path.clone(), format!("changed on {vm}, and stays there")));
    }
    for side in [Side::Vm, Side::Laptop] {
        for (path, left) in report.left(side) {
            ends.push((path.clone(), left_because(left)));
        }
    }
    ends.sort();
    ends
}

fn reason_of(reason: &Reason, vm: &str) -> String {
    match reason {
        Reason::NeverTakenBack => format!(
            "changed on {vm}; what would run or decide something here is never taken by itself"
        ),
        Reason::BothChanged
        | Reason::NoCommonState
        | Reason::SameName(_)
        | Reason::Above(_)
        | Reason::Below(_) => reason.to_string(),
    }
}

fn left_because(left: &Left) -> String {
    match left {
        Left::Changed | Left::NotStaged => "changed while it was synced".to_owned(),
        Left::Occupied => "holds something that isn't synced".to_owned(),
        Left::Refused(why) => why.replace(char::is_control, "?"),
    }
}

/// How many names a line holds.
const NAMED: usize = 5;

/// Up to five names, and how many more there are.
pub(crate) fn some_of<T: fmt::Display>(names: &[T]) -> String {
    let shown: Vec<String> = names.iter().take(NAMED).map(ToString::to_string).collect();
    let shown = shown.join(", ");
    match names.len().checked_sub(NAMED + 1) {
        Some(more) => format!("{shown} and {} more", more + 1),
        None => shown,
    }
}

/// What was moved to one side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    /// Files and links.
    pub(crate) files: usize,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Files and links that were deleted there.
    pub(crate) deleted: usize,
}

/// What a sync moved, or would move, to `side`.
pub(crate) fn moved(report: &Report, side: Side) -> Moved {
    let left: HashSet<&EntryPath> = report.left(side).iter().map(|(path, _)| path).collect();
    let mut moved = Moved::default();
    for change in report.plan.changes(side) {
        if left.contains(&change.path) {
            continue;
        }
        if change.deletes() {
            moved.deleted += 1;
        } else if let Some((_, bytes)) = change.to.content() {
            moved.files += 1;
            moved.bytes += if change.is_mode_only() { 0 } else { bytes };
        }
    }
    moved
}
