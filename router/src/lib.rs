//! Answers one question: what happens to this call?
//!
//! Start at [`decide`]. A [`HookEvent`] is what an agent told its hook; a
//! [`Situation`] is everything else that the answer depends on, gathered by the
//! caller; a [`Decision`] is the answer. The stores ([`Tickets`], [`Spool`],
//! [`Proofs`], [`Alarms`]) are the small private files in which one hook call
//! leaves word for the next.
//!
//! Invariant: with a pin, a shell call is denied unless a rule here says why it
//! may pass or how it is rewritten; there is no arm that falls through to
//! "run it here".

mod decision;
mod event;

/// The words of a pin that events and decisions are made of.
pub use boxery_pin::{AgentId, Mode, SessionId, VmName};
pub use decision::{Decision, Grant};
pub use event::{
    EventKind, HookEvent, ShellDialect, StartSource, ToolAction, ToolCall, ToolOutcome,
};
