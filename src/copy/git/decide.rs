//! What moves where, decided from the last common state. Pure.
//!
//! A reference that one side alone moved follows there. Where both moved, the one whose
//! history holds the other wins, since nothing is lost by that, unless the other side
//! went back on purpose. HEAD, the branch it points to and the index belong together:
//! they move as one or not at all.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use boxery_sync::{Direction, Side};

use super::base::Base;
use super::look::{Head, Repository};
use super::names::{Oid, RefName};

/// The two repositories and the last common state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sides<'a> {
    /// The last common state, if there is one.
    pub(super) base: Option<&'a Base>,
    /// The project's repository.
    pub(super) laptop: &'a Repository,
    /// The copy's.
    pub(super) vm: &'a Repository,
    /// Which way things may move.
    pub(super) direction: Direction,
}

/// What becomes of a reference that isn't the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    /// This side gets the other's.
    To(Side),
    /// It moved on both sides.
    Conflict,
    /// This side should get the other's, and can't now.
    Held(Side, String),
}

/// What becomes of HEAD and the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Checkout {
    /// They are the same, or what differs is nobody's.
    Still,
    /// This side gets the other's.
    To(Side),
    /// Each keeps its own, and why; empty where a conflict of the branch says it.
    Apart(String),
    /// Something goes on that must not be disturbed.
    Busy(String),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    /// The references that differ.
    pub(super) refs: BTreeMap<RefName, Choice>,
    /// HEAD and the index.
    pub(super) checkout: Checkout,
}

/// Which commit is in which one's history, as far as that is known.
#[derive(Debug, Default)]
pub(super) struct History {
    known: HashMap<(Oid, Oid), bool>,
    asked: RefCell<BTreeSet<(Oid, Oid)>>,
}

impl History {
    /// Whether `old` is in the history of `new`. What isn't known is no, and noted.
    fn holds(&self, new: &Oid, old: &Oid) -> bool {
        let pair = (new.clone(), old.clone());
        self.known.get(&pair).copied().unwrap_or_else(|| {
            self.asked.borrow_mut().insert(pair);
            false
        })
    }

    /// What was asked, each a commit and one that may be in its history.
    pub(super) fn asked(&self) -> BTreeSet<(Oid, Oid)> {
        self.asked.take()
    }

    /// Learn it.
    pub(super) fn learn(&mut self, pair: (Oid, Oid), holds: bool) {
        self.known.insert(pair, holds);
    }
}

/// Decide it.
pub(super) fn decide(sides: Sides<'_>, history: &History) -> Decision {
    let Sides { laptop, vm, .. } = sides;
    let mut names: BTreeSet<&RefName> = laptop.refs.keys().chain(vm.refs.keys()).collect();
    names.extend(sides.base.iter().flat_map(|base| base.refs.keys()));
    names.retain(|name| !laptop.aliases.contains(name) && !vm.aliases.contains(name));
    let mut refs = BTreeMap::new();
    for name in names {
        let choice = if name.is_shared() {
            shared(sides, name, history)
        } else if name.is_remote() {
            remote(sides, name)
        } else {
            None
        };
        if let Some(choice) = choice {
            refs.insert(name.clone(), choice);
        }
    }
    let checkout = checkout(sides, &refs);
    for (name, choice) in &mut refs {
        hold(sides, &checkout, name, choice);
    }
    Decision { refs, checkout }
}

/// What becomes of a branch, a tag or notes.
fn shared(sides: Sides<'_>, name: &RefName, history: &History) -> Option<Choice> {
    let (laptop, vm) = (sides.laptop.refs.get(name), sides.vm.refs.get(name));
    if laptop == vm {
        return None;
    }
    if let Some(base) = sides.base {
        let base = base.refs.get(name);
        if laptop == base {
            return Some(Choice::To(Side::Laptop));
        }
        if vm == base {
            return Some(Choice::To(Side::Vm));
        }
    }
    let (Some(laptop), Some(vm)) = (laptop, vm) else {
        // What was deleted on one side and moved on the other stays.
        return Some(Choice::To(if laptop.is_some() {
            Side::Vm
        } else {
            Side::Laptop
        }));
    };
    if !name.is_branch() {
        return Some(Choice::Conflict);
    }
    let base = sides.base.and_then(|base| base.refs.get(name));
    let went_back = |oid: &Oid| base.is_some_and(|base| history.holds(base, oid));
    // All of it, so that all that isn't known yet is asked at once.
    let (laptop_back, vm_back) = (went_back(laptop), went_back(vm));
    let (vm_goes_on, laptop_goes_on) = (history.holds(vm, laptop), history.holds(laptop, vm));
    Some(if vm_goes_on && !laptop_back {
        Choice::To(Side::Laptop)
    } else if laptop_goes_on && !vm_back {
        Choice::To(Side::Vm)
    } else {
        Choice::Conflict
    })
}

/// What becomes of what the laptop knows of another remote: what a fetch on the VM
/// brought there stays there.
fn remote(sides: Sides<'_>, name: &RefName) -> Option<Choice> {
    let (laptop, vm) = (sides.laptop.refs.get(name), sides.vm.refs.get(name));
    let base = sides.base.and_then(|base| base.refs.get(name));
    (laptop != vm && vm == base).then_some(Choice::To(Side::Vm))
}

/// What becomes of HEAD and the index.
fn checkout(sides: Sides<'_>, refs: &BTreeMap<RefName, Choice>) -> Checkout {
    let Sides { laptop, vm, .. } = sides;
    let base = sides.base.and_then(|base| base.checkout.as_ref());
    if laptop.head == vm.head && laptop.at == vm.at && laptop.index == vm.index {
        return Checkout::Still;
    }
    for (side, repository) in [("here", laptop), ("on the VM", vm)] {
        if let Some(busy) = &repository.busy {
            return Checkout::Busy(format!("{busy} {side}"));
        }
    }
    let to = if laptop.head == vm.head {
        match laptop.head.branch().and_then(|branch| refs.get(branch)) {
            Some(Choice::To(side)) => *side,
            Some(Choice::Conflict) => return Checkout::Apart(String::new()),
            Some(Choice::Held(_, why)) => return Checkout::Apart(why.clone()),
            None => {
                let unchanged = |side: &Repository| {
                    base.is_some_and(|base| Some(&base.index) == side.index.as_ref())
                };
                let clean = |side: &Repository| side.staged.is_none();
                if laptop.index == vm.index {
                    return Checkout::Still;
                } else if unchanged(laptop) {
                    Side::Laptop
                } else if unchanged(vm) || clean(vm) {
                    Side::Vm
                } else if clean(laptop) && base.is_some() {
                    Side::Laptop
                } else {
                    return Checkout::Apart("both have something else staged".to_owned());
                }
            }
        }
    } else {
        let unchanged = |side: &Repository| {
            base.is_some_and(|base| base.head == side.head && base.at == side.at)
        };
        if unchanged(laptop) {
            Side::Laptop
        } else if unchanged(vm) || (base.is_none() && vm.staged.is_none()) {
            Side::Vm
        } else {
            return Checkout::Apart(format!(
                "HEAD moved on both sides: here to {}, on the VM to {}",
                laptop.head.called(),
                vm.head.called()
            ));
        }
    };
    let (gets, gives) = match to {
        Side::Laptop => (laptop, vm),
        Side::Vm => (vm, laptop),
    };
    if to == Side::Laptop && sides.direction == Direction::Mirror {
        return Checkout::Apart("HEAD or the index moved on the VM".to_owned());
    }
    let is_free = gets.staged.is_none()
        || gets.index == gives.index
        || base.is_some_and(|base| Some(&base.index) == gets.index.as_ref());
    if !is_free {
        let place = match to {
            Side::Laptop => "here",
            Side::Vm => "on the VM",
        };
        return Checkout::Apart(format!("something is staged {place} that would be lost"));
    }
    if gets.head != gives.head
        && let Head::Branch(branch) = &gives.head
    {
        if gets.held.contains(branch) {
            return Checkout::Apart(format!(
                "{} is checked out in another worktree",
                branch.called()
            ));
        }
        let arrives = match refs.get(branch) {
            None => true,
            Some(Choice::To(side)) => *side == to,
            Some(Choice::Conflict | Choice::Held(..)) => false,
        };
        if !arrives {
            return Checkout::Apart(format!("{} moved on both sides", branch.called()));
        }
    }
    Checkout::To(to)
}

/// Hold a reference back that something on its way stands on.
fn hold(sides: Sides<'_>, checkout: &Checkout, name: &RefName, choice: &mut Choice) {
    let Choice::To(to) = *choice else { return };
    let gets = match to {
        Side::Laptop => sides.laptop,
        Side::Vm => sides.vm,
    };
    let why = if to == Side::Laptop && sides.direction == Direction::Mirror {
        "changes go to the VM only".to_owned()
    } else if gets.held.contains(name) {
        "another worktree or a rebase holds it".to_owned()
    } else if gets.head.branch() == Some(name) && *checkout != Checkout::To(to) {
        match checkout {
            Checkout::Busy(why) => why.clone(),
            Checkout::Apart(why) if !why.is_empty() => why.clone(),
            Checkout::Apart(_) | Checkout::Still | Checkout::To(_) => {
                "it is checked out".to_owned()
            }
        }
    } else {
        return;
    };
    *choice = Choice::Held(to, why);
}
