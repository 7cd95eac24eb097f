//! Helpers of other builds, beside this one: removed once nothing uses them.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

/// A file so young may be an upload that is about to be started.
const YOUNG: Duration = Duration::from_hours(1);

/// Says, for as long as it is held, that this program's file is in use.
#[derive(Debug)]
pub(crate) struct InUse(#[expect(dead_code, reason = "held open for its lock")] Option<File>);

/// Hold this program's file, if it can be found.
pub(crate) fn hold(own: &Path) -> InUse {
    let file = File::open(own).ok();
    let locked = file.filter(|file| flock(file, FlockOperation::NonBlockingLockShared).is_ok());
    InUse(locked)
}

/// Remove the files of helpers that no process uses.
pub(crate) fn remove(own: &Path) {
    for path in beside(own) {
        if path != own {
            // Another helper may be at the same work.
            drop(remove_unused(&path));
        }
    }
}

/// Remove them all, this program too; who runs goes on.
pub(crate) fn remove_all(own: &Path) {
    for path in beside(own) {
        drop(fs::remove_file(path));
    }
}

/// The helpers in the folder of this one.
fn beside(own: &Path) -> Vec<PathBuf> {
    // Beside a program of another name lies nothing of ours.
    let (true, Some(folder)) = (is_helper(own), own.parent()) else {
        return Vec::new();
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| is_helper(path)).collect()
}

fn is_helper(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let digits = name.and_then(|name| name.strip_prefix("helper-"));
    // Or what came of one when sending it broke off.
    let digits = digits.map(|digits| digits.split(".part-").next().unwrap_or(digits));
    digits.is_some_and(|digits| {
        digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn remove_unused(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let age = metadata.modified()?.elapsed().unwrap_or_default();
    if metadata.is_file() && age > YOUNG {
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        fs::remove_file(path)?;
    }
    Ok(())
}
