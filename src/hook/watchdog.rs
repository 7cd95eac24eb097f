//! The endpoint's own deadline: agents run the original command when a hook
//! doesn't answer in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use boxery_agents::Reply;

use super::finish::write_reply_status;

/// A thread that answers when nobody else did.
pub(crate) struct Watchdog {
    answered: Arc<AtomicBool>,
}

impl Watchdog {
    /// At `deadline`, write what `reply` makes and end the process.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub(crate) fn start(
        deadline: Instant,
        reply: impl FnOnce() -> Reply + Send + 'static,
    ) -> std::io::Result<Self> {
        let answered = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&answered);
        std::thread::Builder::new()
            .stack_size(256 << 10)
            .spawn(move || {
                loop {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    std::thread::park_timeout(left);
                }
                if !seen.swap(true, Ordering::AcqRel) {
                    end(write_reply_status(&reply()));
                }
            })?;
        Ok(Self { answered })
    }

    /// Take the right to answer. When the deadline has passed, this never
    /// returns: the watchdog is about to end the process.
    pub(crate) fn claim(&self) {
        while self.answered.swap(true, Ordering::AcqRel) {
            std::thread::park();
        }
    }
}

#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "the main thread is stuck; nothing of it can be waited for"
)]
fn end(status: u8) {
    std::process::exit(status.into());
}
