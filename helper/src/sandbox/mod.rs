//! What a run sees of the VM's files when that isn't what is there.
//!
//! Start at [`View::plan`], which looks at the VM and refuses what can't be shown, then
//! at [`View::enter`], which the command's process does between fork and exec.
//!
//! Invariant: nothing of the VM's own is ever hidden. The place at which a copy is
//! shown is an empty folder or isn't there, and a folder above it is shown as a
//! picture only where the user could have made nothing new in it anyway.

mod enter;
mod plan;

pub(crate) use plan::View;
