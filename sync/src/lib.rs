//! Answers one question: what differs between project and copy, and how are they made
//! the same?
//!
//! Start at [`Scan::read`]: it reads the project on the laptop and gives its
//! [`Snapshot`] and the [`Rules`] that say what counts, on both sides.
//!
//! To make them the same, [`reconcile()`] the two [`Tree`]s with the last common state,
//! which a [`Base`] keeps, into a [`Plan`]; let [`check`] hold it back where a person
//! must be asked; put what is missing into each side's [`Stage`] and [`apply()`] it.
//!
//! [`talk`] does all of that with a copy elsewhere: the laptop's side decides, the
//! copy's side, which needs only a part of this crate, lists, hashes and applies.
//!
//! Invariant: only a complete reading becomes a [`Snapshot`]. A stream that was
//! cut, a folder that can't be listed and a git that doesn't answer are errors,
//! never an empty or a shorter tree. What a person wrote is never written over: a
//! change is made only where exactly that lies which the plan saw.

mod apply;
#[cfg(feature = "laptop")]
mod base;
#[cfg(feature = "laptop")]
mod disk;
mod entry;
#[cfg(feature = "laptop")]
mod error;
#[cfg(feature = "laptop")]
mod git;
#[cfg(feature = "laptop")]
mod guard;
mod index;
#[cfg(feature = "laptop")]
mod merkle;
mod own;
mod path;
mod plan;
#[cfg(feature = "laptop")]
mod protect;
#[cfg(feature = "laptop")]
mod reconcile;
mod root;
#[cfg(feature = "laptop")]
mod rules;
#[cfg(feature = "laptop")]
mod runs;
#[cfg(feature = "laptop")]
mod scan;
mod source;
#[cfg(feature = "laptop")]
mod spelling;
mod stage;
mod state;
mod store;
pub mod talk;
pub mod watch;

pub use apply::{Applied, Applying, Left, Step, apply};
#[cfg(feature = "laptop")]
pub use base::{Base, Greeting, Identity, Standing};
#[cfg(feature = "laptop")]
pub use disk::Disk;
pub use entry::{Digest, Entry, EntryKind, Snapshot};
#[cfg(feature = "laptop")]
pub use error::SyncError;
#[cfg(feature = "laptop")]
pub use guard::{Guard, check};
pub use index::{Began, Stamp, StatIndex};
#[cfg(feature = "laptop")]
pub use merkle::Fold;
pub use own::MARKER;
pub use path::{EntryPath, NoEntryPath};
pub use plan::{Change, Conflict, Plan, Reason, Side};
#[cfg(feature = "laptop")]
pub use protect::Protected;
#[cfg(feature = "laptop")]
pub use reconcile::{Direction, Take, Terms, Trees, reconcile};
pub use root::Root;
#[cfg(feature = "laptop")]
pub use rules::{Rules, Sieve};
#[cfg(feature = "laptop")]
pub use runs::run_by_git;
#[cfg(feature = "laptop")]
pub use scan::{Scan, ScanOptions};
pub use source::Source;
#[cfg(feature = "laptop")]
pub use spelling::Folding;
pub use stage::{Incoming, KEPT, STAGE, Stage};
pub use state::{State, Tree};
