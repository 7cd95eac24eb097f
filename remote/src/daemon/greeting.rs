//! What client and daemon say before a stream is handed over: one message each,
//! a length of four bytes and JSON.

use std::io;
use std::os::unix::fs::MetadataExt as _;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::{Announced, RemoteError, Route, WantedPorts};

/// Longest message.
const LIMIT: u32 = 1024 * 1024;

/// Which build a program is: its file as it was when it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// When the file was last changed, in ns since 1970.
    made: i128,
    size: u64,
    inode: u64,
}

impl Build {
    /// This process's own; `None` where the system doesn't say which file it is.
    pub fn own() -> Option<Self> {
        let path = std::env::current_exe().ok()?;
        // A file that was replaced is another one under the same name; the
        // kernel's link still leads to ours.
        let found = std::fs::metadata("/proc/self/exe")
            .or_else(|_| std::fs::metadata(path))
            .ok()?;
        Some(Self {
            made: i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec()),
            size: found.size(),
            inode: found.ino(),
        })
    }

    /// Whether this one was made after `other`.
    pub(super) fn is_newer(self, other: Self) -> bool {
        self != other && self.made > other.made
    }
}

/// What a client wants.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) build: Build,
    pub(super) wish: Wish,
}

/// What a client wants.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Wish {
    /// A stream to the helper of this VM.
    Stream(Box<Route>),
    /// Ports of the VM on this laptop.
    Ports(Box<PortsWish>),
    /// What the daemon does.
    Status,
    /// Its end.
    Stop,
}

/// Ports that a client wants to be offered.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PortsWish {
    /// The way to the VM.
    pub(super) route: Route,
    /// Whose, and which.
    pub(super) wanted: WantedPorts,
    /// How much the client wants to know.
    pub(super) telling: Telling,
}

/// What of the ports is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Telling {
    /// What is known at this moment.
    News,
    /// What the VM says at this moment.
    Once,
    /// That and every change.
    Follow,
}

/// What the daemon answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// From here on the socket is a stream to the helper.
    Stream,
    /// The VM can't be reached.
    Failed(Told),
    /// The daemon is older than the client and takes nobody any more.
    Older,
    /// The daemon is newer than the client.
    Newer,
    /// What is offered now.
    Ports(Vec<Announced>),
    /// What it does.
    Status(Status),
    /// It ends.
    Stopping,
}

/// An error of the daemon's, in words.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Told {
    text: String,
    hint: Option<String>,
    /// Whether a person who is asked could help.
    ask: bool,
}

impl Told {
    pub(super) fn new(error: &RemoteError, vm: &str) -> Self {
        Self {
            text: error.with_causes(),
            hint: error.hint(vm),
            ask: matches!(error, RemoteError::EncryptedKey { .. }),
        }
    }

    pub(super) fn asks(&self) -> bool {
        self.ask
    }
}

impl From<Told> for RemoteError {
    fn from(told: Told) -> Self {
        Self::Told {
            text: told.text,
            hint: told.hint,
        }
    }
}

/// What a daemon does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its process number.
    pub pid: u32,
    /// How long it has run, in seconds.
    pub seconds: u64,
    /// Its version.
    pub version: String,
    /// How many clients have a stream.
    pub clients: usize,
    /// The VMs to which it has a connection.
    pub connections: Vec<Connection>,
    /// The ports that it offers here by itself.
    pub ports: Vec<Offered>,
}

/// A port of a VM that is offered here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Offered {
    /// The VM's name.
    pub vm: String,
    /// The VM's port.
    pub port: u16,
    /// The port of 127.0.0.1 here.
    pub local: u16,
    /// The run or job that listens.
    pub job: String,
}

/// A connection that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// The VM's name.
    pub vm: String,
    /// `native` or `system`.
    pub pipe: String,
    /// How many streams of it are in use.
    pub streams: usize,
}

pub(super) async fn send(
    to: &mut (impl AsyncWrite + Unpin),
    message: &impl Serialize,
) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).map_err(|_| io::ErrorKind::InvalidData)?;
    let bytes = [&length.to_be_bytes()[..], &text].concat();
    to.write_all(&bytes).await?;
    to.flush().await
}

pub(super) async fn receive<T: DeserializeOwned>(
    from: &mut (impl AsyncRead + Unpin),
) -> io::Result<T> {
    let length = from.read_u32().await?;
    if length > LIMIT {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; usize::try_from(length).unwrap_or_default()];
    from.read_exact(&mut text).await?;
    Ok(serde_json::from_slice(&text)?)
}
