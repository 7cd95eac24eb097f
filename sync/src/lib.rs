//! Answers one question: what differs between project and copy?
//!
//! Start at [`Scan::read`]: it reads the project on the laptop and gives its
//! [`Snapshot`] and the [`Rules`] that say what counts. [`read_tar`] reads the
//! copy's side as a tar stream under the same rules, [`Drift::between`] compares
//! the two, and [`write_seed`] writes the project as a tar stream for a VM.
//!
//! Invariant: only a complete reading becomes a [`Snapshot`]. A stream that was
//! cut, a folder that can't be listed and a git that doesn't answer are errors,
//! never an empty or a shorter tree.

mod drift;
mod entry;
mod error;
mod git;
mod path;
mod rules;
mod scan;
mod seed;
mod stream;

pub use drift::{Drift, DriftClass};
pub use entry::{Digest, Entry, EntryKind, Snapshot};
pub use error::SyncError;
pub use path::EntryPath;
pub use rules::{MARKER, Rules, Sieve};
pub use scan::{Scan, ScanOptions};
pub use seed::{SeedReport, write_seed};
pub use stream::{CopyTree, read_tar};
