//! Why a connection or a stream ended.

use std::io;
use std::sync::Arc;

/// What ends a connection, or one stream of it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WireError {
    /// The pipe ended, as it does when the other end goes away.
    #[error("the pipe was closed")]
    Closed,
    /// The pipe broke.
    #[error("the pipe broke")]
    Io(#[source] Arc<io::Error>),
    /// The other end isn't a helper, or its greeting never came.
    #[error("no helper answered{}", said(.noise))]
    NoGreeting {
        /// The first bytes that came instead.
        noise: Vec<u8>,
    },
    /// The other end was built from other sources.
    #[error("the other end is of another build")]
    OtherBuild,
    /// What came can't be right.
    #[error("the other end broke the protocol: {0}")]
    Protocol(&'static str),
    /// The other end gave this stream up.
    #[error("the other end gave the stream up")]
    Reset,
    /// This end finished the stream, or too many are open.
    #[error("the stream can't be used: {0}")]
    Unusable(&'static str),
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset => Self::Closed,
            _ => Self::Io(Arc::new(error)),
        }
    }
}

fn said(noise: &[u8]) -> String {
    if noise.is_empty() {
        return String::new();
    }
    let text = String::from_utf8_lossy(noise);
    let words: Vec<&str> = text.split_whitespace().collect();
    format!(
        "; it said: {}",
        words.join(" ").replace(char::is_control, "")
    )
}
