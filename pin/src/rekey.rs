//! What a session inherits when it goes on under another id.

use camino::Utf8Path;

use crate::file_name::{PinName, agent_digest, process_name, session_name};
use crate::resolve::agree;
use crate::{AgentId, PinError, PinFile, PinKey, PinStore, ProcessId, Project, SessionId, VmName};

/// How recently a session's pin must have decided a call for another session
/// of its project to inherit it, in seconds.
const RECENT: u64 = 24 * 3600;

/// How a session came to start, as far as pins are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartKind {
    /// A new conversation: it inherits nothing.
    New,
    /// An earlier conversation goes on, or a copy of it (`resume`, `fork`).
    Continued,
    /// The same process goes on with another conversation (`clear`, `compact`).
    SameProcess,
}

/// A session that starts.
#[derive(Debug, Clone, Copy)]
pub struct SessionStart<'a> {
    /// The agent.
    pub agent: &'a AgentId,
    /// The id under which the session goes on.
    pub session: &'a SessionId,
    /// How it came to start.
    pub kind: StartKind,
    /// The session that this process had before, when it is known.
    pub previous: Option<&'a SessionId>,
    /// The agent's own process, when it is known which of the ancestors that is.
    pub process: Option<ProcessId>,
    /// The processes above the hook.
    pub ancestors: &'a [ProcessId],
    /// The session's folder.
    pub folder: &'a Utf8Path,
    /// Seconds since 1970.
    pub now: u64,
}

/// What [`rekey`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rekey {
    /// No pin is inherited, and none was there.
    Nothing,
    /// The session has a pin of its own already.
    Kept,
    /// The session now has the pin of another one.
    Inherited {
        /// The new pin.
        pin: Box<PinFile>,
        /// The key that it was inherited from.
        from: PinKey,
    },
    /// Pins of two VMs have the same claim. The session now has a pin that
    /// [`resolve`](crate::resolve()) calls ambiguous, so that nothing runs until the user decides.
    Ambiguous {
        /// One VM.
        first: VmName,
        /// The other.
        second: VmName,
    },
}

impl Rekey {
    /// What to tell the user and the model, when there is something to tell.
    pub fn note(&self) -> Option<String> {
        match self {
            Self::Nothing | Self::Kept => None,
            Self::Inherited { pin, from } => Some(format!(
                "This session is pinned to VM {}: it inherits the pin of {from}.",
                pin.vm
            )),
            Self::Ambiguous { first, second } => Some(format!(
                "This session could inherit a pin to VM {first} or to VM {second}, so its shell \
                 calls are denied until the user says which with `boxery pin NAME` in a terminal."
            )),
        }
    }
}

/// Give the session that starts the pin that it inherits, if any.
pub fn rekey(store: &PinStore, start: &SessionStart<'_>) -> Result<Rekey, PinError> {
    // Nothing is pinned at all: not even the lock file is made.
    let scanned = store.scan();
    if scanned
        .map_err(|source| PinError::Read {
            path: store.folder.clone(),
            source,
        })?
        .is_empty()
    {
        return Ok(Rekey::Nothing);
    }
    let _lock = store.lock()?;
    if let Some(own) = store.read_name(&session_name(start.agent, start.session))? {
        // It goes on in another process: the next `clear` there must find it.
        if start.process.is_some() && own.file.process != start.process {
            store.write_locked(&PinFile {
                process: start.process,
                ..own.file
            })?;
        }
        return Ok(Rekey::Kept);
    }
    let candidates = match start.kind {
        StartKind::New => return Ok(Rekey::Nothing),
        StartKind::Continued => of_project(store, start, |_| true)?,
        StartKind::SameProcess => of_same_process(store, start)?,
    };
    inherit(store, start, &candidates)
}

fn inherit(
    store: &PinStore,
    start: &SessionStart<'_>,
    candidates: &[PinFile],
) -> Result<Rekey, PinError> {
    let (found, rival) = match agree(candidates.iter()) {
        Ok(Some(found)) => (found, None),
        Ok(None) => return Ok(Rekey::Nothing),
        Err(PinError::Ambiguous { first, second }) => {
            let Some(found) = candidates.first() else {
                return Err(PinError::Ambiguous { first, second });
            };
            (
                PinFile {
                    vm: first,
                    ..found.clone()
                },
                Some(second),
            )
        }
        Err(error) => return Err(error),
    };
    let from = found.key.clone();
    let left = (start.process.is_some() && found.process == start.process)
        .then(|| found.clone())
        .filter(|left| matches!(left.key, PinKey::Session { .. }) && rival.is_none());
    let pin = PinFile {
        key: PinKey::Session {
            agent: start.agent.clone(),
            session: start.session.clone(),
        },
        process: start.process,
        rival,
        reason: format!("inherited from {from}"),
        written_by: "boxery hook".to_owned(),
        written_at: start.now,
        used_at: start.now,
        ..found
    };
    store.write_locked(&pin)?;
    if let Some(left) = left {
        // A process has one session at a time, and this one can be unpinned by itself.
        store.write_locked(&PinFile {
            process: None,
            ..left
        })?;
    }
    Ok(match pin.rival {
        None => Rekey::Inherited {
            pin: Box::new(pin),
            from,
        },
        Some(second) => Rekey::Ambiguous {
            first: pin.vm,
            second,
        },
    })
}

/// The pins of sessions of this agent in this project that decided a call in
/// the last day, the latest first.
fn of_project(
    store: &PinStore,
    start: &SessionStart<'_>,
    wanted: impl Fn(&PinFile) -> bool,
) -> Result<Vec<PinFile>, PinError> {
    let mut pins = of_sessions(store, start.agent)?;
    pins.retain(|pin| pin.used_at.saturating_add(RECENT) >= start.now && wanted(pin));
    if pins.is_empty() {
        return Ok(pins);
    }
    let failed = |source| PinError::Folder {
        folder: start.folder.to_owned(),
        source,
    };
    let project = Project::of(start.folder).map_err(failed)?;
    pins.retain(|pin| {
        let same_repository = project.git_common.is_some() && pin.git_common == project.git_common;
        let inside = pin
            .project
            .as_ref()
            .is_some_and(|top| project.root.starts_with(top));
        // One that the user made from elsewhere and that decided no call yet.
        let anywhere = pin.project.is_none() && pin.git_common.is_none();
        same_repository || inside || anywhere
    });
    Ok(pins)
}

/// The pins of the session that this process had before, else of the process itself.
fn of_same_process(store: &PinStore, start: &SessionStart<'_>) -> Result<Vec<PinFile>, PinError> {
    if let Some(previous) = start.previous
        && let Some(pin) = store.read_name(&session_name(start.agent, previous))?
    {
        return Ok(vec![pin.file]);
    }
    let mut tied = of_sessions(store, start.agent)?;
    tied.retain(|pin| pin.process.is_some() && pin.process == start.process);
    // A process has one session at a time: the latest is the one that was cleared.
    tied.truncate(1);
    if !tied.is_empty() {
        return Ok(tied);
    }
    for ancestor in start.ancestors {
        if let Some(pin) = store.read_name(&process_name(start.agent, *ancestor))? {
            return Ok(vec![pin.file]);
        }
    }
    if start.previous.is_some() {
        return Ok(Vec::new());
    }
    // The session before this one is unknown. A pin of this project whose
    // process nobody noted, or all of them when ours isn't known, may be its.
    of_project(store, start, |pin| {
        start.process.is_none() || pin.process.is_none()
    })
}

/// The pins of all sessions of `agent`, the latest used first.
fn of_sessions(store: &PinStore, agent: &AgentId) -> Result<Vec<PinFile>, PinError> {
    let of_agent = agent_digest(agent);
    let names = store.scan().map_err(|source| PinError::Read {
        path: store.folder.clone(),
        source,
    })?;
    let mut pins = Vec::new();
    for name in names {
        if matches!(PinName::parse(&name), Some(PinName::Session { agent }) if agent == of_agent)
            && let Some(pin) = store.read_name(&name)?
        {
            pins.push(pin.file);
        }
    }
    pins.sort_by_key(|pin| std::cmp::Reverse((pin.used_at, pin.written_at)));
    Ok(pins)
}
