//! Which processes stand above this one.

use serde::{Deserialize, Serialize};

/// A process, told apart from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// The process number.
    pub pid: u32,
    /// When it started: field 22 of `/proc/PID/stat`, in clock ticks since boot
    /// (proc_pid_stat(5)).
    pub start: u64,
}

/// The processes above `pid`, nearest first, up to but without process 1.
pub fn ancestors(pid: u32) -> Vec<ProcessId> {
    let _ = pid;
    Vec::new()
}
