//! boxery keeps a coding agent's shell commands off the laptop: while a session
//! is pinned to a VM, they are denied here or run there.
//!
//! Start at [`cli`], the command line, and [`cmd`], one file per verb.
//! `boxery hook run` is answered by [`hook`] before anything else is looked at.

mod app;
mod cli;
mod cmd;
mod config;
mod copy;
mod demo;
mod env;
mod environment;
mod error;
mod exit;
mod hook;
mod inside;
mod kept;
mod place;
mod policy;
mod ports;
mod prove;
mod random;
mod reach;
mod registries;
mod setup;
mod terminal;
mod trust;
mod ui;

use std::process::ExitCode;

fn main() -> ExitCode {
    hook::main_if_called().unwrap_or_else(cli::main)
}
