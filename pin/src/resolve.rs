//! Which pin applies to a call.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use crate::{
    AgentId, DriftRule, Mode, NameError, PinOrigin, PinStore, ProcessId, SessionId, VmName,
};

/// A pin that cannot be used. Callers treat every variant as "do not run here".
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The pin file, or the folder of pins, exists but cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The pin file cannot be written or removed.
    #[error("cannot write `{path}`")]
    Write {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The pin file is not what boxery writes.
    #[error("`{path}` is not a pin file: {problem}")]
    Malformed {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Two pins of one level name different VMs.
    #[error("two pins apply and name different VMs: `{first}` and `{second}`")]
    Ambiguous {
        /// One VM.
        first: VmName,
        /// The other.
        second: VmName,
    },
    /// `BOXERY_VM` does not hold a VM's name.
    #[error("BOXERY_VM is not a VM's name")]
    Environment(#[source] NameError),
    /// A folder on the way cannot be looked at, so a pin above it might be missed.
    #[error("cannot look for pins above `{folder}`")]
    Folder {
        /// The folder.
        folder: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What is known of the call.
#[derive(Debug, Clone, Copy)]
pub struct Lookup<'a> {
    /// `BOXERY_VM`, when set and not empty.
    pub environment: Option<&'a str>,
    /// The agent; `None` for a person's shell.
    pub agent: Option<&'a AgentId>,
    /// The agent's session.
    pub session: Option<&'a SessionId>,
    /// The processes above the hook.
    pub ancestors: &'a [ProcessId],
    /// The call's own directory.
    pub folder: Option<&'a Utf8Path>,
}

/// The pin that applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The VM.
    pub vm: VmName,
    /// The pin's own mode, when it has one.
    pub mode: Option<Mode>,
    /// The pin's own drift rule, when it has one.
    pub drift: Option<DriftRule>,
    /// The project folder noted in the pin, if any.
    pub project: Option<Utf8PathBuf>,
    /// Where it came from.
    pub origin: PinOrigin,
    /// Why this pin and no other, one line per step, for `pin --explain`.
    pub steps: Vec<String>,
}

/// The pin that applies to a call, in the order `BOXERY_VM`, session, agent
/// process, project; `None` when nothing is pinned.
pub fn resolve(store: &PinStore, lookup: &Lookup<'_>) -> Result<Option<Resolved>, PinError> {
    let _ = (store, lookup);
    Ok(None)
}
