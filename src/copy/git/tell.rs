//! What is said of an exchange.

use std::collections::BTreeSet;

use boxery_sync::Side;

use super::decide::{Checkout, Choice, Decision};
use super::exchange::Work;
use super::look::Repository;
use super::names::{RefName, Shelf};
use super::report::{GitReport, Moved};

impl Work<'_> {
    /// Say what stays apart.
    pub(super) fn tell_apart(
        &self,
        decision: &Decision,
        there: &Repository,
        shelf: &Shelf,
        report: &mut GitReport,
    ) {
        let vm = self.ends.vm;
        let mut told = BTreeSet::new();
        for (name, choice) in &decision.refs {
            let called = name.called();
            match choice {
                Choice::To(_) => {}
                Choice::Conflict => report.conflicts.push(format!(
                    "git: {called} moved here and on {vm}: each keeps its own, and {vm}'s is {} here",
                    shelf.place(name)
                )),
                Choice::Held(Side::Laptop, why) => {
                    told.insert(why.clone());
                    let kept = match there.refs.get(name) {
                        Some(_) => format!("{vm}'s is {} here", shelf.place(name)),
                        None => format!("it is gone on {vm}"),
                    };
                    report
                        .notes
                        .push(format!("git: {called} stays here as it is: {why}; {kept}"));
                }
                Choice::Held(Side::Vm, why) => {
                    told.insert(why.clone());
                    report
                        .notes
                        .push(format!("git: {called} stays on {vm} as it is: {why}"));
                }
            }
        }
        match &decision.checkout {
            Checkout::Still | Checkout::To(_) => {}
            Checkout::Apart(why) if why.is_empty() => {}
            Checkout::Apart(why) => report
                .conflicts
                .push(format!("git: HEAD and index stay as they are: {why}")),
            Checkout::Busy(why) if told.contains(why) => {}
            Checkout::Busy(why) => report
                .notes
                .push(format!("git: HEAD and index stay as they are: {why}")),
        }
    }

    /// Say what would be done.
    pub(super) fn foresee(
        &self,
        decision: &Decision,
        laptop: &Repository,
        there: &Repository,
        shelf: &Shelf,
        report: &mut GitReport,
    ) {
        for (name, choice) in &decision.refs {
            if let (Choice::To(side), false) = (choice, name.is_remote()) {
                let (old, new) = match side {
                    Side::Laptop => (laptop.refs.get(name), there.refs.get(name)),
                    Side::Vm => (there.refs.get(name), laptop.refs.get(name)),
                };
                report.moved.push(Moved::reference(name, *side, old, new));
            }
        }
        if let Checkout::To(side) = decision.checkout {
            let (gets, gives) = match side {
                Side::Laptop => (laptop, there),
                Side::Vm => (there, laptop),
            };
            let mut later = gets.clone();
            later.head = gives.head.clone();
            later.index.clone_from(&gives.index);
            later.at.clone_from(&gives.at);
            tell_moved(gets, &later, side, report);
        }
        self.tell_apart(decision, there, shelf, report);
    }
}

/// Somebody holds the index.
pub(super) fn locked(whose: &str) -> String {
    format!("git: another git holds `index.lock` on {whose}: HEAD and index stay as they are")
}

/// Say what moved on one side.
pub(super) fn tell_moved(
    before: &Repository,
    after: &Repository,
    side: Side,
    report: &mut GitReport,
) {
    let names: BTreeSet<&RefName> = before.refs.keys().chain(after.refs.keys()).collect();
    for name in names.into_iter().filter(|name| name.is_shared()) {
        let (old, new) = (before.refs.get(name), after.refs.get(name));
        if old != new {
            report.moved.push(Moved::reference(name, side, old, new));
        }
    }
    if before.head != after.head {
        report.moved.push(Moved {
            what: "HEAD".to_owned(),
            to_laptop: side == Side::Laptop,
            from: before.head.called(),
            to: after.head.called(),
        });
    }
    if before.index != after.index {
        report.moved.push(Moved {
            what: "index".to_owned(),
            to_laptop: side == Side::Laptop,
            from: String::new(),
            to: String::new(),
        });
    }
}
