//! Which files of a project its own git settings make git run, or take settings from.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use camino::Utf8Path;

use crate::git::{refused, start};
use crate::{EntryPath, SyncError};

/// The settings that name one.
const SETTINGS: &str =
    r"^(core\.(hookspath|fsmonitor|attributesfile)|include\.path|includeif\..*\.path)$";

/// The files and folders of the project `root` that git runs or takes settings from:
/// the folder of `core.hooksPath`, and files that the configuration includes.
pub fn run_by_git(root: &Utf8Path) -> Result<Vec<EntryPath>, SyncError> {
    let is_top = |folder: &&Utf8Path| folder.join(".git").as_std_path().symlink_metadata().is_ok();
    let Some(top) = root.ancestors().find(is_top) else {
        return Ok(Vec::new());
    };
    let words = ["config", "-z", "--type=path", "--get-regexp", SETTINGS];
    let output = start(root, &words)?;
    // None set is exit status 1.
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(refused(root, &output));
    }
    let mut found = Vec::new();
    for setting in output.stdout.split(|byte| *byte == 0) {
        let value = setting.splitn(2, |byte| *byte == b'\n').nth(1);
        let Some(value) = value.filter(|value| !matches!(*value, b"true" | b"false" | b"")) else {
            continue;
        };
        let value = Path::new(OsStr::from_bytes(value));
        // Hooks begin at the worktree's top, included files at the configuration's folder.
        for base in [top.to_owned(), top.join(".git")] {
            let whole = lexical(&base.as_std_path().join(value));
            let real = whole.canonicalize().ok();
            for path in [Some(whole), real].into_iter().flatten() {
                let inside = path.strip_prefix(root).ok();
                found.extend(inside.and_then(|path| EntryPath::parse(path.as_os_str().as_bytes())));
            }
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// `path` with `.` and `..` taken out.
fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) | Component::Normal(_) => out.push(part),
        }
    }
    out
}
