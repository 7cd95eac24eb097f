//! Answers one question: does the policy forbid this action?
//!
//! Start at [`Policy::evaluate`]. An [`Action`] is what an agent is about to do; a
//! [`Verdict`] is what the policy says about it. A policy comes from files as Fence has
//! them: [`find_policy`] and [`resolve_policy`] ask a [`Reader`] what lies on disk.
//! Judging touches neither disk nor network nor clock, so that every rule can be tested
//! with a table.
//!
//! Invariant: a rule never allows. It can only find a reason to deny, so adding a rule
//! can never widen what an agent may do; what can't be told before it runs is a verdict
//! of its own, never "allow".

mod command;
mod file;
mod path;
mod pattern;
mod policy;
pub mod registries;
mod rule;
mod ssh;
mod template;
mod url;
mod verdict;

pub use file::{
    Content, FILE_NAMES, Found, Key, Meaning, Origin, Parsed, Places, PolicyError, REGISTRIES,
    Reader, Resolved, Said, Section, Shape, Value, find_policy, find_user_policy, json_schema,
    parse_policy, resolve_policy,
};
pub use path::Roots;
pub use policy::Policy;
pub use rule::{Examples, RULES, Rule};
pub use template::{TEMPLATES, Template};
pub use verdict::{Action, Matched, RuleKind, Span, Verdict};
