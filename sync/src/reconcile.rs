//! Which changes make two trees the same again, decided from the last common state.
//!
//! Pure. A side's own change is what differs there from the last common state; it
//! goes to the other side if that one didn't change the same path. Where both
//! changed, each keeps its own and the path is a named conflict.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::plan::{Change, Conflict, Plan, Reason, Side};
use crate::spelling::Folding;
use crate::{EntryPath, Protected, State, Tree};

/// Which way changes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the laptop to the VM only. What changed on the VM stays there and is named.
    Mirror,
    /// Both ways.
    TwoWay,
}

/// What a person at a terminal decided for a path and all that lies below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Take {
    /// Whose version stands.
    pub side: Side,
    /// For which path; `None` is the whole tree.
    pub path: Option<EntryPath>,
}

impl Take {
    fn covers(&self, path: &EntryPath) -> bool {
        self.path.as_ref().is_none_or(|top| path.is_within(top))
    }
}

/// The two trees and the last common state. An empty one is none: nothing is
/// deleted then, and what differs is a conflict.
#[derive(Debug, Clone, Copy)]
pub struct Trees<'a> {
    /// What both were when they were last the same.
    pub base: &'a Tree,
    /// The project.
    pub laptop: &'a Tree,
    /// The copy.
    pub vm: &'a Tree,
}

/// By which rules they are made the same.
pub struct Terms<'a> {
    /// Which way changes go.
    pub direction: Direction,
    /// Whether the last common state is known at all.
    pub has_base: bool,
    /// What never comes back from the VM by itself.
    pub protected: &'a Protected,
    /// What else never comes back: the policy's denyWrite.
    pub never_taken: &'a dyn Fn(&EntryPath) -> bool,
    /// What never leaves the laptop: the policy's denyRead.
    pub never_sent: &'a dyn Fn(&EntryPath) -> bool,
    /// What a person decided.
    pub takes: &'a [Take],
    /// Which names are one on the laptop's disk.
    pub laptop_folds: Folding,
    /// Which names are one on the VM's disk.
    pub vm_folds: Folding,
}

/// What makes `trees` the same by `terms`.
pub fn reconcile(trees: Trees<'_>, terms: &Terms<'_>) -> Plan {
    let paths: BTreeSet<&EntryPath> = [trees.base, trees.laptop, trees.vm]
        .into_iter()
        .flat_map(|tree| tree.iter().map(|(path, _)| path))
        .collect();
    let mut work = Work {
        trees,
        terms,
        plan: Plan::default(),
        held: HashSet::new(),
        laptop: trees.laptop.clone(),
        vm: trees.vm.clone(),
    };
    // A folder comes before what is in it.
    for path in paths {
        work.path(path);
    }
    work.finish()
}

struct Work<'a> {
    trees: Trees<'a>,
    terms: &'a Terms<'a>,
    plan: Plan,
    /// The paths of the conflicts so far.
    held: HashSet<EntryPath>,
    /// The trees as the plan so far leaves them.
    laptop: Tree,
    vm: Tree,
}

impl Work<'_> {
    fn path(&mut self, path: &EntryPath) {
        let base = self.trees.base.at(path);
        let (laptop, vm) = (self.trees.laptop.at(path), self.trees.vm.at(path));
        if (self.terms.never_sent)(path) {
            if laptop != vm {
                self.plan.withheld.push(path.clone());
            }
            return;
        }
        if laptop == vm {
            if base != laptop {
                self.plan.agreed.push((path.clone(), laptop));
            }
            return;
        }
        if path.folders().any(|folder| self.held.contains(&folder)) {
            return;
        }
        let take = self.terms.takes.iter().find(|take| take.covers(path));
        let target = match (take, laptop == base, vm == base) {
            (Some(take), _, _) => take.side.other(),
            (None, false, true) => Side::Vm,
            (None, true, false) => match self.terms.direction {
                Direction::TwoWay => Side::Laptop,
                Direction::Mirror => return self.plan.kept.push(path.clone()),
            },
            // A folder takes nothing away from a side that has nothing there.
            (None, _, _) if laptop == State::Folder && vm == State::Absent => Side::Vm,
            (None, _, _) if vm == State::Folder && laptop == State::Absent => {
                match self.terms.direction {
                    Direction::TwoWay => Side::Laptop,
                    Direction::Mirror => return self.plan.kept.push(path.clone()),
                }
            }
            (None, _, _) => {
                let reason = if self.terms.has_base {
                    Reason::BothChanged
                } else {
                    Reason::NoCommonState
                };
                return self.conflict(path, reason);
            }
        };
        let (from, to) = match target {
            Side::Laptop => (laptop, vm),
            Side::Vm => (vm, laptop),
        };
        let change = Change {
            path: path.clone(),
            from,
            to,
        };
        if let Some(reason) = self.obstacle(target, &change, take) {
            self.conflict(path, reason);
        } else {
            self.after(target).set(path.clone(), to);
            self.plan.changes_mut(target).push(change);
        }
    }

    /// Why `change` can't be made on `target`.
    fn obstacle(&mut self, target: Side, change: &Change, take: Option<&Take>) -> Option<Reason> {
        let path = &change.path;
        // Who takes a whole folder hasn't read the name of each file in it.
        let named = take.and_then(|take| take.path.as_ref());
        let is_named = named.is_some_and(|named| named == path || self.never_comes(named, true));
        if target == Side::Laptop && !is_named {
            // A folder in itself runs nothing, and what is in it is asked about too.
            let is_folder = !change.to.holds_content() && !change.from.holds_content();
            if !is_folder && self.never_comes(path, change.to.holds_content()) {
                return Some(Reason::NeverTakenBack);
            }
        }
        if change.from == State::Folder && change.to.holds_content() && take.is_none() {
            // What is deleted there in the meantime is in nobody's way.
            let base = self.trees.base;
            let changed = self
                .tree(target)
                .below(path)
                .find(|(path, state)| base.at(path) != *state)
                .map(|(path, _)| path.clone());
            let stays = changed.or_else(|| self.stays_below(target, path));
            if let Some(stays) = stays {
                return Some(Reason::Below(stays));
            }
        }
        let after = self.after(target);
        if change.to != State::Absent {
            let blocked = path
                .folders()
                .find(|folder| after.at(folder).holds_content());
            if let Some(folder) = blocked {
                return Some(Reason::Above(folder));
            }
        }
        None
    }

    /// Whether a change at `path` never comes back from the VM by itself.
    fn never_comes(&self, path: &EntryPath, replaces: bool) -> bool {
        self.terms.protected.covers(path, replaces) || (self.terms.never_taken)(path)
    }

    /// Something below a folder of `target` that the plan must not remove there.
    fn stays_below(&self, target: Side, path: &EntryPath) -> Option<EntryPath> {
        let stays = |path: &EntryPath, state: State| {
            let protected =
                target == Side::Laptop && state.holds_content() && self.never_comes(path, false);
            protected || (self.terms.never_sent)(path)
        };
        self.tree(target)
            .below(path)
            .find(|(path, state)| stays(path, *state))
            .map(|(path, _)| path.clone())
    }

    fn conflict(&mut self, path: &EntryPath, reason: Reason) {
        self.held.insert(path.clone());
        self.plan.conflicts.push(Conflict {
            path: path.clone(),
            laptop: self.trees.laptop.at(path),
            vm: self.trees.vm.at(path),
            reason,
        });
    }

    fn tree(&self, side: Side) -> &Tree {
        match side {
            Side::Laptop => self.trees.laptop,
            Side::Vm => self.trees.vm,
        }
    }

    fn after(&mut self, side: Side) -> &mut Tree {
        match side {
            Side::Laptop => &mut self.laptop,
            Side::Vm => &mut self.vm,
        }
    }

    fn finish(mut self) -> Plan {
        self.separate_names(Side::Laptop, self.terms.laptop_folds);
        self.separate_names(Side::Vm, self.terms.vm_folds);
        for side in [Side::Laptop, Side::Vm] {
            // A folder goes only when nothing that stays is in it.
            let after = self.after(side).clone();
            self.plan.changes_mut(side).retain(|change| {
                let goes = change.from == State::Folder && change.to == State::Absent;
                !(goes && after.below(&change.path).next().is_some())
            });
        }
        self.plan
    }

    /// Take back every creation whose name another path has on a disk that folds.
    fn separate_names(&mut self, side: Side, folding: Folding) {
        if folding == Folding::NONE {
            return;
        }
        let mut names: HashMap<Vec<u8>, EntryPath> = HashMap::new();
        let is_new: HashSet<EntryPath> = self
            .plan
            .changes(side)
            .iter()
            .filter(|change| change.from == State::Absent)
            .map(|change| change.path.clone())
            .collect();
        let after = self.after(side).clone();
        // What is there has its name first, then what is new in the order of paths.
        let there = after.iter().filter(|(path, _)| !is_new.contains(*path));
        let new = after.iter().filter(|(path, _)| is_new.contains(*path));
        let mut refused: Vec<(EntryPath, EntryPath)> = Vec::new();
        for (path, _) in there.chain(new) {
            let above = refused.iter().find(|(top, _)| path.is_within(top));
            if above.is_some() {
                continue;
            }
            match names.get(&folding.key(path)) {
                Some(other) if is_new.contains(path) => {
                    refused.push((path.clone(), other.clone()));
                }
                Some(_) => {}
                None => {
                    names.insert(folding.key(path), path.clone());
                }
            }
        }
        for (path, other) in refused {
            self.plan
                .changes_mut(side)
                .retain(|change| !change.path.is_within(&path));
            let gone: Vec<EntryPath> = after.below(&path).map(|(path, _)| path.clone()).collect();
            for path in gone.into_iter().chain([path.clone()]) {
                let state = self.tree(side).at(&path);
                self.after(side).set(path, state);
            }
            self.conflict(&path, Reason::SameName(other));
        }
    }
}
