//! Which pin applies to a call.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use crate::file_name::{
    PinName, agent_digest, path_digest, process_name, project_root, session_name,
};
use crate::project::git_common;
use crate::{
    AgentId, DriftRule, Mode, NameError, PinFile, PinOrigin, PinStore, ProcessId, SessionId,
    StoredPin, VmName,
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
    /// Projects are pinned and the call names no folder, so its pin might be missed.
    #[error("the call names no folder, and some projects are pinned")]
    NoFolder,
}

impl PinError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read { .. } => {
                Some("`boxery pin --explain` tells which files are looked at".into())
            }
            Self::Write { .. } | Self::NoFolder => None,
            Self::Malformed { path, .. } => Some(format!(
                "in a terminal of your own, look at `{path}` and pin or unpin again"
            )),
            Self::Ambiguous { .. } => {
                Some("in a terminal of your own, say which one with `boxery pin NAME`".into())
            }
            Self::Environment(error) => Some(error.hint().to_owned()),
            Self::Folder { .. } => Some("use a folder that exists and that you can read".into()),
        }
    }
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
    /// Seconds since 1970.
    pub now: u64,
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
    let mut search = Search::new(store);
    let found = search.run(lookup)?;
    Ok(found.map(|found| Resolved {
        steps: search.steps,
        ..found
    }))
}

/// What becomes of `found` where the agent's settings set `BOXERY_VM` to `value` for
/// what it starts. A project's settings may do that, so it pins where nothing else
/// does, and never changes the VM or the mode of a pin that the user made.
pub fn with_settings(
    found: Option<Resolved>,
    value: Option<&str>,
) -> Result<Option<Resolved>, PinError> {
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        return Ok(found);
    };
    let vm: VmName = value.parse().map_err(PinError::Environment)?;
    match found {
        Some(found) if found.vm == vm => Ok(Some(found)),
        Some(found) => Err(PinError::Ambiguous {
            first: found.vm,
            second: vm,
        }),
        None => Ok(Some(by_variable(vm))),
    }
}

fn by_variable(vm: VmName) -> Resolved {
    Resolved {
        vm,
        mode: None,
        drift: None,
        project: None,
        origin: PinOrigin::Environment,
        steps: Vec::new(),
    }
}

/// What [`resolve`] looks at on its way to its answer, one line per step, also
/// when the answer is `None` or an error.
pub fn explain(store: &PinStore, lookup: &Lookup<'_>) -> Vec<String> {
    let mut search = Search::new(store);
    if let Err(error) = search.run(lookup) {
        search.step(error.to_string());
    }
    search.steps
}

/// Whether a pin may apply to a call of `agent` whose payload can't be read, so
/// that neither its session nor its folder is known. `hook_folder` is the
/// hook's own. What can't be told counts as yes.
pub fn any_may_apply(
    store: &PinStore,
    environment: Option<&str>,
    agent: &AgentId,
    hook_folder: Option<&Utf8Path>,
) -> bool {
    if environment.is_some_and(|value| !value.is_empty()) {
        return true;
    }
    let Ok(names) = store.scan() else {
        return true;
    };
    let of_agent = agent_digest(agent);
    let session_or_process = names.iter().any(|name| match PinName::parse(name) {
        Some(PinName::Session { agent }) => agent == of_agent,
        Some(PinName::Process { process, agent }) => agent == of_agent && !process.is_gone(),
        Some(PinName::Project { .. }) | None => false,
    });
    let mut search = Search {
        names,
        ..Search::new(store)
    };
    session_or_process || !matches!(search.by_project(hook_folder), Ok(None))
}

/// One search for a pin.
struct Search<'a> {
    store: &'a PinStore,
    /// The names in the store's folder.
    names: Vec<String>,
    steps: Vec<String>,
    now: u64,
}

impl<'a> Search<'a> {
    fn new(store: &'a PinStore) -> Self {
        Self {
            store,
            names: Vec::new(),
            steps: Vec::new(),
            now: 0,
        }
    }

    fn run(&mut self, lookup: &Lookup<'_>) -> Result<Option<Resolved>, PinError> {
        self.now = lookup.now;
        if let Some(found) = self.by_environment(lookup.environment)? {
            return Ok(Some(found));
        }
        let folder = &self.store.folder;
        self.names = self.store.scan().map_err(|source| PinError::Read {
            path: folder.clone(),
            source,
        })?;
        if self.names.is_empty() {
            self.step("nothing is pinned at all");
            return Ok(None);
        }
        if let Some(found) = self.by_session(lookup)? {
            return Ok(Some(found));
        }
        if let Some(found) = self.by_process(lookup)? {
            return Ok(Some(found));
        }
        if let Some(found) = self.by_earlier_session(lookup)? {
            return Ok(Some(found));
        }
        self.by_project(lookup.folder)
    }

    fn by_environment(&mut self, value: Option<&str>) -> Result<Option<Resolved>, PinError> {
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            self.step("BOXERY_VM is not set");
            return Ok(None);
        };
        let vm: VmName = value.parse().map_err(PinError::Environment)?;
        self.step(format!("BOXERY_VM is `{vm}`"));
        Ok(Some(by_variable(vm)))
    }

    fn by_session(&mut self, lookup: &Lookup<'_>) -> Result<Option<Resolved>, PinError> {
        let (Some(agent), Some(session)) = (lookup.agent, lookup.session) else {
            self.step("the call belongs to no agent's session");
            return Ok(None);
        };
        let pins = self.read(&[session_name(agent, session)])?;
        if pins.is_empty() {
            self.step(format!("no pin for session {session} of {agent}"));
        }
        self.decide(&pins)
    }

    fn by_process(&mut self, lookup: &Lookup<'_>) -> Result<Option<Resolved>, PinError> {
        let mut wanted = Vec::new();
        for ancestor in lookup.ancestors {
            match lookup.agent {
                Some(agent) => wanted.push(process_name(agent, *ancestor)),
                // A person's shell, perhaps one that some agent started.
                None => wanted.extend(
                    self.names
                        .iter()
                        .filter(|name| {
                            matches!(PinName::parse(name), Some(PinName::Process { process, .. })
                        if process == *ancestor)
                        })
                        .cloned(),
                ),
            }
        }
        wanted.retain(|name| self.names.contains(name));
        let pins = self.read(&wanted)?;
        if pins.is_empty() {
            self.step("no pin for any of the processes above");
        }
        self.decide(&pins)
    }

    /// The pin of another session that a process above had: its re-keying at
    /// `/clear` failed, or the agent never told of it. What can't be read may be
    /// any session's, and is for [`rekey`](crate::rekey()) to report.
    fn by_earlier_session(&mut self, lookup: &Lookup<'_>) -> Result<Option<Resolved>, PinError> {
        let (Some(agent), Some(_)) = (lookup.agent, lookup.session) else {
            return Ok(None);
        };
        let of_agent = agent_digest(agent);
        let mut pins = Vec::new();
        for name in &self.names {
            if matches!(PinName::parse(name), Some(PinName::Session { agent }) if agent == of_agent)
                && let Ok(Some(pin)) = self.store.read_name(name)
                && let Some(process) = pin.file.process
                && lookup.ancestors.contains(&process)
            {
                pins.push(pin);
            }
        }
        self.decide(&pins)
    }

    fn by_project(&mut self, folder: Option<&Utf8Path>) -> Result<Option<Resolved>, PinError> {
        let mut files = Vec::new();
        for name in &self.names {
            if let Some(PinName::Project { root, git_common }) = PinName::parse(name) {
                files.push((name.clone(), root.to_owned(), git_common.map(str::to_owned)));
            }
        }
        if files.is_empty() {
            self.step("no project is pinned");
            return Ok(None);
        }
        let Some(folder) = folder else {
            return Err(PinError::NoFolder);
        };
        let failed = |source| PinError::Folder {
            folder: folder.to_owned(),
            source,
        };
        if !folder.is_absolute() {
            return Err(failed(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the path is not absolute",
            )));
        }
        let resolved = folder.canonicalize_utf8().map_err(failed)?;
        for above in resolved.ancestors() {
            let digest = path_digest(above);
            let named = |wanted: &dyn Fn(&str, Option<&str>) -> bool| -> Vec<String> {
                files
                    .iter()
                    .filter(|(_, root, common)| wanted(root, common.as_deref()))
                    .map(|(name, ..)| name.clone())
                    .collect()
            };
            // The folder itself before the other worktrees of its repository.
            let mut wanted = named(&|root, _| root == digest);
            if wanted.is_empty() {
                let mut commons = vec![digest];
                commons.extend(
                    git_common(above)
                        .map_err(failed)?
                        .map(|path| path_digest(&path)),
                );
                wanted = named(&|_, common| {
                    common.is_some_and(|common| commons.iter().any(|each| each == common))
                });
            }
            let pins = self.read(&wanted)?;
            if !pins.is_empty() {
                self.step(format!("a project is pinned at or for `{above}`"));
                return self.decide(&pins);
            }
        }
        self.step(format!("no pinned project holds `{resolved}`"));
        Ok(None)
    }

    /// The pins in the files `names`; one that is gone by now isn't among them.
    fn read(&self, names: &[String]) -> Result<Vec<StoredPin>, PinError> {
        let mut pins = Vec::new();
        for name in names {
            pins.extend(self.store.read_name(name)?);
        }
        Ok(pins)
    }

    /// The one answer of pins on the same level.
    fn decide(&mut self, pins: &[StoredPin]) -> Result<Option<Resolved>, PinError> {
        let (suspended, pins): (Vec<&StoredPin>, Vec<&StoredPin>) = pins.iter().partition(|pin| {
            let suspension = pin.file.suspended;
            suspension.is_some_and(|suspension| suspension.holds(self.now))
        });
        for pin in suspended {
            self.step(format!("the pin of {} is suspended for now", pin.file.key));
        }
        let Some(found) = agree(pins.iter().map(|pin| &pin.file))? else {
            return Ok(None);
        };
        for pin in pins {
            let file = &pin.file;
            self.step(format!(
                "`{}` pins {} to `{}`: {} ({})",
                pin.path, file.key, file.vm, file.reason, file.written_by
            ));
        }
        let root = project_root(&found.key).cloned();
        Ok(Some(Resolved {
            vm: found.vm,
            mode: found.mode,
            drift: found.drift,
            project: found.project.or(root),
            origin: PinOrigin::File(found.key),
            steps: Vec::new(),
        }))
    }

    fn step(&mut self, text: impl Into<String>) {
        self.steps.push(text.into());
    }
}

/// The first of `pins`, when all name one VM; guard where they differ in mode.
pub(crate) fn agree<'a>(
    pins: impl Iterator<Item = &'a PinFile>,
) -> Result<Option<PinFile>, PinError> {
    let mut found: Option<PinFile> = None;
    for pin in pins {
        let other = pin.rival.as_ref().unwrap_or(&pin.vm);
        let first = found.as_ref().map_or(&pin.vm, |found| &found.vm);
        for vm in [&pin.vm, other] {
            if vm != first {
                return Err(PinError::Ambiguous {
                    first: first.clone(),
                    second: vm.clone(),
                });
            }
        }
        match &mut found {
            None => found = Some(pin.clone()),
            Some(found) if found.mode != pin.mode => found.mode = Some(Mode::Guard),
            Some(_) => {}
        }
    }
    Ok(found)
}
