//! What a decision means for each side: what is pushed, and what is then moved.

use std::collections::BTreeMap;

use boxery_sync::Side;

use super::apply::Orders;
use super::carry::{self, CarryError, Ends, Push};
use super::decide::{Checkout, Choice, Decision};
use super::exchange::Work;
use super::look::{Repository, git};
use super::names::{Oid, RefName, Shelf, set};
use super::report::GitReport;
use crate::error::Failure;

impl Work<'_> {
    /// What is to be made of the laptop's repository.
    pub(super) async fn to_laptop(
        &self,
        decision: &Decision,
        laptop: &Repository,
        there: &Repository,
        shelf: &Shelf,
        report: &mut GitReport,
    ) -> Result<Orders, Failure> {
        let mut orders = Orders::default();
        let mut later = laptop.refs.clone();
        for (name, choice) in &decision.refs {
            if *choice == Choice::To(Side::Laptop) {
                let (old, new) = (laptop.refs.get(name), there.refs.get(name));
                set(&mut later, name, new);
                match (old, new) {
                    (old, Some(new)) => {
                        orders
                            .set
                            .push((name.to_string(), new.clone(), old.cloned()));
                    }
                    (Some(old), None) => orders.delete.push((name.to_string(), old.clone())),
                    (None, None) => {}
                }
            }
        }
        if decision.checkout == Checkout::To(Side::Laptop) {
            if laptop.head != there.head {
                let (old, new) = (laptop.head.as_str(), there.head.as_str());
                orders.head = Some((old.to_owned(), new.to_owned()));
            }
            if let (Some(old), Some(new)) = (&laptop.index, &there.index)
                && old != new
            {
                orders.index = Some((old.clone(), new.clone()));
            }
        }
        // What has no reflog to be found in gets a name.
        for (name, choice) in &decision.refs {
            let Some(old) = laptop.refs.get(name) else {
                continue;
            };
            let is_lost = *choice == Choice::To(Side::Laptop)
                && (!name.is_branch() || !there.refs.contains_key(name))
                && !self.is_held_by(&later, laptop, old).await?;
            if is_lost {
                let place = shelf.was(name, old);
                report
                    .notes
                    .push(format!("git: what {} was stays as {place}", name.called()));
                if !RefName::parse(&place).is_some_and(|place| laptop.refs.contains_key(&place)) {
                    orders.set.push((place, old.clone(), None));
                }
            }
        }
        // What lies on the shelf and isn't needed there any more.
        for (place, value) in &laptop.refs {
            let Some(name) = shelf.name_of(place) else {
                continue;
            };
            let is_apart = matches!(
                decision.refs.get(&name),
                Some(Choice::Conflict | Choice::Held(Side::Laptop, _))
            );
            if !is_apart && self.is_held_by(&later, laptop, value).await? {
                orders.delete.push((place.to_string(), value.clone()));
            }
        }
        for (name, choice) in &decision.refs {
            if *choice == Choice::To(Side::Laptop)
                && let Some(new) = there.refs.get(name)
            {
                let place = shelf.place(name);
                if !orders.delete.iter().any(|(there, _)| *there == place) {
                    orders.delete.push((place, new.clone()));
                }
            }
        }
        let comes = decision.checkout == Checkout::To(Side::Laptop);
        let head = there.at.as_ref().filter(|_| there.head.branch().is_none());
        for (what, oid) in [("HEAD", head), ("index", there.staged.as_ref())] {
            let place = shelf.other(what);
            let left = RefName::parse(&place).and_then(|place| laptop.refs.get(&place));
            if let Some(oid) = oid.filter(|_| comes).or(left) {
                orders.delete.push((place, oid.clone()));
            }
        }
        Ok(orders)
    }

    /// Whether the laptop's branches and tags, as they will be, hold `oid`.
    pub(super) async fn is_held_by(
        &self,
        later: &BTreeMap<RefName, Oid>,
        laptop: &Repository,
        oid: &Oid,
    ) -> Result<bool, Failure> {
        let own = |name: &RefName| name.is_shared() || name.is_remote();
        if later.iter().any(|(name, value)| own(name) && value == oid) {
            return Ok(true);
        }
        let words = [
            "for-each-ref",
            "--format=%(refname)",
            "--contains",
            oid.as_str(),
            "refs/heads",
            "refs/tags",
            "refs/remotes",
        ];
        // A tag that says something is held by nothing but its name.
        let kind = git(self.ends.project, &["cat-file", "-t", oid.as_str()]).await?;
        if kind.stdout != b"commit\n" {
            return Ok(false);
        }
        let output = git(self.ends.project, &words).await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let held = text
            .lines()
            .filter_map(RefName::parse)
            .any(|name| later.get(&name) == laptop.refs.get(&name));
        Ok(held)
    }
}

/// What goes to the VM.
pub(super) struct ToVm {
    /// References that get a new value there.
    pub(super) pushes: Vec<Push>,
    /// What moves there once its objects have come.
    pub(super) orders: Orders,
}

impl ToVm {
    /// What `decision` wants there.
    pub(super) fn plan(decision: &Decision, laptop: &Repository, there: &Repository) -> Self {
        let mut plan = Self {
            pushes: Vec::new(),
            orders: Orders::default(),
        };
        let text = |oid: Option<&Oid>| oid.map(ToString::to_string).unwrap_or_default();
        for (name, choice) in &decision.refs {
            if *choice == Choice::To(Side::Vm) {
                plan.pushes.push(Push {
                    name: name.to_string(),
                    lease: Some(text(there.refs.get(name))),
                    new: text(laptop.refs.get(name)),
                });
            }
        }
        if decision.checkout == Checkout::To(Side::Vm) {
            let mut bring = |name: &str, oid: &Oid| {
                plan.pushes.push(Push {
                    name: name.to_owned(),
                    lease: None,
                    new: oid.to_string(),
                });
            };
            if let (None, Some(at)) = (laptop.head.branch(), &laptop.at) {
                bring("refs/boxery/HEAD", at);
            }
            if let Some(staged) = &laptop.staged {
                bring("refs/boxery/laptop-index", staged);
            }
            if laptop.head != there.head {
                let (old, new) = (there.head.as_str(), laptop.head.as_str());
                plan.orders.head = Some((old.to_owned(), new.to_owned()));
            }
            if let (Some(old), Some(new)) = (&there.index, &laptop.index)
                && old != new
            {
                plan.orders.index = Some((old.clone(), new.clone()));
            }
        }
        plan
    }

    /// Push it, what goes before what takes its name.
    pub(super) async fn push(&self, ends: Ends<'_>) -> Result<(), CarryError> {
        let name = |push: &Push| RefName::parse(&push.name);
        let gone = self.pushes.iter().filter(|push| push.new.is_empty());
        let gone: Vec<RefName> = gone.filter_map(name).collect();
        let collide = self.pushes.iter().any(|push| {
            let new = name(push).filter(|_| !push.new.is_empty());
            new.is_some_and(|new| gone.iter().any(|gone| gone.collides(&new)))
        });
        if self.pushes.is_empty() {
            Ok(())
        } else if collide {
            let (first, then): (Vec<Push>, Vec<Push>) = self
                .pushes
                .iter()
                .cloned()
                .partition(|push| push.new.is_empty());
            carry::push(ends, &first).await?;
            carry::push(ends, &then).await
        } else {
            carry::push(ends, &self.pushes).await
        }
    }
}
