//! When a plan isn't carried out without a person's word.

use crate::Tree;
use crate::plan::{Change, Plan, Side};

/// How many files and links may go from the laptop at once, whatever its size.
const FEW: usize = 50;

/// Of how many one may go: a fifth.
const SHARE: usize = 5;

/// Why a plan isn't carried out. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Guard {
    /// Too much would be deleted from the laptop.
    #[error(
        "{count} of {files} files of the project would be deleted because they are gone on the VM"
    )]
    ManyDeletes {
        /// How many would go.
        count: usize,
        /// How many there are.
        files: usize,
    },
    /// One side lists nothing, and had files.
    #[error("the {} is empty now and had {files} files: is it the right folder?", folder(*.side))]
    Empty {
        /// Which.
        side: Side,
        /// How many files there were.
        files: usize,
    },
}

fn folder(side: Side) -> &'static str {
    match side {
        Side::Laptop => "project",
        Side::Vm => "copy",
    }
}

impl Guard {
    /// How many deletions have to be allowed for it.
    pub fn needs(&self) -> usize {
        match self {
            Self::ManyDeletes { count, .. } => *count,
            Self::Empty { files, .. } => *files,
        }
    }

    /// What to do next.
    pub fn hint(&self) -> String {
        format!(
            "if that is meant, answer it with `--allow-deletes {}`",
            self.needs()
        )
    }
}

/// The guard that holds `plan` back, if any. `allowed` is the number of deletions
/// that a person allowed.
pub fn check(
    plan: &Plan,
    base: &Tree,
    laptop: &Tree,
    vm: &Tree,
    allowed: usize,
) -> Result<(), Guard> {
    let held = |guard: Guard| {
        if allowed >= guard.needs() {
            Ok(())
        } else {
            Err(guard)
        }
    };
    let had = base.files();
    for (side, tree) in [(Side::Laptop, laptop), (Side::Vm, vm)] {
        let deletes = plan.changes(side.other()).iter().any(Change::deletes);
        if had >= 2 && tree.files() == 0 && deletes {
            held(Guard::Empty { side, files: had })?;
        }
    }
    let count = plan.laptop.iter().filter(|change| change.deletes()).count();
    let files = laptop.files();
    if count > FEW.max(files / SHARE) {
        held(Guard::ManyDeletes { count, files })?;
    }
    Ok(())
}
