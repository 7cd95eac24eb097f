//! Answers one question: does this agent, as it is installed here, do what boxery's
//! hook says?
//!
//! Start at [`prove`]. It starts the agent without a user, in folders of its own,
//! against a model that follows a script ([`ModelServer`]), and looks from outside
//! at what came of each call: denied and told why, or run in a VM and not here.

mod anthropic;
mod candidate;
mod child;
mod ensure;
pub(crate) mod http;
mod interrupt;
mod proof;
mod scratch;
mod script;
mod server;
mod session;
mod turns;

pub(crate) use candidate::{Candidate, PERMISSION_MODES, find_candidate};
pub(crate) use ensure::ensure_proven;
pub(crate) use proof::{ProofReport, SANDBOX_MODE, prove};
pub(crate) use scratch::Scratch;
pub(crate) use script::{Call, Lane, Script, Turn};
pub(crate) use server::ModelServer;
