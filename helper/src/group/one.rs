//! The group of one run.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, getuid, kill_process};

use super::groups::{HELPERS, is_parent};
use crate::folder;

/// What a run's group is called, before its number.
pub(super) const PREFIX: &str = "run-";

/// How often and after which pause a group is looked at again that is being ended.
const ATTEMPTS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);
/// The note of a run's group, in the run's folder.
const NOTE: &str = "group";

/// Whether this is the folder of a group of ours, as the note of one names it.
fn is_group(path: &Path) -> bool {
    let name = path.file_name().map(OsStr::as_bytes);
    name.is_some_and(|name| name.starts_with(PREFIX.as_bytes()))
        && path.parent().is_some_and(is_parent)
}

/// A group, by its folder.
#[derive(Debug, Clone)]
pub(crate) struct Group(PathBuf);

impl Group {
    /// The group in that folder.
    pub(crate) fn at(path: PathBuf) -> Option<Self> {
        is_group(&path).then_some(Self(path))
    }

    /// The group of the run with this folder, if it is noted.
    pub(crate) fn of(run: &Path) -> Option<Self> {
        let path = fs::read(run.join(NOTE)).ok()?;
        Self::at(PathBuf::from(OsStr::from_bytes(&path)))
    }

    /// Note it in a run's folder, for helpers to come.
    pub(crate) fn note(&self, run: &Path) {
        // Without a note the group does its work all the same.
        drop(folder::replace(run, NOTE, self.0.as_os_str().as_bytes()));
    }

    /// Note that the run has none any more.
    pub(crate) fn forget(run: &Path) {
        drop(fs::remove_file(run.join(NOTE)));
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Be in it, also where this process wasn't started in it.
    pub(crate) fn enter(&self) -> io::Result<()> {
        if self.members().contains(&getpid()) {
            return Ok(());
        }
        put(&self.0.join("cgroup.procs"), "0")
    }

    /// End everybody in it but this process, which is in it no more then.
    pub(crate) fn end_others(&self) -> io::Result<()> {
        self.leave()?;
        self.end()
    }

    /// End everybody in it.
    pub(super) fn end(&self) -> io::Result<()> {
        let kill = self.0.join("cgroup.kill");
        if kill.exists() {
            return put(&kill, "1");
        }
        // Frozen, nobody forks while the list is read.
        let (file, freeze, thaw) = if self.0.join("cgroup.freeze").exists() {
            ("cgroup.freeze", "1", "0")
        } else {
            ("freezer.state", "FROZEN", "THAWED")
        };
        put(&self.0.join(file), freeze)?;
        for pid in self.members() {
            // Who is gone already is as good.
            let _: rustix::io::Result<()> = kill_process(pid, Signal::KILL);
        }
        put(&self.0.join(file), thaw)
    }

    /// End everybody in it and remove it. What the kernel doesn't end in this time stays.
    pub(crate) async fn finish(&self) {
        for _ in 0..ATTEMPTS {
            if self.remove().is_ok() || self.end().is_err() {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Remove it. Fails while anybody is in it.
    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Leave it and remove it, which nobody else does any more; then all of them, if it
    /// was the last.
    pub(crate) fn give_up(&self) {
        // What is left of it goes with the next helper, or at the latest with the machine.
        if self.leave().is_ok() && self.remove().is_ok() {
            super::groups::remove_empty(self.0.parent().unwrap_or(Path::new("/")));
        }
    }

    fn leave(&self) -> io::Result<()> {
        if !self.members().contains(&getpid()) {
            return Ok(());
        }
        let parent = self.0.parent().unwrap_or(Path::new("/"));
        let helpers = parent.join(HELPERS);
        let refuge = if helpers.exists() {
            &helpers
        } else if getuid().is_root() {
            // Where the helper began: the folder of groups is removed when it is empty.
            parent.parent().unwrap_or(parent)
        } else {
            parent
        };
        put(&refuge.join("cgroup.procs"), "0")
    }

    fn members(&self) -> Vec<Pid> {
        let text = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        let pids = text.lines().filter_map(|line| line.parse().ok());
        pids.filter_map(Pid::from_raw).collect()
    }
}

/// Say something to the kernel.
pub(super) fn put(file: &Path, text: &str) -> io::Result<()> {
    let mut file = File::options().write(true).open(file)?;
    file.write_all(text.as_bytes())
}
