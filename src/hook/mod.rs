//! The endpoint that agents call: `boxery hook run AGENT`.
//!
//! Start at [`main_if_called`]. A payload on standard input becomes one reply on
//! standard output, and nothing else is ever written there. With nothing pinned
//! the only thing looked at is the folder of pins; from the moment that a pin may
//! apply, every way out of here that isn't a decision is a denial.

mod agent_process;
mod answer;
mod arguments;
mod effects;
mod endpoint;
mod finish;
mod gather;
mod isolate;
mod mounts;
mod outside;
mod protected;
mod session;
mod stdin;
mod tripwire;
mod watchdog;

pub(crate) use agent_process::agent_process;
pub(crate) use endpoint::main_if_called;
pub(crate) use outside::protected_for;
