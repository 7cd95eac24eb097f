//! Claude Code's settings: where they lie, the user's permission rules in them,
//! and what they say of hooks.

mod arguments;
mod edits;
mod files;
mod front_matter;
mod globs;
mod hooks;
mod programs;
mod reply;
mod rules;
mod servers;
mod sources;
mod uses;

pub(crate) use edits::edits;
pub(crate) use hooks::read_hooks;
pub(crate) use reply::{Facts, is_foreign_tool_event, reply_to_unreadable};
pub(crate) use rules::ClaudeRules;
pub(crate) use servers::own_server;
pub(crate) use sources::{Sources, settings_file, settings_paths};
