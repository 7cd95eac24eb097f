//! Answers one question: which VM is this call pinned to, in which mode, and
//! which folders correspond?
//!
//! Start at [`resolve()`]. A [`PinStore`] is the private folder of pin files; a
//! [`Lookup`] is what is known of the call; a [`PathMap`] turns a folder of the
//! laptop into the folder of the VM that corresponds to it.
//!
//! Invariant: "no pin" is answered only when no file stands under any key that
//! the lookup consults. Everything else that isn't a usable pin is a
//! [`PinError`], and callers treat every error as "do not run here".

mod file_name;
mod name;
mod path_map;
mod pin;
mod process;
mod project;
mod rekey;
mod resolve;
mod store;

pub use name::{AgentId, NameError, RemotePath, SessionId, VmName};
pub use path_map::{PathForm, PathMap, PathMapError};
pub use pin::{DriftRule, Mode, PinFile, PinKey, PinOrigin, Suspension};
pub use process::{ProcessId, ancestors};
pub use project::{Project, find_project};
pub use rekey::{Rekey, SessionStart, StartKind, rekey};
pub use resolve::{Lookup, PinError, Resolved, any_may_apply, explain, resolve, with_settings};
pub use store::{PinStore, StoredPin};
