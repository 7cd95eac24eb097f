//! The simple commands in a text of shell, for judging permission rules.
//!
//! Two readings with opposite errors: [`find_commands`] finds more than there
//! may be (for rules that deny or ask), [`parse_plain`] gives commands only
//! when it is sure that there is nothing else (for rules that allow).

mod find;
mod parse;
mod plain;
mod programs;

pub(crate) use find::{Call, Found, find_commands, name_of, split_crudely};
pub(crate) use parse::Unclear;
pub(crate) use plain::parse_plain;
