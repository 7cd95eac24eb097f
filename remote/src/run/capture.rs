//! A run whose output is kept, for boxery's own small questions to a VM.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

use super::{Input, RunExit, RunIo, RunRequest, run};
use crate::{RemoteError, Way};

/// What a command said and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// How it ended.
    pub exit: RunExit,
    /// Its stdout, cut at the limit.
    pub stdout: Vec<u8>,
    /// Its stderr, cut at the limit.
    pub stderr: Vec<u8>,
}

impl Captured {
    /// Whether it ended with 0.
    pub fn succeeded(&self) -> bool {
        self.exit == RunExit::Code(0)
    }

    /// The last line of its stderr.
    pub fn complaint(&self) -> String {
        crate::ssh_config::one_line(&self.stderr)
    }
}

/// Run a command and keep up to `limit` bytes of each stream.
pub async fn capture(
    way: &Way,
    request: &RunRequest,
    stdin: Option<Input>,
    limit: usize,
) -> Result<Captured, RemoteError> {
    let (stdout, stderr) = (Kept::new(limit), Kept::new(limit));
    let io = RunIo {
        stdin,
        stdout: Box::pin(stdout.clone()),
        stderr: Box::pin(stderr.clone()),
    };
    let end = run(way, request, io, std::future::pending()).await?;
    Ok(Captured {
        exit: end.exit,
        stdout: stdout.take(),
        stderr: stderr.take(),
    })
}

#[derive(Debug, Clone)]
struct Kept {
    bytes: Arc<Mutex<Vec<u8>>>,
    limit: usize,
}

impl Kept {
    fn new(limit: usize) -> Self {
        Self {
            bytes: Arc::default(),
            limit,
        }
    }

    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl AsyncWrite for Kept {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        more: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let room = self.limit.saturating_sub(bytes.len());
        bytes.extend(more.iter().take(room));
        Poll::Ready(Ok(more.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
