//! Answers one question: what happens to this call?
//!
//! Start at [`decide()`]. A [`HookEvent`] is what an agent told its hook; a
//! [`Situation`] is everything else that the answer depends on, gathered by the
//! caller; a [`Decision`] is the answer. The stores ([`Tickets`], [`Spool`],
//! [`Calls`], [`Proofs`], [`Alarms`]) are the small private files in which one
//! hook call leaves word for the next, and [`review()`] reads them after a call.
//!
//! Invariant: with a pin, a shell call is denied unless a rule here says why it
//! may pass or how it is rewritten; there is no arm that falls through to
//! "run it here".

mod allow;
mod decide;
mod decision;
mod event;
mod git_config;
mod git_index;
mod judge;
mod own;
mod protect;
mod reason;
mod review;
mod situation;
mod store;
mod words;

/// The words of a pin that events and decisions are made of.
pub use boxery_pin::{AgentId, Mode, SessionId, VmName};
pub use decide::{LONGEST_TEXT, decide, decide_unresolved};
pub use decision::{Carriage, Decision, Due, Grant, Ruling};
pub use event::{
    EventKind, HookEvent, ShellDialect, StartSource, ToolAction, ToolCall, ToolOutcome,
};
pub use git_config::{GitPlaces, git_hazard};
pub use judge::{Denial, Judgement, judge};
pub use protect::ProtectedPaths;
pub use review::{Finding, PlainCommand, review};
pub use situation::{
    Approval, LocalShell, Place, Preflight, ProofState, Questions, Refusal, Scope, Situation,
    UserVerdict,
};
pub use store::{
    Alarm, Alarms, CallKey, CallNote, CallOutcome, Calls, ExecutableId, JudgedBy, LastSeen, Proof,
    Proofs, Seen, Spool, StoreError, Ticket, TicketName, Tickets,
};
pub use words::{NotSimple, parse_simple_command, quote_word, quote_words};
