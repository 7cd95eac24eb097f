//! The names that are boxery's own in a project or copy. They never count.

use crate::EntryPath;

/// The name of the marker file at the top of each copy.
pub const MARKER: &str = ".boxery-copy";

/// The number of the last sync that was completed, at the top of a copy.
pub(crate) const EPOCH: &str = ".boxery-epoch";

/// What was hashed in a copy, at its top.
pub(crate) const INDEX: &str = ".boxery-index";

/// What begins the name of everything that is boxery's own at the top of a tree.
/// `.boxeryignore` is the user's.
const OWN: &[u8] = b".boxery-";

/// What begins the name of a file that waits beside its place.
pub(crate) const BESIDE: &str = ".boxery-moving-";

/// What never counts: `.git` at every level, what is ours at the top, and what a sync
/// left half-way beside its place.
#[cfg(feature = "laptop")]
pub(crate) fn is_fenced_off(path: &EntryPath) -> bool {
    is_own(path) || path.as_bytes().split(|b| *b == b'/').any(|c| c == b".git")
}

/// What is ours at the top, and what a sync left half-way beside its place.
pub(crate) fn is_own(path: &EntryPath) -> bool {
    let mut components = path.as_bytes().split(|b| *b == b'/');
    path.as_bytes().starts_with(OWN) || components.any(|c| c.starts_with(BESIDE.as_bytes()))
}
