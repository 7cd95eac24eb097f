//! Which project policies the user trusts, by their text.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;

use boxery_policy::{Found, Places, Reader as _, Resolved};
use boxery_record::sha256_hex;
use camino::Utf8PathBuf;

use super::disk::Disk;
use crate::app::App;
use crate::error::Failure;

/// The trusted ones: a file for each, named by the digest of what it says, with its path.
#[derive(Debug)]
pub(crate) struct Trusted {
    folder: Utf8PathBuf,
}

impl Trusted {
    pub(crate) fn new(app: &App) -> Self {
        Self {
            folder: app.env.state_path("trusted"),
        }
    }

    /// Whether the user trusts exactly these files.
    pub(crate) fn holds(&self, key: &str) -> Result<bool, Failure> {
        let path = self.folder.join(key);
        path.try_exists().map_err(|error| {
            Failure::from(format!(
                "cannot tell which policies are trusted: `{path}`: {error}"
            ))
        })
    }

    /// Trust these files from now on, and no more what was trusted before at `path`:
    /// an older text that comes back may be a looser one.
    pub(crate) fn add(&self, key: &str, path: &str) -> Result<(), Failure> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        for entry in self.folder.read_dir_utf8()? {
            let entry = entry?;
            if fs::read(entry.path())? == path.as_bytes() {
                fs::remove_file(entry.path())?;
            }
        }
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(path.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(self.folder.join(key))
            .map_err(|error| error.error)?;
        Ok(())
    }

    /// Trust these files no more; whether they were trusted.
    pub(crate) fn remove(&self, key: &str) -> Result<bool, Failure> {
        match fs::remove_file(self.folder.join(key)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// What a project's policy is trusted by: path and text of every file of its own.
/// Templates and the user's files may change without anybody trusting them anew.
pub(super) fn key(resolved: &Resolved, places: &Places, disk: &Disk) -> String {
    let mut text = String::new();
    for source in &resolved.chain {
        if !source.starts_with('/') || places.user.contains(source) {
            continue;
        }
        if let Found::Text(content) = disk.read(source) {
            let digest = sha256_hex(content.as_bytes());
            text.extend([digest.as_str(), " ", source, "\0"]);
        }
    }
    sha256_hex(text.as_bytes())
}
