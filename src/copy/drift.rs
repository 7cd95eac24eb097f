//! Drift in four classes, as it is told in one line.

use boxery_pin::VmName;
use boxery_sync::talk::Report;
use boxery_sync::{EntryPath, Reason, Side};

use super::changes::{items, some_of};

/// Every path that differs, by which side is newer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Drift {
    /// Changed in the project since both were the same.
    pub(crate) laptop: Vec<EntryPath>,
    /// Changed in the copy since then.
    pub(crate) vm: Vec<EntryPath>,
    /// Changed in both.
    pub(crate) both: Vec<EntryPath>,
    /// Never known to be the same.
    pub(crate) unknown: Vec<EntryPath>,
}

impl Drift {
    /// What a look found.
    pub(crate) fn of(report: &Report) -> Self {
        let paths = |side| {
            items(report, side)
                .into_iter()
                .map(|item| item.path)
                .collect()
        };
        let mut drift = Self {
            laptop: paths(Side::Vm),
            vm: paths(Side::Laptop),
            ..Self::default()
        };
        drift.vm.extend(report.plan.kept.iter().cloned());
        for conflict in &report.plan.conflicts {
            let class = match conflict.reason {
                Reason::BothChanged | Reason::Above(_) | Reason::Below(_) => &mut drift.both,
                Reason::NoCommonState => &mut drift.unknown,
                Reason::SameName(_) if conflict.laptop.holds_content() => &mut drift.laptop,
                Reason::NeverTakenBack | Reason::SameName(_) => &mut drift.vm,
            };
            class.push(conflict.path.clone());
        }
        drift.laptop.sort();
        drift.vm.sort();
        drift
    }

    /// Whether nothing differs.
    pub(crate) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// How many paths differ.
    pub(crate) fn count(&self) -> usize {
        self.laptop.len() + self.vm.len() + self.both.len() + self.unknown.len()
    }

    /// One line: up to five names and the counts of each class. What a command in the VM
    /// misses comes first.
    pub(crate) fn summary(&self, vm: &VmName) -> String {
        let classes = [&self.laptop, &self.both, &self.unknown, &self.vm];
        let names: Vec<&EntryPath> = classes.into_iter().flatten().collect();
        format!(
            "the copy on {vm} isn't the same as the project: {} ({})",
            some_of(&names),
            self.counts(vm)
        )
    }

    /// How many there are of each class.
    pub(crate) fn counts(&self, vm: &VmName) -> String {
        let mut counts = vec![
            format!("{} newer on the laptop", self.laptop.len()),
            format!("{} newer on {vm}", self.vm.len()),
        ];
        for (class, what) in [
            (&self.both, "changed on both sides"),
            (&self.unknown, "of unknown age"),
        ] {
            if !class.is_empty() {
                counts.push(format!("{} {what}", class.len()));
            }
        }
        counts.join(", ")
    }
}
