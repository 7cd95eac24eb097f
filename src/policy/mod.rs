//! Which policy holds here, who says so, and what a run under it needs.
//!
//! Start at [`InForce::find`]: the hook, `run`, `jobs start` and the verbs of `policy`
//! all ask it, so that none of them can see another policy than the others.

mod accept;
mod disk;
mod force;
mod run;
mod told;
mod trust;

pub(crate) use accept::Accept;
pub(crate) use disk::places;
pub(crate) use force::{Caller, InForce, Part, Standing, policy_files, read};
pub(crate) use run::{Asked, Cleared, accept_line, accepts, clear};
pub(crate) use told::Told;
pub(crate) use trust::Trusted;
