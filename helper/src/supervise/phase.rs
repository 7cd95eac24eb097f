//! How far a run is.

use boxery_wire::{Loss, Outcome, Why};
use rustix::process::WaitStatus;

/// Where a run stands. Times are milliseconds of [`crate::clock::running`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The command runs.
    Running,
    /// The command ended; what it printed last is on its way. Processes that it
    /// left behind may hold its streams open, so the wait ends when nothing has come
    /// until `quiet`, and at `last` in any case.
    Lingering {
        outcome: Outcome,
        quiet: u64,
        last: u64,
    },
    /// Everybody was told to end, and is killed at `kill`.
    Ending { why: Ending, kill: u64 },
    /// The end is told, and processes are left: a job.
    Background,
    /// The end is told, and nobody is left.
    Over,
}

/// Why a run is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Cancelled(Why),
    Lost(Loss),
    /// A job whose command had ended before.
    Stopped,
}

/// How long the command's last output may take when nothing says that it is whole.
pub(super) const QUIET: u64 = 10;
pub(super) const LINGER: u64 = 300;
/// How long everybody has between being told and being killed.
pub(super) const KILL: u64 = 2000;
/// How long the kernel has to end who was killed.
pub(super) const GIVE_UP: u64 = 10_000;

/// Whether the run's folder, which is the supervisor's own, was removed.
pub(super) fn is_forgotten() -> bool {
    rustix::process::getcwd(Vec::new()) == Err(rustix::io::Errno::NOENT)
}

/// How the command ended.
pub(super) fn outcome(status: WaitStatus) -> Outcome {
    let byte = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    match (status.exit_status(), status.terminating_signal()) {
        (Some(status), _) => Outcome::Exited(byte(status)),
        (None, signal) => Outcome::Signalled(byte(signal.unwrap_or(0))),
    }
}
