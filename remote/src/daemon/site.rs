//! Where a daemon's files lie.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};

/// Longest path of a socket that every system takes (104 bytes with the NUL on the
/// BSDs, 108 on Linux).
const SOCKET_PATH: usize = 100;

/// The files of one daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The folder that holds its lock and log; private to the user.
    pub folder: Utf8PathBuf,
    socket_folder: Utf8PathBuf,
}

impl Site {
    /// The daemon of this state folder. Where its path is too long for a socket,
    /// that lies in a private folder below `/tmp`.
    pub fn of(state: &Utf8Path) -> Self {
        let folder = state.join("daemon");
        let socket_folder = if folder.as_str().len() + "/s".len() <= SOCKET_PATH {
            folder.clone()
        } else {
            let hash = blake3::hash(state.as_str().as_bytes()).to_hex();
            let uid = rustix::process::getuid().as_raw();
            Utf8PathBuf::from(format!("/tmp/boxery-{uid}-{}", &hash[..16]))
        };
        Self {
            folder,
            socket_folder,
        }
    }

    /// Where clients connect.
    pub fn socket(&self) -> Utf8PathBuf {
        self.socket_folder.join("s")
    }

    /// Held by the daemon that serves.
    pub fn lock(&self) -> Utf8PathBuf {
        self.folder.join("lock")
    }

    /// What it has to say.
    pub fn log(&self) -> Utf8PathBuf {
        self.folder.join("log")
    }

    /// Make the folders, or make sure that they are ours alone.
    pub(super) fn make(&self) -> io::Result<()> {
        for folder in [&self.folder, &self.socket_folder] {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
            self.check(folder)?;
        }
        Ok(())
    }

    fn check(&self, folder: &Utf8Path) -> io::Result<()> {
        let found = fs::symlink_metadata(folder)?;
        if !found.is_dir() || found.uid() != rustix::process::getuid().as_raw() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("`{folder}` is not a folder of this user's"),
            ));
        }
        if found.mode() & 0o077 != 0 {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::short("/home/me/.local/state/boxery".to_owned(), true)]
    #[case::long(format!("/home/{}/state", "x".repeat(120)), false)]
    fn the_socket_has_a_short_path(#[case] state: String, #[case] inside: bool) {
        let site = Site::of(Utf8Path::new(&state));
        assert!(site.socket().as_str().len() <= SOCKET_PATH, "{site:?}");
        assert_eq!(site.socket().as_str().starts_with(&state), inside);
        assert!(site.lock().as_str().starts_with(&state));
    }
}
