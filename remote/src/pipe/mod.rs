//! The ways to a VM, one file each. All of them give the same [`Channel`].

mod auth;
mod log;
mod native;
mod open;
mod system;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::RemoteError;

pub(crate) use native::NativePipe;
pub(crate) use system::SystemPipe;

/// Which pipe the user wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PipeChoice {
    /// Native where it does the same as `ssh`, else system.
    #[default]
    Auto,
    /// Native or refused.
    Native,
    /// Always `ssh`.
    System,
}

impl PipeChoice {
    /// The choice as the configuration writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Native => "native",
            Self::System => "system",
        }
    }
}

impl fmt::Display for PipeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for PipeChoice {
    type Err = RemoteError;

    fn from_str(text: &str) -> Result<Self, RemoteError> {
        match text {
            "auto" => Ok(Self::Auto),
            "native" => Ok(Self::Native),
            "system" => Ok(Self::System),
            _ => Err(RemoteError::BadRequest {
                what: format!("`{text}` is no pipe: auto, native or system"),
            }),
        }
    }
}

/// An open way to a VM. Dropping it closes it.
#[derive(Debug)]
pub enum Pipe {
    /// SSH in this process.
    Native(NativePipe),
    /// A child `ssh` per command.
    System(SystemPipe),
}

/// A command that was started at the other end.
pub struct Channel {
    /// What it reads. Dropping or shutting it down is its end of file.
    pub stdin: Pin<Box<dyn AsyncWrite + Send>>,
    /// What it writes.
    pub stdout: Pin<Box<dyn AsyncRead + Send>>,
    /// What it writes on the side.
    pub stderr: Pin<Box<dyn AsyncRead + Send>>,
    /// How it ended. Dropping it closes the channel.
    pub end: Pin<Box<dyn Future<Output = ChannelEnd> + Send>>,
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").finish_non_exhaustive()
    }
}

/// How a channel ended.
#[derive(Debug)]
pub enum ChannelEnd {
    /// With an exit status.
    Status(u32),
    /// By a signal, named without `SIG`.
    Signal(String),
    /// Without either: the connection is gone, or never was.
    Failed(RemoteError),
}
