//! Which copies this laptop made, and when each was last used: one small file each.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

use boxery_pin::{PathMap, RemotePath, VmName};
use boxery_sync::Digest;
use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::pair::{forget_states, state_folder};
use super::rules::marker;
use crate::app::App;
use crate::error::Failure;

/// A copy that this laptop made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownCopy {
    /// The project.
    pub(crate) project: Utf8PathBuf,
    /// The copy.
    pub(crate) copy: RemotePath,
    /// What its marker holds.
    pub(crate) marker: String,
}

fn folder(app: &App, vm: &VmName) -> Utf8PathBuf {
    app.env.state_path("copies").join(vm.as_str())
}

fn file(app: &App, vm: &VmName, copy: &RemotePath) -> Utf8PathBuf {
    let digest = Digest::of(copy.as_str().as_bytes()).to_string();
    folder(app, vm).join(&digest[..32])
}

/// Note that the copy of `map` on `vm` is used now. What can't be noted is only not
/// listed.
pub(crate) fn note(app: &App, vm: &VmName, map: &PathMap) -> Result<(), Failure> {
    let known = KnownCopy {
        project: map.project.clone(),
        copy: map.folder.clone(),
        marker: marker(app, map)?,
    };
    let path = file(app, vm, &map.folder);
    if read(&path).as_ref() == Some(&known) {
        File::options()
            .append(true)
            .open(&path)?
            .set_modified(SystemTime::now())?;
        return Ok(());
    }
    let folder = folder(app, vm);
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)?;
    let mut new = tempfile::NamedTempFile::new_in(&folder)?;
    new.write_all(&serde_json::to_vec(&known)?)?;
    new.persist(&path)?;
    Ok(())
}

/// Whether this laptop ever made or used the copy of `map` on `vm`.
pub(crate) fn is_known(app: &App, vm: &VmName, map: &PathMap) -> bool {
    read(&file(app, vm, &map.folder)).is_some()
}

fn read(path: &Utf8PathBuf) -> Option<KnownCopy> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// The copies on `vm` that this laptop made, each with the second of its last use.
pub(crate) fn list(app: &App, vm: &VmName) -> io::Result<Vec<(KnownCopy, u64)>> {
    let entries = match folder(app, vm).read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.into_path();
        let used = path.metadata().and_then(|found| found.modified());
        let used = used
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        if let Some(known) = read(&path) {
            found.push((known, used.map_or(0, |time| time.as_secs())));
        }
    }
    found.sort_by(|(a, _), (b, _)| a.copy.cmp(&b.copy));
    Ok(found)
}

/// Forget a copy that is gone, and the syncs with it.
pub(crate) fn forget(
    app: &App,
    vm: &VmName,
    copy: &RemotePath,
    project: &Utf8Path,
) -> io::Result<()> {
    gone(fs::remove_dir_all(state_folder(app, vm, project)))?;
    gone(fs::remove_file(file(app, vm, copy)))
}

/// Forget every copy on `vm`, and all syncs with it.
pub(crate) fn forget_all(app: &App, vm: &VmName) -> io::Result<()> {
    forget_states(app, vm)?;
    gone(fs::remove_dir_all(folder(app, vm)))
}

pub(super) fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
