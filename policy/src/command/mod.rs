//! Every command that a text of shell may run.
//!
//! `parse` reads the text in one pass and gives its simple commands, wherever they
//! stand; `arg` says how much of their words is known; `walk` goes through them and
//! through what shells and wrappers run in turn, and asks a judge about each.

mod arg;
mod assigned;
mod brace;
mod crude;
mod expand;
mod git;
mod heads;
mod inputs;
mod launcher;
mod lexer;
mod options;
mod parse;
mod program;
mod runs;
mod script;
mod stdin;
mod tables;
mod tools;
mod walk;
mod wrapper;
mod wrappers;
mod written;

pub(crate) use arg::{Arg, Shape};
pub(crate) use walk::{Command, Finding, Judge, walk};
