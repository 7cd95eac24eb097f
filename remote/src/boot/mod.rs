//! Answers one question: how does the helper come to run on the VM?
//!
//! Start at [`open_helper`]. The login shell, whichever it is, is given one line
//! that starts `/bin/sh`; that looks for a helper with the content hash of ours
//! and becomes it. Where there is none it is sent first, and nothing but `sh`,
//! `cat`, `chmod`, `mkdir` and `mv` is needed for that.
//!
//! Invariants: what was sent is executable only after all of it was read back and
//! had our hash; a helper is used only after it has told the hash of its own file,
//! and that was ours. Everything before our random mark is noise of rc files.

mod channel;
mod open;
mod script;
mod take;

pub(crate) use channel::HelperPipe;
pub(crate) use open::open_helper;
