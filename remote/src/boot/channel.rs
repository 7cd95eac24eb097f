//! A channel to our script: its marked lines, then whatever bytes follow.

use std::io::Cursor;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use memchr::memmem;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::script::STAGE_ONE;
use crate::{ChannelEnd, Pipe, RemoteError};

/// How much of what isn't ours is kept for an error.
const NOISE: usize = 200;
/// How much of the helper's stderr is kept.
const TAIL: usize = 2048;
/// How long a channel may take to say how it ended.
const CLOSING: Duration = Duration::from_secs(5);
const CHUNK: usize = 64 * 1024;
/// Longest line of ours: a mark and a path.
const LINE: usize = 8192;

/// The byte pipe to a helper. Dropping it closes the channel.
pub(crate) struct HelperPipe {
    /// What the helper writes.
    pub(crate) reader: Pin<Box<dyn AsyncRead + Send>>,
    /// What the helper reads.
    pub(crate) writer: Pin<Box<dyn AsyncWrite + Send>>,
    /// Where the helper's file lies.
    pub(crate) folder: String,
    /// What holds the channel open.
    pub(crate) alive: Alive,
}

/// Holds a channel open, and knows how it ended.
pub(crate) struct Alive {
    end: Pin<Box<dyn Future<Output = ChannelEnd> + Send>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    draining: JoinHandle<()>,
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.draining.abort();
    }
}

impl Alive {
    /// Wait for the end of the channel.
    pub(crate) async fn ended(mut self) -> ChannelEnd {
        let end = std::mem::replace(&mut self.end, Box::pin(std::future::pending()));
        end.await
    }

    /// The last line of what was said on stderr.
    pub(crate) fn said(&self) -> String {
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        if stderr.trim_ascii().is_empty() {
            return String::new();
        }
        crate::ssh_config::one_line(&stderr)
    }
}

/// A script that runs.
pub(super) struct Talk {
    stdin: Pin<Box<dyn AsyncWrite + Send>>,
    stdout: Pin<Box<dyn AsyncRead + Send>>,
    alive: Alive,
    mark: Vec<u8>,
    buffer: Vec<u8>,
    noise: Vec<u8>,
}

/// The mark of one channel: random, so that noise can't hold it.
pub(super) fn new_mark() -> Result<String, RemoteError> {
    Ok(format!("\u{1e}{}", crate::random::word()?))
}

impl Talk {
    /// Start `script`, whose lines bear `mark`.
    pub(super) async fn start(
        pipe: &Pipe,
        mark: &str,
        script: Vec<u8>,
    ) -> Result<Self, RemoteError> {
        let channel = pipe.exec(STAGE_ONE).await?;
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let draining = tokio::spawn(drain(channel.stderr, Arc::clone(&stderr)));
        let mut talk = Self {
            stdin: channel.stdin,
            stdout: channel.stdout,
            alive: Alive {
                end: channel.end,
                stderr,
                draining,
            },
            mark: mark.as_bytes().to_vec(),
            buffer: Vec::new(),
            noise: Vec::new(),
        };
        // A failure shows as the end of the stream, with its reason.
        drop(talk.stdin.write_all(&script).await);
        drop(talk.stdin.flush().await);
        Ok(talk)
    }

    /// The next of our lines, without its mark; `None` at the end of the stream.
    pub(super) async fn line(&mut self) -> Option<String> {
        loop {
            let found = memmem::find(&self.buffer, &self.mark);
            if let Some(at) = found {
                self.drop_noise(at);
                let line = &self.buffer[self.mark.len()..];
                if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
                    let text = String::from_utf8_lossy(&line[..end]).into_owned();
                    self.buffer.drain(..=self.mark.len() + end);
                    return Some(text);
                }
                if line.len() > LINE {
                    self.drop_noise(self.mark.len());
                    continue;
                }
            } else {
                let keep = self.mark.len() - 1;
                self.drop_noise(self.buffer.len().saturating_sub(keep));
            }
            if !self.read_more().await {
                self.drop_noise(self.buffer.len());
                return None;
            }
        }
    }

    fn drop_noise(&mut self, length: usize) {
        let room = NOISE.saturating_sub(self.noise.len()).min(length);
        self.noise.extend(&self.buffer[..room]);
        self.buffer.drain(..length);
    }

    async fn read_more(&mut self) -> bool {
        let length = self.buffer.len();
        self.buffer.resize(length + CHUNK, 0);
        // A connection that breaks is an end of file.
        let read = self.stdout.read(&mut self.buffer[length..]).await;
        let read = read.unwrap_or(0);
        self.buffer.truncate(length + read);
        read > 0
    }

    /// Everything up to the end of the stream, handed on in chunks.
    pub(super) async fn rest(&mut self, mut take: impl FnMut(&[u8])) {
        loop {
            take(&self.buffer);
            self.buffer.clear();
            if !self.read_more().await {
                return;
            }
        }
    }

    /// Send `bytes` and the end of the stream, while waiting for the next line.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> Option<String> {
        let mut stdin = std::mem::replace(&mut self.stdin, Box::pin(tokio::io::sink()));
        let sending = async move {
            drop(stdin.write_all(bytes).await);
            drop(stdin.flush().await);
            drop(stdin.shutdown().await);
            // The end of a child's input is its end's close.
            drop(stdin);
        };
        let line = self.line();
        let (mut sending, mut line) = (std::pin::pin!(sending), std::pin::pin!(line));
        tokio::select! {
            // Who stops reading says so.
            line = &mut line => return line,
            () = &mut sending => {}
        }
        line.await
    }

    /// Wait until the channel is closed, so that another may be opened where only
    /// one is allowed. An error when the connection broke instead.
    pub(super) async fn close(self) -> Result<(), RemoteError> {
        drop((self.stdin, self.stdout));
        match timeout(CLOSING, self.alive.ended()).await {
            Ok(ChannelEnd::Failed(error)) => Err(error),
            // How `ssh` ends when its connection breaks.
            Ok(ChannelEnd::Status(255)) => Err(RemoteError::Lost),
            Ok(ChannelEnd::Status(_) | ChannelEnd::Signal(_)) | Err(_) => Ok(()),
        }
    }

    /// The stream ended though more had to come: why.
    pub(super) async fn broken(self) -> RemoteError {
        let said = self.alive.said();
        let noise = String::from_utf8_lossy(&self.noise);
        let words: Vec<&str> = noise.split_whitespace().chain([said.trim()]).collect();
        let output = words.join(" ").trim().replace(char::is_control, "");
        match timeout(CLOSING, self.alive.ended()).await {
            Ok(ChannelEnd::Failed(RemoteError::Lost)) if !output.is_empty() => {
                RemoteError::NoGreeting { output }
            }
            Ok(ChannelEnd::Failed(error)) => error,
            Ok(ChannelEnd::Status(_) | ChannelEnd::Signal(_)) | Err(_) => {
                RemoteError::NoGreeting { output }
            }
        }
    }

    /// From now on the stream is the helper's.
    pub(super) fn into_pipe(self, folder: String) -> HelperPipe {
        let first = Cursor::new(self.buffer);
        HelperPipe {
            reader: Box::pin(first.chain(self.stdout)),
            writer: self.stdin,
            folder,
            alive: self.alive,
        }
    }
}

/// All of it is read, so that nobody is held up by it; its end is kept.
async fn drain(mut stderr: Pin<Box<dyn AsyncRead + Send>>, kept: Arc<Mutex<Vec<u8>>>) {
    let mut chunk = vec![0; 8192];
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&chunk[..read]);
        let over = kept.len().saturating_sub(TAIL);
        kept.drain(..over);
    }
}
