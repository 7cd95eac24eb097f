//! Where runs live: one private folder for each, named by the run.
//!
//! Invariant: making a run's folder is what claims it. Who finds it made starts
//! nothing.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use boxery_wire::{Loss, RunId};
use rustix::io::Errno;

use crate::group::Group;
use crate::{clock, session};

/// The socket of a run's supervisor, in the run's folder.
const CONTROL: &str = "control";
/// What tells, once the supervisor is gone, that it ended in order.
const DONE: &str = "done";
/// A link that holds the id of the VM's boot in which the run began.
const BOOT: &str = "boot";
/// When the run was claimed, by [`clock::running`].
const BEGUN: &str = "begun";
/// For how long its supervisor may still come, in ms.
const BEGINNING: u64 = 5000;
/// For how long an ended run is remembered.
const MEMORY: Duration = Duration::from_hours(7 * 24);

/// Every folder that may hold runs, the best one first.
#[derive(Debug, Clone)]
pub(crate) struct Folders(Vec<PathBuf>);

/// Whose turn it is to start a run.
#[derive(Debug)]
pub(crate) enum Claim {
    /// Ours: the folder is new.
    New(PathBuf),
    /// Somebody's before: the folder was there.
    Old,
}

impl Folders {
    /// The folders of the user with this home.
    pub(crate) fn new(home: &Path) -> Self {
        let own = format!("boxery-{}", rustix::process::getuid().as_raw());
        let shared = ["/var/tmp", "/tmp", "/dev/shm"];
        let mut all = vec![home.join(".local/state/boxery/helper")];
        all.extend(shared.iter().map(|folder| Path::new(folder).join(&own)));
        Self(all)
    }

    /// The first folder that can be used, or why none can.
    pub(crate) fn open(&self) -> Result<PathBuf, String> {
        let mut failures = Vec::new();
        for folder in &self.0 {
            match prepare(folder) {
                Ok(()) => return Ok(folder.clone()),
                Err(error) => failures.push(format!("{}: {error}", folder.display())),
            }
        }
        Err(failures.join("; "))
    }

    /// A run's folder, wherever it is.
    pub(crate) fn find(&self, run: RunId) -> Option<PathBuf> {
        self.0
            .iter()
            .map(|folder| folder.join("runs").join(run.to_string()))
            .find(|folder| is_private(folder).is_ok())
    }

    /// Make a run's folder, unless there is one.
    pub(crate) fn claim(&self, run: RunId) -> Result<Claim, String> {
        if self.find(run).is_some() {
            return Ok(Claim::Old);
        }
        let folder = self.open()?.join("runs").join(run.to_string());
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => {
                if let Some(boot) = boot() {
                    // Without it the run's loss has no reason, and that is all.
                    std::os::unix::fs::symlink(boot, folder.join(BOOT)).ok();
                }
                // Without it the run is taken for one that was broken until it can be
                // reached.
                drop(replace(
                    &folder,
                    BEGUN,
                    clock::running().to_string().as_bytes(),
                ));
                Ok(Claim::New(folder))
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Claim::Old),
            Err(error) => Err(format!("{}: {error}", folder.display())),
        }
    }

    /// Every run that is remembered.
    pub(crate) fn runs(&self) -> Vec<(RunId, PathBuf)> {
        self.0
            .iter()
            .filter(|folder| is_private(folder).is_ok())
            .filter_map(|folder| fs::read_dir(folder.join("runs")).ok())
            .flat_map(Iterator::flatten)
            .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
            .collect()
    }

    /// How many runs have a supervisor.
    pub(crate) fn running(&self) -> u32 {
        let runs = self.runs().into_iter();
        let running = runs.filter(|(_, folder)| connect(folder).is_ok() || is_beginning(folder));
        u32::try_from(running.count()).unwrap_or(u32::MAX)
    }

    /// The groups of runs whose supervisors were killed, with the folders of those.
    pub(crate) fn orphaned(&self) -> Vec<(PathBuf, Group)> {
        let runs = self.runs().into_iter();
        let noted = runs.filter_map(|(_, folder)| Some((Group::of(&folder)?, folder)));
        noted
            .filter(|(_, folder)| connect(folder).is_err() && !is_beginning(folder))
            .map(|(group, folder)| (folder, group))
            .collect()
    }

    /// Remove every folder that is ours, and what it leaves empty.
    pub(crate) fn remove(&self) {
        for folder in self.0.iter().filter(|folder| is_private(folder).is_ok()) {
            // What can't be removed is another user's or a broken disk's.
            drop(fs::remove_dir_all(folder));
            if let Some(parent) = folder.parent().filter(|path| path.ends_with("boxery")) {
                drop(fs::remove_dir(parent));
            }
        }
    }

    /// Forget runs that ended long ago.
    pub(crate) fn forget(&self) {
        for (_, folder) in self.runs() {
            let changed = fs::metadata(&folder).and_then(|metadata| metadata.modified());
            let age = changed.map(|time| SystemTime::now().duration_since(time));
            if matches!(age, Ok(Ok(age)) if age > MEMORY) && connect(&folder).is_err() {
                // What can't be removed is tried again by the next helper.
                drop(fs::remove_dir_all(&folder));
            }
        }
        for folder in &self.0 {
            if is_private(folder).is_ok() {
                session::forget(folder);
            }
        }
    }
}

/// Make the folder, or see that it is ours alone and can be written.
fn prepare(folder: &Path) -> io::Result<()> {
    if let Some(parent) = folder.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)?;
    }
    for folder in [folder, &folder.join("runs")] {
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        is_private(folder)?;
    }
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK)?;
    let space = rustix::fs::statvfs(folder)?;
    if space.f_bavail == 0 || (space.f_files > 0 && space.f_favail == 0) {
        return Err(Errno::NOSPC.into());
    }
    Ok(())
}

/// A folder that somebody else owns or may enter holds nothing of ours.
fn is_private(folder: &Path) -> io::Result<Metadata> {
    let metadata = fs::symlink_metadata(folder)?;
    let ours = metadata.uid() == rustix::process::getuid().as_raw();
    if !metadata.is_dir() || !ours || metadata.mode() & 0o077 != 0 {
        return Err(io::Error::other("it isn't a private folder of this user"));
    }
    Ok(metadata)
}

/// Do something in a folder: the path of a socket may be too long, its name never is.
fn within<T>(folder: &Path, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = std::env::current_dir();
    std::env::set_current_dir(folder)?;
    let done = act();
    if let Ok(before) = before {
        std::env::set_current_dir(before)?;
    }
    done
}

/// Reach the supervisor of a run; only one of the same user is spoken to.
pub(crate) fn connect(folder: &Path) -> io::Result<UnixStream> {
    let stream = within(folder, || UnixStream::connect(CONTROL))?;
    is_own(&stream)?;
    Ok(stream)
}

/// Whether the other end is of the same user.
pub(crate) fn is_own(stream: &UnixStream) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid != rustix::process::getuid() {
        return Err(Errno::PERM.into());
    }
    Ok(())
}

/// Whether the run was claimed a moment ago and its supervisor may still come.
pub(crate) fn is_beginning(folder: &Path) -> bool {
    let begun = fs::read_to_string(folder.join(BEGUN)).ok();
    let is_young = begun
        .and_then(|begun| begun.parse().ok())
        .is_some_and(|begun| is_young(begun, clock::running()));
    is_young && !folder.join(CONTROL).exists() && !folder.join(DONE).exists()
}

/// Whether what was begun at that moment may still be at it, by a clock that nobody sets;
/// one that goes from the beginning again is another boot's.
fn is_young(begun: u64, now: u64) -> bool {
    now.checked_sub(begun).is_some_and(|age| age < BEGINNING)
}

/// Be the supervisor that [`connect`] reaches.
pub(crate) fn listen(folder: &Path) -> io::Result<UnixListener> {
    let listener = within(folder, || UnixListener::bind(CONTROL))?;
    // Left, it says nothing that the socket doesn't.
    drop(fs::remove_file(folder.join(BEGUN)));
    Ok(listener)
}

/// Note that the supervisor of this run is over, and why nothing more is to be had.
pub(crate) fn finish(folder: &Path, loss: Loss) -> io::Result<()> {
    let text = match loss {
        Loss::GracePassed => "grace passed",
        Loss::Acknowledged => "acknowledged",
        Loss::Unknown | Loss::Broken | Loss::Restarted => return Ok(()),
    };
    replace(folder, DONE, text.as_bytes())?;
    for name in [CONTROL, BOOT] {
        match fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Why a run without a supervisor can't be attached to.
pub(crate) fn loss(folder: &Path) -> Loss {
    match fs::read(folder.join(DONE)).as_deref() {
        Ok(b"grace passed") => Loss::GracePassed,
        Ok(b"acknowledged") => Loss::Acknowledged,
        Ok(_) | Err(_) => match (fs::read_link(folder.join(BOOT)), boot()) {
            (Ok(began), Some(now)) if began != Path::new(&now) => Loss::Restarted,
            (Ok(_) | Err(_), _) => Loss::Broken,
        },
    }
}

/// The id of the VM's boot; none where the kernel doesn't say it.
fn boot() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Put a small file in place at once.
pub(crate) fn replace(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    replace_by(folder, name, name, bytes)
}

/// The same where others may do it, too: `own` is a name that only the caller has.
pub(crate) fn replace_by(folder: &Path, name: &str, own: &str, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let new = folder.join(format!("{own}.new"));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(bytes)?;
    fs::rename(&new, folder.join(name))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::at_once(7000, 7000, true)]
    #[case::a_moment_ago(7000, 11_999, true)]
    #[case::long_ago(7000, 12_000, false)]
    #[case::before_the_machine_was_started_again(7000, 6999, false)]
    fn a_run_begins_for_a_moment_only(#[case] begun: u64, #[case] now: u64, #[case] want: bool) {
        assert_eq!(is_young(begun, now), want);
    }
}
