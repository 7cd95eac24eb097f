//! What a pin is, in memory and on disk.

use std::fmt;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use crate::{AgentId, ProcessId, SessionId, VmName};

/// What happens to a shell call of a pinned session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Deny it and name the VM's tools.
    Guard,
    /// Rewrite it, so that it runs in the VM.
    Redirect,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Guard => "guard",
            Self::Redirect => "redirect",
        })
    }
}

/// What to do when the VM's copy of the project isn't the laptop's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriftRule {
    /// Run, and name what differs.
    Warn,
    /// Make both the same around the run.
    Sync,
    /// Don't start the command.
    Deny,
    /// Don't look.
    Off,
}

impl DriftRule {
    /// What holds where neither pin nor configuration say it.
    pub fn of(mode: Mode) -> Self {
        match mode {
            Mode::Guard => Self::Warn,
            Mode::Redirect => Self::Sync,
        }
    }
}

impl fmt::Display for DriftRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warn => "warn",
            Self::Sync => "sync",
            Self::Deny => "deny",
            Self::Off => "off",
        })
    }
}

/// What a pin file is filed under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "level")]
pub enum PinKey {
    /// One session of one agent.
    Session {
        /// The agent.
        agent: AgentId,
        /// Its own id of the session.
        session: SessionId,
    },
    /// One process of an agent, whatever its session id becomes.
    Process {
        /// The agent.
        agent: AgentId,
        /// The process.
        process: ProcessId,
    },
    /// A project folder, with all worktrees of its git common directory.
    Project {
        /// The folder, links resolved.
        root: Utf8PathBuf,
    },
}

impl fmt::Display for PinKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session { agent, session } => write!(f, "session {session} of {agent}"),
            Self::Process { agent, process } => write!(f, "process {} of {agent}", process.pid),
            Self::Project { root } => write!(f, "project {root}"),
        }
    }
}

/// Where a resolved pin came from, highest precedence first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PinOrigin {
    /// `BOXERY_VM`.
    Environment,
    /// A pin file.
    File(PinKey),
}

impl fmt::Display for PinOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => f.write_str("BOXERY_VM"),
            Self::File(key) => key.fmt(f),
        }
    }
}

/// A while in which a pin doesn't apply (`boxery unpin --for`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// From when on, seconds since 1970.
    pub from: u64,
    /// The pin applies again at this moment.
    pub until: u64,
}

impl Suspension {
    /// Whether it holds at `now`. A clock that was set back before its begin ends it.
    pub fn holds(self, now: u64) -> bool {
        (self.from..self.until).contains(&now)
    }
}

/// A pin file's content: JSON, mode 0600.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinFile {
    /// Version of this shape; a larger one than this build knows is refused.
    pub version: u32,
    /// What it is filed under; must agree with the file's name.
    pub key: PinKey,
    /// The VM.
    pub vm: VmName,
    /// The mode; the user's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The drift rule; the mode's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftRule>,
    /// The project folder that the session was in when it was pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Utf8PathBuf>,
    /// The git common directory of that project, when it is a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_common: Option<Utf8PathBuf>,
    /// The agent's process that the session ran in, when it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessId>,
    /// A second VM that has the same claim on this session; such a pin is
    /// ambiguous until the user says which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rival: Option<VmName>,
    /// A while in which it doesn't apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Suspension>,
    /// Who wrote it, such as `boxery pin` or `vm_select`.
    pub written_by: String,
    /// Why, in words for the user.
    pub reason: String,
    /// When it was written, seconds since 1970.
    pub written_at: u64,
    /// When it last decided a call, seconds since 1970. On disk it is this or
    /// the file's modification time, whichever is later: see
    /// [`PinStore::touch`](crate::PinStore::touch).
    pub used_at: u64,
}

impl PinFile {
    /// The version that this build writes, and the newest that it reads.
    pub const VERSION: u32 = 1;

    /// A pin with nothing but a VM, written and used at `now` (seconds since 1970).
    pub fn new(key: PinKey, vm: VmName, written_by: &str, reason: &str, now: u64) -> Self {
        Self {
            version: Self::VERSION,
            key,
            vm,
            mode: None,
            drift: None,
            project: None,
            git_common: None,
            process: None,
            rival: None,
            suspended: None,
            written_by: written_by.to_owned(),
            reason: reason.to_owned(),
            written_at: now,
            used_at: now,
        }
    }
}
