//! The caller's ends of a run's output.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::sync::watch;

use super::{Listener, Output, RunNote};

/// How long a reader of our output may stall the end of a run.
const STALL: Duration = Duration::from_millis(300);
/// Pieces are put together up to this, since each write costs a thread's wake-up.
const BATCH: usize = 512 * 1024;

/// Both outputs. What is in memory beyond one batch is bounded by the stream.
pub(super) struct Sinks {
    stdout: Sink,
    stderr: Sink,
    listener: Option<Listener>,
    killed: watch::Receiver<bool>,
}

struct Sink {
    output: Option<Output>,
    pending: Vec<u8>,
    bytes: u64,
}

impl Sinks {
    pub(super) fn new(
        stdout: Output,
        stderr: Output,
        listener: Option<Listener>,
        killed: watch::Receiver<bool>,
    ) -> Self {
        Self {
            stdout: Sink::new(stdout),
            stderr: Sink::new(stderr),
            listener,
            killed,
        }
    }

    /// Tell what there is to say of the run.
    pub(super) fn note(&self, note: RunNote) {
        if let Some(Listener(tell)) = &self.listener {
            tell(note);
        }
    }

    pub(super) async fn stdout(&mut self, bytes: Vec<u8>) {
        // Who shows both in one place sees them in the order in which they came.
        self.stderr.flush(&self.killed).await;
        self.stdout.add(bytes, &self.killed).await;
    }

    pub(super) async fn stderr(&mut self, bytes: Vec<u8>) {
        self.stdout.flush(&self.killed).await;
        self.stderr.add(bytes, &self.killed).await;
    }

    /// Write what waits.
    pub(super) async fn flush(&mut self) {
        self.stdout.flush(&self.killed).await;
        self.stderr.flush(&self.killed).await;
    }

    /// Whether nobody reads one of them any more.
    pub(super) fn is_closed(&self) -> bool {
        self.stdout.output.is_none() || self.stderr.output.is_none()
    }

    /// How many bytes of stdout and of stderr were passed on.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.stdout.bytes, self.stderr.bytes)
    }
}

impl Sink {
    fn new(output: Output) -> Self {
        Self {
            output: Some(output),
            pending: Vec::new(),
            bytes: 0,
        }
    }

    async fn add(&mut self, bytes: Vec<u8>, killed: &watch::Receiver<bool>) {
        if self.pending.is_empty() {
            self.pending = bytes;
        } else {
            self.pending.extend(bytes);
        }
        if self.pending.len() >= BATCH {
            self.flush(killed).await;
        }
    }

    async fn flush(&mut self, killed: &watch::Receiver<bool>) {
        if self.pending.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut self.pending);
        let Some(output) = self.output.as_mut() else {
            return;
        };
        self.bytes += bytes.len() as u64;
        let mut killed = killed.clone();
        let write = async {
            output.write_all(&bytes).await?;
            output.flush().await
        };
        let written = tokio::select! {
            written = write => written.is_ok(),
            // Who doesn't read can't keep a run from ending.
            () = async {
                drop(killed.wait_for(|killed| *killed).await);
                tokio::time::sleep(STALL).await;
            } => false,
        };
        if !written {
            self.output = None;
        }
    }
}
