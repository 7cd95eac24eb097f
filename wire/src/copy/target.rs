//! Where a copy goes, as `cp` and `scp` have it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::{Kind, Misplaced};

/// The path that a copy of something of this kind gets: below `path` under `name` if
/// that is a folder, else `path` itself, which need not be there, but its folder must.
pub fn find_target(path: &Path, name: Option<&OsStr>, kind: Kind) -> Result<PathBuf, Misplaced> {
    let wants_folder = path.as_os_str().as_bytes().ends_with(b"/");
    let target = match path.metadata() {
        Ok(found) if found.is_dir() => match name {
            Some(name) => path.components().collect::<PathBuf>().join(name),
            // By its own name, since the target itself may be no link.
            None => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
        },
        Ok(_) => path.to_owned(),
        Err(error) if is_absent(&error) => {
            let bare: PathBuf = path.components().collect();
            if wants_folder && bare.exists() {
                return Err(Misplaced::NoFolder);
            }
            if wants_folder && kind == Kind::Other {
                return Err(Misplaced::Absent);
            }
            bare
        }
        Err(error) => return Err(Misplaced::System(error.raw_os_error().unwrap_or(0))),
    };
    match (target.symlink_metadata(), kind) {
        (Ok(found), Kind::Other) if found.is_dir() => return Err(Misplaced::FolderThere),
        (Ok(found), Kind::Folder) if !found.is_dir() => return Err(Misplaced::FileThere),
        (Ok(_) | Err(_), Kind::Folder | Kind::Other) => {}
    }
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
            Err(Misplaced::ParentGone)
        }
        Some(_) | None => Ok(target),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
