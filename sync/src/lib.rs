//! Answers one question: what differs between project and copy, and how are they made
//! the same?
//!
//! Start at [`Scan::read`]: it reads the project on the laptop and gives its
//! [`Snapshot`] and the [`Rules`] that say what counts. [`read_tar`] reads the
//! copy's side as a tar stream under the same rules, [`Drift::between`] compares
//! the two, and [`write_seed`] writes the project as a tar stream for a VM.
//!
//! To make them the same, [`reconcile()`] the two [`Tree`]s with the last common state,
//! which a [`Base`] keeps, into a [`Plan`]; let [`check`] hold it back where a person
//! must be asked; put what is missing into each side's [`Stage`] and [`apply()`] it.
//!
//! Invariant: only a complete reading becomes a [`Snapshot`]. A stream that was
//! cut, a folder that can't be listed and a git that doesn't answer are errors,
//! never an empty or a shorter tree. What a person wrote is never written over: a
//! change is made only where exactly that lies which the plan saw.

mod apply;
mod base;
mod drift;
mod entry;
mod error;
mod git;
mod guard;
mod index;
mod merkle;
mod path;
mod plan;
mod protect;
mod reconcile;
mod root;
mod rules;
mod scan;
mod seed;
mod source;
mod spelling;
mod stage;
mod state;
mod store;
mod stream;

pub use apply::{Applied, Applying, Left, Step, apply};
pub use base::{Base, Greeting, Identity, Standing};
pub use drift::{Drift, DriftClass};
pub use entry::{Digest, Entry, EntryKind, Snapshot};
pub use error::SyncError;
pub use guard::{Guard, check};
pub use index::{Began, Stamp, StatIndex};
pub use merkle::Fold;
pub use path::{EntryPath, NoEntryPath};
pub use plan::{Change, Conflict, Plan, Reason, Side};
pub use protect::Protected;
pub use reconcile::{Direction, Take, Terms, Trees, reconcile};
pub use root::Root;
pub use rules::{MARKER, Rules, Sieve};
pub use scan::{Scan, ScanOptions};
pub use seed::{SeedReport, write_seed};
pub use source::Source;
pub use spelling::Folding;
pub use stage::{Incoming, KEPT, STAGE, Stage};
pub use state::{State, Tree};
pub use stream::{CopyTree, read_tar};
