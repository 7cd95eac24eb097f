//! What can go wrong while trees are read and written.

use std::io;

use camino::Utf8PathBuf;

use crate::EntryPath;

/// A tree that cannot be read or written whole. Callers treat every variant as
/// "unknown", never as "empty".
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The project's folder cannot be entered.
    #[error("cannot read the project `{root}`")]
    Root {
        /// The folder.
        root: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something in the project cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// What.
        path: EntryPath,
        /// What the system said.
        source: io::Error,
    },
    /// The git program cannot be started in a repository.
    #[error("cannot start git, which knows the tracked files of `{root}`")]
    GitMissing {
        /// The project.
        root: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The git program refuses.
    #[error("git cannot list the tracked files of `{root}`: {problem}")]
    Git {
        /// The project.
        root: Utf8PathBuf,
        /// The first line that git wrote.
        problem: String,
    },
}

impl SyncError {
    /// What to do next, where there is something.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::GitMissing { .. } => Some("install git, or make sure it is on PATH"),
            Self::Read { .. } => {
                Some("make it readable, or name it in `.boxeryignore` to leave it out")
            }
            Self::Root { .. } | Self::Git { .. } => None,
        }
    }
}
