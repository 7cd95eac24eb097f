//! What `registries` in `network.allowedDomains` stands for: the hosts that a VM's own
//! package managers use.
//!
//! [`GATHER`] is a script for a POSIX shell, run on the VM; what it prints is
//! [`Facts::parse`]d, and [`Facts::registries`] says which hosts they name and what can't
//! be found out. No host is known here: each comes from a file or from a tool's answer.

mod facts;
mod sources;

pub use facts::{Fact, Facts, From};
pub use sources::{FoundHost, Registries, Unknown};

/// The script that gathers the facts.
pub const GATHER: &str = include_str!("gather.sh");
