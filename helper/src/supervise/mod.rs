//! One run: its supervisor starts the command, keeps what it prints, takes what the
//! laptop sends, and ends all of its processes when they must end.
//!
//! The supervisor is a process of its own, in a session of its own, and the
//! subreaper of everything that the command starts. It has one thread, which waits
//! for whatever comes first: see [`event`].

mod begin;
mod client;
mod command;
mod ending;
mod event;
mod input;
mod journal;
mod phase;

pub(crate) use begin::{Begin, run};
pub(crate) use command::nowhere;
pub(crate) use journal::{Found, Journal};
