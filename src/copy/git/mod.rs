//! The project's repository and the copy's, brought to the same point by git's own
//! protocol.
//!
//! Start at [`exchange()`]: it looks at both repositories, decides from the last common
//! state what moves where, carries the objects by `git push` and `git fetch` over a run
//! on the VM, and then moves branches, HEAD and index. Deciding is pure (`decide`).
//!
//! Invariant: nothing of the VM's repository runs or decides anything on the laptop. From
//! there come objects, checked by git, and names of references, checked by us. Every
//! move is a compare-and-swap; what can't move stays on both sides and is named.

mod apply;
mod base;
mod carry;
mod decide;
mod exchange;
mod look;
mod make;
mod names;
mod orders;
mod report;
mod tell;

pub(crate) use exchange::{GitOptions, exchange};
pub(crate) use report::GitReport;
