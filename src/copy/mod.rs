//! The project's copy on a VM: made, compared, brought up to date, taken back from.
//!
//! A [`Pair`] is a project with its copy and the rules for both; [`look_at`] and
//! [`synchronise`] hold a conversation of the sync engine over the VM's connection, and
//! an [`Around`] holds them before and after a command.

mod around;
mod changes;
mod drift;
mod engine;
mod first;
mod git;
mod known;
mod listing;
mod make;
mod pair;
mod rules;
mod show;
mod watch;
mod whole;

pub(crate) use around::Around;
pub(crate) use changes::{Item, Moved, items, moved, open_ends};
pub(crate) use drift::Drift;
pub(crate) use engine::{PATIENCE, look_at, sync_failure, synchronise};
pub(crate) use first::first_copy;
pub(crate) use git::{GitOptions, GitReport, exchange};
pub(crate) use known::{forget_all, is_known};
pub(crate) use listing::{FoundCopy, Owner, list, prune};
pub(crate) use make::{Making, make};
pub(crate) use pair::{Creation, Pair, Wish, forget_states};
pub(crate) use rules::has_copy;
pub(crate) use show::{Show, size};
pub(crate) use watch::{Happened, keep_same};
pub(crate) use whole::make_all_same;
