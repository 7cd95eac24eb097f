//! The folder in which every run of a connection gets a group.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use rustix::io::Errno;
use rustix::process::{Pid, getuid, test_kill_process};
use tokio::time::timeout;

use super::one::{Group, PREFIX, put};
use super::{fork, place};
use crate::children::Children;
use crate::{clock, machine};

/// The group of helpers and their supervisors, where those aren't root's.
pub(super) const HELPERS: &str = "helpers";
/// What the folder is called, before the number of its user.
const PARENT: &str = "boxery-";
/// How long `sudo` may take.
const SUDO: Duration = Duration::from_secs(5);
/// Where it is.
const PATH: &[u8] = b"/usr/bin:/bin:/usr/local/bin:/run/wrappers/bin";
/// That `sudo` doesn't, in the folder of runs: it isn't asked again for a day, since it
/// notes each refusal.
const NO_SUDO: &str = "no-sudo";
const MEMORY: Duration = Duration::from_hours(24);

pub(super) fn is_parent(path: &Path) -> bool {
    let name = path.file_name().map(OsStr::as_bytes);
    name.is_some_and(|name| name.starts_with(PARENT.as_bytes()))
}

/// A folder of groups that this process may make and remove.
#[derive(Debug)]
pub(crate) struct Groups {
    parent: PathBuf,
    next: Cell<u32>,
}

impl Groups {
    /// Make the folder, by `sudo` where this isn't root; `program` is this one, `state`
    /// the folder of runs.
    pub(crate) async fn open(program: &Path, state: &Path, children: &Children) -> Option<Self> {
        let parent = if getuid().is_root() {
            make(std::process::id(), 0, 0).ok()?
        } else {
            by_sudo(program, state, children).await?
        };
        let groups = Self {
            parent,
            next: Cell::new(0),
        };
        groups.sweep();
        Some(groups)
    }

    /// Make a group and start `command` in it.
    pub(crate) fn start(
        &self,
        command: impl Fn(Option<&Path>) -> io::Result<Command>,
    ) -> io::Result<(u32, Option<Group>)> {
        let Some(group) = self.make() else {
            return Ok((command(None)?.spawn()?.id(), None));
        };
        let mut starting = command(Some(group.path()))?;
        let pid = match fork::spawn_into(group.path(), &mut starting) {
            Ok(pid) => pid,
            // It enters by itself.
            Err(_) => command(Some(group.path()))?.spawn()?.id(),
        };
        Ok((pid, Some(group)))
    }

    fn make(&self) -> Option<Group> {
        loop {
            let number = self.next.replace(self.next.get() + 1);
            // Never the name of an earlier one, which may be noted somewhere.
            let name = format!(
                "{PREFIX}{}-{}-{number}",
                std::process::id(),
                clock::running()
            );
            match fs::create_dir(self.parent.join(&name)) {
                Ok(()) => return Group::at(self.parent.join(name)),
                // Another helper removed it when it was empty.
                Err(error) if error.kind() == io::ErrorKind::NotFound && getuid().is_root() => {
                    fs::create_dir(&self.parent).ok()?;
                }
                Err(_) => return None,
            }
        }
    }

    /// Remove the groups of helpers that were killed, as far as nobody is in them.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.parent).into_iter().flatten().flatten() {
            if let Some(group) = Group::at(entry.path())
                && (is_orphan(&entry.file_name())
                    || entry.metadata().is_ok_and(|metadata| is_old(&metadata)))
            {
                drop(group.remove());
            }
        }
    }

    /// Remove the groups of this process's runs that are over; whether none is left.
    pub(crate) fn remove_own(&self) -> bool {
        let own = format!("{PREFIX}{}-", std::process::id());
        let entries = fs::read_dir(&self.parent).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| {
            let name = entry.file_name();
            name.as_bytes().starts_with(own.as_bytes())
        });
        let groups = ours.filter_map(|entry| Group::at(entry.path()));
        let mut none_left = true;
        for group in groups {
            none_left &= group.remove().is_ok();
        }
        none_left
    }

    /// This connection is over: remove the folder, unless another one has groups in it.
    pub(crate) fn close(&self, program: &Path) {
        if getuid().is_root() {
            remove_empty(&self.parent);
            return;
        }
        // The group of a login is removed with what is below it.
        let base = self.parent.parent().and_then(Path::extension);
        let alone = fs::read_to_string(self.parent.join(HELPERS).join("cgroup.procs"));
        if base.is_none_or(|kind| kind != "scope") && alone.is_ok_and(|it| it.lines().count() == 1)
        {
            let own = std::process::id().to_string();
            if let Some(mut sudo) = sudo(program, &["group-close", &own]) {
                drop(sudo.status());
            }
        }
    }
}

/// Whether the helper that made the group of this name is gone.
fn is_orphan(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
    let maker = number.and_then(|number| number.split('-').next()?.parse().ok());
    maker
        .and_then(Pid::from_raw)
        .is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// A group that was made a moment ago may be about to be entered.
fn is_old(metadata: &fs::Metadata) -> bool {
    let age = metadata
        .modified()
        .map(|made| SystemTime::now().duration_since(made));
    matches!(age, Ok(Ok(age)) if age > Duration::from_mins(1))
}

/// Remove the folder of groups if none is left; only root may.
pub(super) fn remove_empty(parent: &Path) {
    if getuid().is_root() && is_parent(parent) {
        // It fails where somebody has a group in it, and that is as it should be.
        drop(fs::remove_dir(parent));
    }
}

fn sudo(program: &Path, words: &[&str]) -> Option<Command> {
    let mut command = Command::new(machine::find("sudo", PATH)?);
    command
        .args(["-n", "--"])
        .arg(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Some(command)
}

async fn by_sudo(program: &Path, state: &Path, children: &Children) -> Option<PathBuf> {
    let own = std::process::id();
    let uid = getuid().as_raw();
    let base = place::of(own).into_iter().next()?;
    let refused = state.join(NO_SUDO);
    let noted = fs::metadata(&refused).and_then(|metadata| metadata.modified());
    let age = noted.map(|noted| SystemTime::now().duration_since(noted));
    if matches!(age, Ok(Ok(age)) if age < MEMORY) || rustix::thread::no_new_privs().unwrap_or(true)
    {
        return None;
    }
    let pid = sudo(program, &["group-open", &own.to_string()])?
        .spawn()
        .ok()?
        .id();
    let status = timeout(SUDO, children.watch(pid)).await.ok()?.ok()?;
    if status.exit_status() != Some(0) {
        // Where it can't be noted it is asked again.
        drop(fs::File::create(refused));
        return None;
    }
    let parent = base.join(format!("{PARENT}{uid}"));
    let ours = fs::metadata(&parent).is_ok_and(|metadata| metadata.uid() == uid);
    ours.then_some(parent)
}

/// Make the folder of groups of that user below the group of the process `pid`.
fn make(pid: u32, uid: u32, gid: u32) -> io::Result<PathBuf> {
    let mut last = io::ErrorKind::NotFound.into();
    for base in place::of(pid) {
        let parent = base.join(format!("{PARENT}{uid}"));
        match make_folder(&parent, uid, gid) {
            Ok(()) => return Ok(parent),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn make_folder(path: &Path, uid: u32, gid: u32) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    if uid != 0 {
        chown(path, Some(uid), Some(gid))?;
        chown(path.join("cgroup.procs"), Some(uid), Some(gid))?;
    }
    Ok(())
}

/// `boxery-helper group-open PID`, as root for the user of that process: make the
/// folder, and move the process into it.
pub(crate) fn open(pid: &str) -> io::Result<()> {
    let (pid, owner) = user_of(pid)?;
    let parent = make(pid, owner.uid(), owner.gid())?;
    let helpers = parent.join(HELPERS);
    make_folder(&helpers, owner.uid(), owner.gid())?;
    put(&helpers.join("cgroup.procs"), &pid.to_string())
}

/// `boxery-helper group-close PID`: move the process out again and remove the folder,
/// if nobody else is in it.
pub(crate) fn close(pid: &str) -> io::Result<()> {
    let (pid, owner) = user_of(pid)?;
    let name = format!("{PARENT}{}", owner.uid());
    for helpers in place::of(pid) {
        let Some(parent) = helpers.parent().filter(|parent| parent.ends_with(&name)) else {
            continue;
        };
        let base = parent
            .parent()
            .unwrap_or(Path::new("/"))
            .join("cgroup.procs");
        // This process and the `sudo` that started it were born in there, too.
        let sudo = rustix::process::getppid().map_or(0, Pid::as_raw_pid);
        for leaving in [pid.to_string(), sudo.to_string(), "0".to_owned()] {
            put(&base, &leaving)?;
        }
        fs::remove_dir(&helpers)?;
        return fs::remove_dir(parent);
    }
    Ok(())
}

/// A process, which has to be of the user who has `sudo` ask.
fn user_of(pid: &str) -> io::Result<(u32, fs::Metadata)> {
    let number: u32 = pid.parse().map_err(io::Error::other)?;
    let owner = fs::metadata(format!("/proc/{number}"))?;
    let mut variables = crate::environment().into_iter();
    let asking = variables.find(|(name, _)| name == b"SUDO_UID");
    let asking = asking.and_then(|(_, uid)| std::str::from_utf8(&uid).ok()?.parse().ok());
    if asking != Some(owner.uid()) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok((number, owner))
}
