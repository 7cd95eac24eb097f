//! What of a shell outlives its call: an agent's session goes on in the folder in
//! which its last command ended, with what that had exported.
//!
//! Each session and each of its subagents has a file, replaced at once when a
//! command has ended. Commands that run at the same time see it as it was when
//! they began, wait for nobody, and the one that ends last is what stays.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use boxery_wire::{Blob, Keep, Run, RunId, StateId};
use serde::{Deserialize, Serialize};

use crate::folder;
use crate::keep::{Told, Variables};

/// The folder of the files, beside that of the runs.
const SESSIONS: &str = "sessions";
/// For how long a session is remembered that runs nothing.
const MEMORY: Duration = Duration::from_hours(30 * 24);
/// More changed variables than this are not kept.
const MOST: usize = 1024 * 1024;

/// Variables that every shell makes for itself, or we for each run.
const ITS_OWN: &[&[u8]] = &[b"_", b"PWD", b"OLDPWD", b"SHLVL", b"BOXERY_RUN"];

/// What the file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    /// The folder that the last call asked for: a call that asks for another one
    /// was moved there by the agent.
    asked: Option<Blob>,
    /// Where its command ended, if not there.
    folder: Option<Blob>,
    /// What commands exported, or took away.
    changes: BTreeMap<Blob, Option<Blob>>,
}

/// The session of one run.
#[derive(Debug)]
pub(crate) struct Session {
    files: PathBuf,
    keep: Keep,
    run: RunId,
    asked: Option<Blob>,
    state: State,
    /// The environment that the command was given.
    given: Variables,
}

impl Session {
    /// The state that `run` begins with; `None` if it has no session. `folder` is
    /// the run's own.
    pub(crate) fn open(folder: &Path, run: &Run) -> Option<Self> {
        let keep = run.keep?;
        let files = folder.parent()?.parent()?.join(SESSIONS);
        let state = read(&files, keep.key).or_else(|| {
            let state = read(&files, keep.from?)?;
            // From now on it has its own.
            drop(write(&files, keep.key, run.run, &state));
            Some(state)
        });
        Some(Self {
            files,
            keep,
            run: run.run,
            asked: run.cwd.clone(),
            state: state.unwrap_or_default(),
            given: Variables::new(),
        })
    }

    /// Whether variables are kept.
    pub(crate) fn keeps_exports(&self) -> bool {
        self.keep.exports
    }

    /// The folder to begin in, unless the agent moved to the one that it asks for.
    pub(crate) fn folder(&self) -> Option<Blob> {
        let stays = self.keep.folder && self.state.asked == self.asked;
        self.state.folder.clone().filter(|_| stays)
    }

    /// The folder is no more.
    pub(crate) fn forget_folder(&mut self) {
        self.state.folder = None;
    }

    /// Put what was exported into the environment of the command, and remember that.
    pub(crate) fn change(&mut self, environment: &mut Variables) {
        if self.keep.exports {
            for (name, value) in &self.state.changes {
                match value {
                    Some(value) => drop(environment.insert(name.0.clone(), value.0.clone())),
                    None => drop(environment.remove(&name.0)),
                }
            }
            self.given.clone_from(environment);
        }
    }

    /// Keep what the command told at its end, which began in the folder `began`.
    pub(crate) fn end(&mut self, told: Told, began: &Path) -> io::Result<()> {
        let asked = self.asked.as_ref().is_some_and(|asked| {
            let asked = Path::new(std::ffi::OsStr::from_bytes(asked));
            fs::canonicalize(asked).is_ok_and(|asked| asked.as_os_str().as_bytes() == told.folder)
        });
        self.state.folder = if asked {
            None
        } else {
            // Under the name that it was entered by.
            let same = fs::canonicalize(began)
                .is_ok_and(|began| began.as_os_str().as_bytes() == told.folder);
            Some(if same {
                began.as_os_str().as_bytes().into()
            } else {
                told.folder.into()
            })
        };
        self.state.asked.clone_from(&self.asked);
        if let Some(exported) = told.exported {
            self.take(exported);
        }
        write(&self.files, self.keep.key, self.run, &self.state)
    }

    fn take(&mut self, exported: Variables) {
        let mut changes = self.state.changes.clone();
        let is_own = |name: &[u8]| ITS_OWN.contains(&name);
        for name in self.given.keys() {
            if !is_own(name) && !exported.contains_key(name) {
                changes.insert(name.clone().into(), None);
            }
        }
        for (name, value) in exported {
            if !is_own(&name) && self.given.get(&name) != Some(&value) {
                changes.insert(name.into(), Some(value.into()));
            }
        }
        let size = |(name, value): (&Blob, &Option<Blob>)| {
            name.len() + value.as_ref().map_or(0, |value| value.len())
        };
        if changes.iter().map(size).sum::<usize>() <= MOST {
            self.state.changes = changes;
        }
    }
}

/// What is kept under a key; a file that can't be read is none.
fn read(files: &Path, key: StateId) -> Option<State> {
    let bytes = fs::read(files.join(key.to_string())).ok()?;
    postcard::from_bytes(&bytes).ok()
}

fn write(files: &Path, key: StateId, run: RunId, state: &State) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(files) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let bytes = postcard::to_allocvec(state).map_err(io::Error::other)?;
    // Two runs of one session may end at once.
    folder::replace_by(files, &key.to_string(), &format!("{key}.{run}"), &bytes)
}

/// Forget sessions that ran nothing for long, and files that never got their name.
pub(crate) fn forget(state: &Path) {
    for entry in fs::read_dir(state.join(SESSIONS)).into_iter().flatten() {
        let Ok(entry) = entry else { continue };
        let changed = entry.metadata().and_then(|metadata| metadata.modified());
        let age = changed.map(|time| SystemTime::now().duration_since(time));
        if matches!(age, Ok(Ok(age)) if age > MEMORY) {
            // What can't be removed is tried again by the next helper.
            drop(fs::remove_file(entry.path()));
        }
    }
}
