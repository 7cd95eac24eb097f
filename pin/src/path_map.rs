//! Which folder on the VM corresponds to a folder on the laptop.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use crate::RemotePath;

/// A project and its copy on one VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathMap {
    /// The project's top folder on the laptop, links resolved.
    pub project: Utf8PathBuf,
    /// The copy's top folder on the VM, as commands see it.
    pub copy: RemotePath,
    /// The folder of the VM's disk that it is.
    pub folder: RemotePath,
}

/// Where a project's copy is seen on a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PathForm {
    /// In a folder of its own below the VM's folder for copies.
    Mapped,
    /// At the project's own absolute path, where it really lies.
    Real,
    /// At the project's own absolute path in a namespace that each command gets; it
    /// lies where a mapped one does.
    Namespace,
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
        source: io::Error,
    },
}

/// The copy's name stays readable and short of a file system's 255 bytes.
const NAME_BYTES: usize = 100;

impl PathMap {
    /// The copy of `project` below `dir` on a VM: `DIR/<name>-<8 hex>`, where the
    /// digits are the start of BLAKE3 over the laptop's id, NUL, and the path.
    pub fn new(project: &Utf8Path, dir: &RemotePath, laptop_id: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(laptop_id.as_bytes());
        hasher.update(&[0]);
        hasher.update(project.as_str().as_bytes());
        let digest = hasher.finalize().to_hex();
        let name = readable_name(project.file_name().unwrap_or("root"));
        let copy = dir.join_name(&format!("{name}-{}", &digest[..8]));
        Self {
            project: project.to_owned(),
            folder: copy.clone(),
            copy,
        }
    }

    /// The same project with its copy seen in that form.
    #[must_use]
    pub fn seen(self, form: PathForm) -> Self {
        let same = RemotePath::of(&self.project);
        match form {
            PathForm::Mapped => self,
            PathForm::Namespace => Self { copy: same, ..self },
            PathForm::Real => Self {
                folder: same.clone(),
                copy: same,
                ..self
            },
        }
    }

    /// The path at which a command sees the copy, and the copy's own, where they differ.
    pub fn view(&self) -> Option<(String, String)> {
        let differ = self.copy != self.folder;
        differ.then(|| (self.copy.to_string(), self.folder.to_string()))
    }

    /// The counterpart of `folder`, component by component, links resolved.
    pub fn to_remote(&self, folder: &Utf8Path) -> Result<RemotePath, PathMapError> {
        let resolve = |source| PathMapError::Resolve {
            folder: folder.to_owned(),
            source,
        };
        if !folder.is_absolute() {
            return Err(resolve(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the path is not absolute",
            )));
        }
        let resolved = folder.canonicalize_utf8().map_err(resolve)?;
        if !resolved.is_dir() {
            return Err(resolve(io::ErrorKind::NotADirectory.into()));
        }
        let below = resolved
            .strip_prefix(&self.project)
            .map_err(|_| PathMapError::Outside {
                folder: resolved.clone(),
                project: self.project.clone(),
            })?;
        Ok(below
            .components()
            .fold(self.copy.clone(), |remote, component| {
                remote.join_name(component.as_str())
            }))
    }
}

/// `name` with everything but letters, digits, `.`, `_` and `-` replaced.
fn readable_name(name: &str) -> String {
    let mut readable = String::new();
    for letter in name.chars() {
        let kept = letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-');
        let letter = if kept { letter } else { '_' };
        if readable.len() + letter.len_utf8() > NAME_BYTES {
            break;
        }
        readable.push(letter);
    }
    readable
}
