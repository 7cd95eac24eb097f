//! The VM's clocks.

use rustix::time::{ClockId, Timespec, clock_gettime};

fn milliseconds(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * 1000 + nanoseconds / 1_000_000
}

/// Milliseconds since 1970.
pub(crate) fn wall() -> u64 {
    milliseconds(clock_gettime(ClockId::Realtime))
}

/// Milliseconds since the VM was started, those in which it slept included: what
/// time-outs and graces are measured by.
pub(crate) fn running() -> u64 {
    milliseconds(clock_gettime(ClockId::Boottime))
}
