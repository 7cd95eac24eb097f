//! Which VM, which project, which copy: what `run`, `drift`, `vm seed` and the hook
//! all need to know before they do anything.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;

use camino::{Utf8Path, Utf8PathBuf};

use boxery_pin::{
    AgentId, DriftRule, Lookup, Mode, PathForm, PathMap, PinError, PinKey, PinOrigin, PinStore,
    RemotePath, Resolved, SessionId, VmName, find_project, resolve, with_settings,
};

use crate::app::App;
use crate::config::{Config, Vm};
use crate::env;
use crate::error::Failure;
use crate::random;

/// A folder that belongs to no project of the pin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceError {
    /// The folder lies outside the pinned project and all its worktrees.
    #[error("`{folder}` is outside the pinned project `{project}`")]
    Outside {
        /// The folder.
        folder: Utf8PathBuf,
        /// The project's top folder.
        project: Utf8PathBuf,
    },
    /// The folder can't be looked at.
    #[error("cannot look at `{folder}`")]
    Folder {
        /// The folder.
        folder: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The laptop's id can't be read or made.
    #[error("cannot keep this laptop's id in `{path}`")]
    LaptopId {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Where on a VM a command runs.
#[derive(Debug, Default)]
pub(crate) struct Counterpart {
    /// The folder; the user's home without one.
    pub(crate) cwd: Option<String>,
    /// A path at which it sees another folder, and that folder.
    pub(crate) view: Option<(String, String)>,
}

/// Where a verb was started, and what is pinned there.
pub(crate) struct Here {
    /// The current folder, links resolved.
    pub(crate) folder: Utf8PathBuf,
    /// The pin that applies to this folder, this agent session, or this environment.
    pub(crate) pin: Option<Resolved>,
}

impl Here {
    /// Look at the environment, the processes above and the pins.
    pub(crate) fn look(app: &App) -> Result<Self, Failure> {
        Self::look_as(app, None)
    }

    /// The same for a session that the user names.
    pub(crate) fn look_as(app: &App, session: Option<&str>) -> Result<Self, Failure> {
        let (folder, pin) = look_up(app, session, resolve)?;
        let by_settings = env::boxery_vm().settings.as_deref();
        let pin = pin
            .and_then(|pin| with_settings(pin, by_settings))
            .map_err(pin_failure)?;
        Ok(Self { folder, pin })
    }

    /// The mode that holds here, if anything is pinned.
    pub(crate) fn mode(&self, config: &Config) -> Mode {
        let pinned = self.pin.as_ref().and_then(|pin| pin.mode);
        pinned.or(config.mode).unwrap_or(Mode::Guard)
    }

    /// Whether the VM `name` is pinned here.
    pub(crate) fn is_pinned_to(&self, name: &VmName) -> bool {
        self.pin.as_ref().is_some_and(|pin| pin.vm == *name)
    }

    /// What is done here when project and copy aren't the same.
    pub(crate) fn drift(&self, config: &Config) -> DriftRule {
        let pinned = self.pin.as_ref().and_then(|pin| pin.drift);
        let rule = pinned.or(config.drift);
        rule.unwrap_or_else(|| DriftRule::of(self.mode(config)))
    }

    /// The VM that is named, else the pinned one.
    pub(crate) fn vm(&self, named: Option<&VmName>) -> Result<VmName, Failure> {
        let pinned = self.pin.as_ref().map(|pin| &pin.vm);
        named.or(pinned).cloned().ok_or_else(|| {
            Failure::usage("no VM is named, and nothing is pinned here")
                .hint("name one, or pin this project: `boxery pin NAME`")
        })
    }

    /// The folder on the VM `name` that the current one corresponds to, and what a
    /// command sees at another path; none where it belongs to no project.
    pub(crate) fn counterpart(
        &self,
        app: &App,
        name: &VmName,
        vm: &Vm,
    ) -> Result<Counterpart, Failure> {
        let pinned = self.pin.as_ref().is_some_and(|pin| pin.vm == *name);
        let Some(root) = self.project_root(pinned)? else {
            return Ok(Counterpart::default());
        };
        let map = path_map(app, vm, &root)?;
        Ok(Counterpart {
            cwd: Some(map.to_remote(&self.folder)?.to_string()),
            view: map.view(),
        })
    }

    /// The same for the folder `cwd` of the VM, where it is named.
    pub(crate) fn counterpart_or(
        &self,
        app: &App,
        name: &VmName,
        vm: &Vm,
        cwd: Option<&RemotePath>,
    ) -> Result<Counterpart, Failure> {
        let found = self.counterpart(app, name, vm);
        match cwd {
            Some(cwd) => Ok(Counterpart {
                cwd: Some(cwd.to_string()),
                // The laptop's folder doesn't decide where the command runs.
                view: found.ok().and_then(|found| found.view),
            }),
            None => found,
        }
    }

    /// The project's top folder, if the current folder belongs to one. Under the pin
    /// (`pinned`), a folder outside the pinned project is an error.
    pub(crate) fn project_root(&self, pinned: bool) -> Result<Option<Utf8PathBuf>, PlaceError> {
        if let Some(pin) = self.pin.as_ref().filter(|_| pinned) {
            return project_root(pin, &self.folder, env::claude_project_dir().as_deref()).map(Some);
        }
        find_project(&self.folder)
            .map(|project| project.map(|project| project.root))
            .map_err(|source| PlaceError::Folder {
                folder: self.folder.clone(),
                source,
            })
    }
}

/// What the search for a pin looks at here, one line per step.
pub(crate) fn explain(app: &App, session: Option<&str>) -> Result<Vec<String>, Failure> {
    Ok(look_up(app, session, boxery_pin::explain)?.1)
}

/// Search for the pin that applies to a verb started here; the current folder, links
/// resolved, and what was found.
fn look_up<T>(
    app: &App,
    session: Option<&str>,
    search: impl FnOnce(&PinStore, &Lookup<'_>) -> T,
) -> Result<(Utf8PathBuf, T), Failure> {
    let folder = env::current_folder()?;
    let folder = folder.canonicalize_utf8()?;
    let session = session.map(str::to_owned).or_else(env::claude_session_id);
    let session = session.map(SessionId);
    let agent = AgentId("claude-code".to_owned());
    let lookup = Lookup {
        environment: env::boxery_vm().own.as_deref(),
        agent: Some(&agent),
        session: session.as_ref(),
        ancestors: &boxery_pin::ancestors(std::process::id()),
        folder: Some(&folder),
        now: env::now(),
    };
    let found = search(&app.pins(), &lookup);
    Ok((folder, found))
}

/// An error of pins, with what to do about it.
pub(crate) fn pin_failure(error: PinError) -> Failure {
    let hint = error.hint();
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The project that the pin `resolved` names, else the one in which the agent was
/// started, links resolved.
pub(crate) fn pinned_project(resolved: &Resolved) -> Option<Utf8PathBuf> {
    let root = match &resolved.origin {
        PinOrigin::File(PinKey::Project { root }) => Some(root.clone()),
        PinOrigin::File(PinKey::Session { .. } | PinKey::Process { .. })
        | PinOrigin::Environment => resolved.project.clone().or_else(env::claude_project_dir),
    }?;
    root.canonicalize_utf8().ok()
}

/// The top folder of the project that `folder` belongs to under the pin `resolved`.
///
/// A worktree of the pinned repository is a project of its own, wherever it lies.
/// `agent_project` is the folder in which the agent was started, for pins that name
/// no project themselves.
pub(crate) fn project_root(
    resolved: &Resolved,
    folder: &Utf8Path,
    agent_project: Option<&Utf8Path>,
) -> Result<Utf8PathBuf, PlaceError> {
    let cannot_look = |path: &Utf8Path| {
        let folder = path.to_owned();
        move |source| PlaceError::Folder { folder, source }
    };
    let folder = folder.canonicalize_utf8().map_err(cannot_look(folder))?;
    let own = find_project(&folder).map_err(cannot_look(&folder))?;
    let pinned = match &resolved.origin {
        PinOrigin::File(PinKey::Project { root }) => Some(root.as_path()),
        PinOrigin::File(PinKey::Session { .. } | PinKey::Process { .. })
        | PinOrigin::Environment => resolved.project.as_deref().or(agent_project),
    };
    let Some(pinned) = pinned else {
        return Ok(own.map_or(folder, |own| own.root));
    };
    let pinned = pinned.canonicalize_utf8().map_err(cannot_look(pinned))?;
    let base = find_project(&pinned).map_err(cannot_look(&pinned))?;
    match (own, base) {
        (Some(own), Some(base))
            if own.git_common.is_some() && own.git_common == base.git_common =>
        {
            Ok(own.root)
        }
        _ if folder.starts_with(&pinned) => Ok(pinned),
        _ => Err(PlaceError::Outside {
            folder,
            project: pinned,
        }),
    }
}

/// The project at `root` and its copy on `vm`.
pub(crate) fn path_map(app: &App, vm: &Vm, root: &Utf8Path) -> Result<PathMap, PlaceError> {
    Ok(PathMap::new(root, &vm.dir, &laptop_id(app)?).seen(vm.paths.form()))
}

/// Where the copy of a project would lie on `vm` if its `paths` were different; empty
/// where that is the same folder.
pub(crate) fn other_folder(app: &App, vm: &Vm, map: &PathMap) -> Result<String, PlaceError> {
    let mapped = PathMap::new(&map.project, &vm.dir, &laptop_id(app)?);
    let other = match vm.paths.form() {
        PathForm::Real => mapped.folder,
        PathForm::Namespace | PathForm::Mapped => mapped.seen(PathForm::Real).folder,
    };
    Ok(if other == map.folder {
        String::new()
    } else {
        other.to_string()
    })
}

/// What tells this laptop's copies on a VM from another's: the machine id
/// (machine-id(5)), else a random id kept in the state folder.
pub(crate) fn laptop_id(app: &App) -> Result<String, PlaceError> {
    if let Ok(id) = fs::read_to_string("/etc/machine-id") {
        let id = id.trim();
        if id.len() == 32 {
            return Ok(id.to_owned());
        }
    }
    let path = app.env.state_path("laptop-id");
    let error = |source| PlaceError::LaptopId {
        path: path.clone(),
        source,
    };
    match fs::read_to_string(&path) {
        Ok(id) if !id.trim().is_empty() => return Ok(id.trim().to_owned()),
        Ok(_) => {}
        Err(source) if source.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(error(source)),
    }
    let id = random::hex().map_err(error)?;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&app.env.state)
        .map_err(error)?;
    let mut file = tempfile::NamedTempFile::new_in(&app.env.state).map_err(error)?;
    file.write_all(id.as_bytes()).map_err(error)?;
    // Whoever comes first wins; the other takes what stands there.
    match file.persist_noclobber(&path) {
        Ok(_) => Ok(id),
        Err(_) => fs::read_to_string(&path)
            .map(|id| id.trim().to_owned())
            .map_err(error),
    }
}
