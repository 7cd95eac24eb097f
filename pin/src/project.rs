//! Which project a folder belongs to.

use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

/// A project folder on the laptop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its top folder, links resolved: a git worktree's, or the folder itself.
    pub root: Utf8PathBuf,
    /// The git common directory, when it is a repository.
    pub git_common: Option<Utf8PathBuf>,
}

impl Project {
    /// The git worktree that `folder` lies in, else `folder` itself as a
    /// project of its own. Links are resolved.
    pub fn of(folder: &Utf8Path) -> io::Result<Self> {
        let root = folder.canonicalize_utf8()?;
        Ok(find_project(&root)?.unwrap_or(Self {
            root,
            git_common: None,
        }))
    }
}

/// The git worktree that `folder` (links resolved) lies in, found without git.
///
/// An error means that a `.git` on the way can't be read or followed.
pub fn find_project(folder: &Utf8Path) -> io::Result<Option<Project>> {
    for root in folder.ancestors() {
        if let Some(git_common) = git_common(root)? {
            return Ok(Some(Project {
                root: root.to_owned(),
                git_common: Some(git_common),
            }));
        }
    }
    Ok(None)
}

/// The git common directory of the worktree whose top is `root`, links
/// resolved; `None` when `root` isn't the top of a worktree.
pub(crate) fn git_common(root: &Utf8Path) -> io::Result<Option<Utf8PathBuf>> {
    let entry = root.join(".git");
    let Some(found) = absent_as_none(fs::metadata(&entry))? else {
        return Ok(None);
    };
    if found.is_dir() {
        let common = resolve_common(&entry)?;
        // As git does: a `.git` folder without a repository in it is passed by.
        return Ok(is_repository(&entry, &common)?.then_some(common));
    }
    // A linked worktree's or a submodule's `.git` is a file (gitrepository-layout(5)).
    let text = fs::read_to_string(&entry)?;
    let target = text
        .strip_prefix("gitdir: ")
        .map(|rest| rest.trim_end_matches(['\r', '\n']))
        .filter(|rest| !rest.is_empty())
        .ok_or_else(|| {
            invalid(format!(
                "`{entry}` is neither a folder nor a `gitdir:` file"
            ))
        })?;
    resolve_common(&root.join(target)).map(Some)
}

/// The folder that the file `commondir` names, else the git directory itself.
fn resolve_common(git_dir: &Utf8Path) -> io::Result<Utf8PathBuf> {
    let git_dir = git_dir.canonicalize_utf8()?;
    match absent_as_none(fs::read_to_string(git_dir.join("commondir")))? {
        Some(text) => git_dir
            .join(text.trim_end_matches(['\r', '\n']))
            .canonicalize_utf8(),
        None => Ok(git_dir),
    }
}

fn is_repository(git_dir: &Utf8Path, common: &Utf8Path) -> io::Result<bool> {
    let head = absent_as_none(fs::symlink_metadata(git_dir.join("HEAD")))?.is_some();
    let objects = absent_as_none(fs::metadata(common.join("objects")))?.is_some();
    Ok(head && objects)
}

/// "No such file" as `None`; every other failure stays one.
fn absent_as_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
