//! `boxery demo`: the whole story on this machine, with nothing left behind.
//!
//! It goes through this binary, its proof, tickets, runs and drift check as a real
//! session does, and plays only the agent's part.

mod agent;
mod story;

pub(crate) use agent::Agent;
pub(crate) use story::Story;
