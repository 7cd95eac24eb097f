//! The project's copy on a VM: read it for drift, make it from nothing.
//!
//! Both go over one run on the VM's connection. The VM's part is a few lines of
//! `/bin/sh` around its `find` and `tar`; hashing and deciding stay here.

mod known;
mod listing;
mod rules;
mod seed;
mod state;
mod streams;

pub(crate) use known::{forget_all, is_known};
pub(crate) use listing::{FoundCopy, Owner, list, prune};
pub(crate) use rules::has_copy;
pub(crate) use seed::{SeedOptions, seed, size};
pub(crate) use state::{Comparison, compare, drift_warning};
