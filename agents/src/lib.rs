//! Answers one question: how does each agent speak, what are its own rules, and
//! where are its settings?
//!
//! Start at [`Adapter`] and the list [`ADAPTERS`]. An adapter turns the agent's
//! payload into a [`HookEvent`] and a [`Decision`] into a [`Reply`]; nothing
//! outside this crate knows any agent's JSON.
//!
//! Invariant: a reply holds only what the agent documents, in exactly one
//! document, because every agent runs the original command when it doesn't
//! understand the answer.

pub mod adapter;

mod command_fields;
mod payload;

use boxery_router::{Decision, HookEvent};

pub use adapter::ADAPTERS;

/// What the hook process writes and how it ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reply {
    /// Standard output, exactly.
    pub stdout: String,
    /// Standard error, exactly.
    pub stderr: String,
    /// The exit status.
    pub exit: u8,
}

/// A payload that cannot be read. While a pin may apply it is a denial.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON, or not the JSON this agent sends.
    #[error("the payload is not what {agent} sends: {problem}")]
    Payload {
        /// The agent.
        agent: &'static str,
        /// What is wrong.
        problem: String,
    },
}

/// One agent: a payload's meaning, a reply's form, the user's rules and settings.
pub trait Adapter: Sync {
    /// The agent's name on the command line, such as `claude-code`.
    fn name(&self) -> &'static str;

    /// The agent's name in sentences, such as `Claude Code`.
    fn title(&self) -> &'static str;

    /// What the payload says. The payload is kept by the caller for [`Adapter::encode`].
    fn decode(&self, payload: &[u8]) -> Result<HookEvent, DecodeError>;

    /// The agent's own form of `decision` for the event in `payload`.
    /// With a payload that can't be read, a denial in the form that most events take.
    fn encode(&self, payload: &[u8], decision: &Decision) -> Reply;
}
