//! What an exchange did, and what it left.

use boxery_pin::VmName;
use boxery_sync::Side;
use serde::Serialize;

use super::names::{Oid, RefName};

/// More lines than this are a count.
const MOST: usize = 20;

/// What moved and what didn't.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct GitReport {
    /// References that moved, HEAD and the index.
    pub(crate) moved: Vec<Moved>,
    /// What stays apart until somebody ends it, in sentences.
    pub(crate) conflicts: Vec<String>,
    /// What else there is to say, in sentences.
    pub(crate) notes: Vec<String>,
    /// Those of them that weren't said last time.
    #[serde(skip)]
    pub(crate) new_notes: Vec<String>,
    /// Whether the laptop's index changed, and with it which files are tracked.
    pub(crate) laptop_index: bool,
}

/// Something that moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Moved {
    /// What: a reference as people call it, `HEAD` or `index`.
    pub(crate) what: String,
    /// Whether to the laptop; else to the VM.
    pub(crate) to_laptop: bool,
    /// What it was there, empty for nothing.
    pub(crate) from: String,
    /// What it is now, empty for nothing.
    pub(crate) to: String,
}

impl GitReport {
    /// Nothing but one sentence.
    pub(super) fn note(note: String) -> Self {
        Self {
            notes: vec![note],
            ..Self::default()
        }
    }

    /// Whether nothing stays apart.
    pub(crate) fn is_settled(&self) -> bool {
        self.conflicts.is_empty()
    }

    /// One line for each thing that moved; a count of them where there are many.
    pub(crate) fn lines(&self, vm: &VmName) -> Vec<String> {
        let shown = if self.moved.len() > MOST {
            MOST - 1
        } else {
            MOST
        };
        let lines = self.moved.iter().take(shown).map(|moved| {
            let way = if moved.to_laptop {
                format!("from {vm}")
            } else {
                format!("to {vm}")
            };
            match (moved.from.as_str(), moved.to.as_str()) {
                ("", "") => format!("git: {} {way}", moved.what),
                ("", new) => format!("git: {} {way}: new, {new}", moved.what),
                (old, "") => format!("git: {} {way}: deleted, was {old}", moved.what),
                (old, new) => format!("git: {} {way}: {old} to {new}", moved.what),
            }
        });
        let mut lines: Vec<String> = lines.collect();
        if self.moved.len() > lines.len() {
            lines.push(format!(
                "git: {} more between here and {vm}",
                self.moved.len() - lines.len()
            ));
        }
        lines
    }
}

impl Moved {
    /// A reference.
    pub(super) fn reference(
        name: &RefName,
        to: Side,
        from: Option<&Oid>,
        new: Option<&Oid>,
    ) -> Self {
        let short = |oid: Option<&Oid>| oid.map(|oid| oid.short().to_owned()).unwrap_or_default();
        Self {
            what: name.called(),
            to_laptop: to == Side::Laptop,
            from: short(from),
            to: short(new),
        }
    }
}
