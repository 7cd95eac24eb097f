//! Answers one question: what do laptop and VM say to each other?
//!
//! Start at [`greet()`], which finds the other end of a byte pipe and refuses one
//! of another build, then at [`Connection`], which carries any number of
//! [`Stream`]s over it. A stream begins with one [`Request`] from the laptop and
//! one [`Reply`] from the VM; `docs/helper-protocol.md` tells what follows.
//!
//! Invariant: bytes that can't be right end the connection with a [`WireError`].
//! They never panic, and never make this end hold more than [`mux::WINDOW`]
//! bytes and one message for each stream.

mod blob;
mod codec;
pub mod copy;
mod error;
mod frame;
mod greet;
mod message;
pub mod mux;
mod slot;

pub use blob::Blob;
pub use codec::{Decoder, MAX_MESSAGE, encode};
pub use error::WireError;
pub use greet::{BUILD, MAGIC, greet};
pub use message::{
    End, Failure, FromPorts, FromRun, GitUser, Item, Job, JobState, Keep, Kind, Loss, Machine,
    Misplaced, Outcome, Port, RESUMED, Reply, Request, Run, RunId, STDIN_WINDOW, Size, StateId,
    Stdin, Taken, ToRun, View, Whose, Why,
};
pub use mux::{Connection, Side, Stream};
