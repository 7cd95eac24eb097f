//! Writes boxery's entry into an agent's settings file, and takes it out again.
//!
//! Start at [`Plan`]. The file is never printed anew from a parsed form: one
//! range of bytes is spliced in or out, so that everything else stays as it is.
//!
//! Invariant: what install adds, uninstall takes out to the last byte, and what
//! can't be edited that way is refused and left alone.

mod edit;
mod error;
mod file;
mod layout;
mod tree;

pub use edit::HookEntry;
pub use error::SettingsError;
pub use file::Plan;
