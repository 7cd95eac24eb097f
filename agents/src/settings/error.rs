//! Why a settings file is left alone.

use std::io;

use camino::Utf8PathBuf;

/// A settings file that is not edited. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// It exists and can't be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It can't be written.
    #[error("cannot write `{path}`")]
    Write {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Not a regular file, or links that lead nowhere.
    #[error("`{path}` {problem}")]
    Place {
        /// The file.
        path: Utf8PathBuf,
        /// What it is instead, as a clause.
        problem: String,
    },
    /// Its owner made it read-only.
    #[error("`{path}` is read-only")]
    ReadOnly {
        /// The file.
        path: Utf8PathBuf,
    },
    /// The agent itself would not read it.
    #[error("`{path}` is not what the agent reads: {problem}")]
    Content {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong, with its place.
        problem: String,
    },
    /// Another program wrote it meanwhile.
    #[error("`{path}` was changed by another program meanwhile")]
    Changed {
        /// The file.
        path: Utf8PathBuf,
    },
    /// The edit could not be taken back exactly.
    #[error("`{path}` can't be edited in a way that could be undone exactly")]
    NotReversible {
        /// The file.
        path: Utf8PathBuf,
    },
}

impl SettingsError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read { .. } | Self::Write { .. } => {
                "nothing was changed; see who may read and write the file and its folder"
            }
            Self::Place { .. } => "nothing was changed; give another file with --file",
            Self::ReadOnly { .. } => {
                "nothing was changed; make it writable, or add the entry of `boxery hook print` by hand"
            }
            Self::Content { .. } => {
                "nothing was changed; correct the file first: an agent drops one that it can't read, with every hook in it"
            }
            Self::Changed { .. } => "nothing was changed; try again",
            Self::NotReversible { .. } => {
                "nothing was changed; add the entry of `boxery hook print` by hand"
            }
        }
    }
}
