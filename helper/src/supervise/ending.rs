//! How everybody of a run is ended.

use rustix::process::{Signal, kill_process_group};

use super::event::Supervisor;
use super::phase::{Ending, KILL, Phase};
use crate::{clock, process};

/// How long the kernel has to end whom this process may kill before it is asked to end
/// the whole group, in ms.
const RELUCTANT: u64 = 100;

impl Supervisor {
    /// Tell everybody to end.
    pub(super) fn end_all(&mut self, why: Ending) {
        if matches!(self.phase, Phase::Ending { .. } | Phase::Over) {
            return;
        }
        if let Some(group) = self.started.pid {
            for signal in [Signal::TERM, Signal::CONT] {
                let _: rustix::io::Result<()> = kill_process_group(group, signal);
            }
        }
        // Whoever is left from a command that ended gets no TERM of its own.
        let patience = if why == Ending::Stopped { 0 } else { KILL };
        self.phase = Phase::Ending {
            why,
            kill: clock::running() + patience,
        };
    }

    /// Kill whoever is left, for `since` milliseconds now.
    pub(super) fn kill_all(&mut self, since: u64) {
        process::kill_below(rustix::process::getpid());
        if since >= RELUCTANT
            && let Some(group) = &self.group
        {
            // Of another user, such as what `sudo` started.
            drop(group.end_others());
        }
        self.reap();
    }
}
