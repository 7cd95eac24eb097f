//! One command on a VM, by its helper.
//!
//! The request names the run by a random id, under which it is executed at most
//! once, however often it is sent. When the connection breaks the run goes on, and
//! its output is taken up at the very byte where it broke; so is its input.

mod capture;
mod check;
mod drive;
mod feed;
mod sink;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use boxery_wire::{GitUser, Keep, RunId, Size, StateId};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

pub use capture::{Captured, capture};
pub(crate) use check::check;
pub use drive::run;
pub(crate) use drive::{begin, lost, refused, sent};

/// What to run.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// Program and arguments: any bytes but NUL.
    pub argv: Vec<Vec<u8>>,
    /// The folder to run in; the user's home by default.
    pub cwd: Option<String>,
    /// A path at which it sees another folder, and that folder; `cwd` is as it is seen.
    pub view: Option<(String, String)>,
    /// Variables to set, in order.
    pub env: Vec<(String, Vec<u8>)>,
    /// How long it may run.
    pub timeout: Option<Duration>,
    /// Give it a terminal of this size, which may change.
    pub terminal: Option<watch::Receiver<Size>>,
    /// For how long it lives on when the connection breaks and nobody comes back;
    /// 8 hours by default.
    pub grace: Option<Duration>,
    /// The agent's session, empty for none.
    pub session: String,
    /// Its name; one is made where there is none.
    pub id: Option<RunId>,
    /// What outlives it for the session's next call, if anything does.
    pub keep: Option<Keep>,
    /// Who its user is to git, where the VM doesn't say.
    pub git: Option<GitUser>,
    /// It is the script that sets the VM up.
    pub sets_up: Option<StateId>,
    /// Is told what there is to say of it before its first byte.
    pub listener: Option<Listener>,
}

/// What is told of a run before its first byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunNote {
    /// The folder in which the session's last command ended is no more; this one
    /// runs in the folder that was asked for.
    FolderGone(String),
}

/// Whoever is told.
#[derive(Clone)]
pub struct Listener(pub Arc<dyn Fn(RunNote) + Send + Sync>);

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

/// A stream of bytes from the laptop.
pub type Input = Pin<Box<dyn AsyncRead + Send>>;

/// A stream of bytes to the laptop.
pub type Output = Pin<Box<dyn AsyncWrite + Send>>;

/// The streams of a run.
pub struct RunIo {
    /// The command's stdin; `/dev/null` without one.
    pub stdin: Option<Input>,
    /// Gets its stdout.
    pub stdout: Output,
    /// Gets its stderr.
    pub stderr: Output,
}

impl std::fmt::Debug for RunIo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunIo")
            .field("stdin", &self.stdin.is_some())
            .finish_non_exhaustive()
    }
}

/// Why the caller ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancel {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM or SIGHUP.
    Terminate,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunExit {
    /// By itself, with this status; 128+n after signal n.
    Code(u8),
    /// Its time was up.
    TimedOut,
    /// The caller ended it.
    Cancelled(Cancel),
    /// Nobody reads its output any more.
    OutputClosed,
}

impl RunExit {
    /// The exit status of `boxery run`.
    pub fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::TimedOut => 124,
            Self::Cancelled(Cancel::Interrupt) => 130,
            Self::Cancelled(Cancel::Terminate) => 143,
            Self::OutputClosed => 141,
        }
    }
}

/// How a run ended, and what is left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunEnd {
    /// How it ended.
    pub exit: RunExit,
    /// After an early end: how many processes could not be ended; `None` when
    /// the VM could not be told or didn't say.
    pub left: Option<u32>,
    /// How many bytes of stdout came.
    pub stdout_bytes: u64,
    /// How many bytes of stderr came.
    pub stderr_bytes: u64,
    /// How often the connection broke and the run was found again.
    pub reconnected: u32,
}
