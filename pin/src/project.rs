//! Which project a folder belongs to.

use camino::{Utf8Path, Utf8PathBuf};

/// A project folder on the laptop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its top folder, links resolved: a git worktree's, or the folder itself.
    pub root: Utf8PathBuf,
    /// The git common directory, when it is a repository.
    pub git_common: Option<Utf8PathBuf>,
}

/// The git worktree that `folder` (links resolved) lies in, found without git.
pub fn find_project(folder: &Utf8Path) -> std::io::Result<Option<Project>> {
    let _ = folder;
    Ok(None)
}
