//! A project and its copy on one VM, and the rules by which they are made the same.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use boxery_pin::{PathMap, VmName};
use boxery_policy::Policy;
use boxery_sync::talk::{DriveError, Job, changed_since};
use boxery_sync::{
    Digest, Direction, EntryPath, Protected, Scan, ScanOptions, SyncError, Take, Tree, run_by_git,
};
use camino::{Utf8Path, Utf8PathBuf};

use super::rules::{marker, scan_options};
use crate::app::App;
use crate::error::Failure;
use crate::hook::protected_for;
use crate::place;
use crate::policy::{Caller, InForce};

/// A project and its copy.
pub(crate) struct Pair {
    /// The VM.
    pub(crate) vm: VmName,
    /// Where both lie.
    pub(crate) map: PathMap,
    /// Where the copy would lie under other `paths`; empty if that is the same folder.
    pub(crate) other: String,
    /// What the copy's marker says.
    pub(crate) marker: String,
    /// What is known of their syncs.
    state: Utf8PathBuf,
    scan: ScanOptions,
    protected: Protected,
    /// Where in the project the user's home lies: what is hidden in it is protected.
    home: Option<PathBuf>,
    policies: Vec<Policy>,
}

/// What is asked of a sync.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    /// Which way changes go.
    pub(crate) direction: Direction,
    /// What a person decided.
    pub(crate) takes: Vec<Take>,
    /// How many deletions a person allowed.
    pub(crate) allowed: usize,
    /// Whether the copy is made if there is none.
    pub(crate) making: Creation,
}

/// Whether a copy is made where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Creation {
    /// No.
    Refused,
    /// Unless the project has more bytes than that.
    UpTo(u64),
    /// Yes.
    Asked,
}

impl Default for Wish {
    fn default() -> Self {
        Self {
            direction: Direction::TwoWay,
            takes: Vec::new(),
            allowed: 0,
            making: Creation::Refused,
        }
    }
}

impl Pair {
    /// The project of `map` and its copy on `vm`.
    pub(crate) fn new(app: &App, vm: &VmName, map: &PathMap) -> Result<Self, Failure> {
        let project = map.project.as_path();
        let config = app.config()?;
        let kept_from_agents = protected_for(app, None, project, Some(project));
        let tails = kept_from_agents
            .tails
            .iter()
            .map(|(tail, _)| tail.as_bytes());
        let tails: Vec<&[u8]> = tails.collect();
        let mut anchored: Vec<Vec<u8>> = Vec::new();
        for path in kept_from_agents.below(project) {
            anchored.push(path.into_os_string().into_encoded_bytes());
        }
        let by_git = run_by_git(project).map_err(super::sync_failure)?;
        anchored.extend(by_git.into_iter().map(Vec::from));
        Ok(Self {
            vm: vm.clone(),
            map: map.clone(),
            other: place::other_folder(app, config.vm(vm)?, map)?,
            marker: marker(app, map)?,
            state: state_folder(app, vm, project),
            scan: scan_options(app),
            protected: Protected::new(tails, anchored),
            home: kept_from_agents.hidden_below(project),
            policies: policies(app, project)?,
        })
    }

    /// Have `with` do what is wished for.
    pub(super) fn with_job<T>(
        &self,
        wish: &Wish,
        progress: &mut dyn FnMut(boxery_sync::talk::Progress),
        with: impl FnOnce(&mut Job<'_>) -> T,
    ) -> T {
        with(&mut Job {
            project: &self.map.project,
            scan: &self.scan,
            state: self.state.as_std_path(),
            marker: &self.marker,
            create: false,
            direction: wish.direction,
            protected: &self.protected,
            never_taken: &|path| self.is_never_taken(path),
            never_sent: &|path| self.is_never_sent(path),
            takes: &wish.takes,
            allowed: wish.allowed,
            patience: super::PATIENCE,
            progress,
        })
    }

    /// What changed in the project since a sync read it.
    pub(super) fn changed_since(&self, before: &Tree) -> Result<Vec<EntryPath>, DriveError> {
        self.with_job(&Wish::default(), &mut |_| {}, |job| {
            changed_since(job, before)
        })
    }

    /// The project as it is.
    pub(super) fn scan(&self) -> Result<Scan, SyncError> {
        Scan::read(&self.map.project, &self.scan)
    }

    /// Have a place for what is known, so that nothing is hashed twice.
    pub(super) fn make_state(&self) -> std::io::Result<()> {
        let mut folder = std::fs::DirBuilder::new();
        folder.recursive(true).mode(0o700).create(&self.state)
    }

    fn is_never_taken(&self, path: &EntryPath) -> bool {
        let is_hidden = self.home.as_ref().is_some_and(|home| {
            let below = path.as_path().strip_prefix(home).ok();
            let first = below.and_then(|below| below.iter().next());
            first.is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
        });
        is_hidden || self.by_policies(path, Policy::keeps_from_change)
    }

    pub(super) fn is_never_sent(&self, path: &EntryPath) -> bool {
        self.by_policies(path, Policy::denies_read)
    }

    /// Whether a policy may keep something from the VM at all.
    pub(super) fn has_policies(&self) -> bool {
        !self.policies.is_empty()
    }

    /// Where what is known of its syncs lies.
    pub(super) fn state(&self) -> &Utf8Path {
        &self.state
    }

    fn by_policies(&self, path: &EntryPath, says: fn(&Policy, &str, &str) -> bool) -> bool {
        if self.policies.is_empty() {
            return false;
        }
        let project = self.map.project.as_str();
        let whole = format!("{project}/{}", String::from_utf8_lossy(path.as_bytes()));
        self.policies
            .iter()
            .any(|policy| says(policy, &whole, project))
    }
}

/// The policies of the user's own runs and of each hook that is held to one: the copy
/// is the same for all of them.
fn policies(app: &App, project: &Utf8Path) -> Result<Vec<Policy>, Failure> {
    let config = app.config()?;
    let held = config.hook.iter().filter(|(_, hook)| hook.policy.is_some());
    let held = held.map(|(agent, _)| boxery_pin::AgentId(agent.clone()));
    let agents: Vec<_> = held.map(Some).chain([None]).collect();
    let mut policies = Vec::new();
    for agent in &agents {
        let caller = Caller {
            agent: agent.as_ref(),
            folder: project,
            project: Some(project),
        };
        policies.push(InForce::find(app, &config, caller)?.policy);
    }
    Ok(policies)
}

/// What is known of all syncs with `vm`.
fn states(app: &App, vm: &VmName) -> Utf8PathBuf {
    app.env.state_path("sync").join(vm.as_str())
}

/// What is known of the syncs of `project` with `vm`.
pub(super) fn state_folder(app: &App, vm: &VmName, project: &Utf8Path) -> Utf8PathBuf {
    let digest = Digest::of(project.as_str().as_bytes()).to_string();
    states(app, vm).join(&digest[..32])
}

/// Forget all syncs with `vm`: it isn't the machine that it was.
pub(crate) fn forget_states(app: &App, vm: &VmName) -> std::io::Result<()> {
    super::known::gone(std::fs::remove_dir_all(states(app, vm)))
}
