//! A tree's top folder, below which everything is written, and nowhere else.
//!
//! Invariant: no link is followed below the top, whoever puts one there and when.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, fchmod, mkdirat, openat};
use rustix::io::Errno;

use crate::EntryPath;

/// What a folder is opened for.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A new folder's permissions, whatever the umask: what a file in it may do says the file.
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o755);

/// The top folder of a project or copy.
#[derive(Debug)]
pub struct Root {
    top: OwnedFd,
}

impl Root {
    /// The folder at `path`, whose own links are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            top: openat(CWD, path, flags, Mode::empty())?,
        })
    }

    /// The top itself.
    pub(crate) fn top(&self) -> &OwnedFd {
        &self.top
    }

    /// A folder below the top; `None` is the top.
    pub fn folder(&self, path: Option<&EntryPath>) -> Result<OwnedFd, Errno> {
        let Some(path) = path else {
            return openat(&self.top, ".", FOLDER, Mode::empty());
        };
        #[cfg(target_os = "linux")]
        match self.resolve(path) {
            // A kernel before 5.6, a container that forbids it, a name longer than one
            // call takes, or a rename that came between.
            Err(Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG | Errno::AGAIN) => {}
            resolved => return resolved,
        }
        self.walk(path)
    }

    #[cfg(target_os = "linux")]
    fn resolve(&self, path: &EntryPath) -> Result<OwnedFd, Errno> {
        use rustix::fs::{ResolveFlags, openat2};
        let beneath =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        openat2(&self.top, path.as_path(), FOLDER, Mode::empty(), beneath)
    }

    /// One component after the other, none of them a link.
    fn walk(&self, path: &EntryPath) -> Result<OwnedFd, Errno> {
        let mut folder = openat(&self.top, ".", FOLDER, Mode::empty())?;
        for name in path.as_bytes().split(|byte| *byte == b'/') {
            folder = openat(&folder, name, FOLDER, Mode::empty())?;
        }
        Ok(folder)
    }

    /// The folder that holds `path`.
    pub(crate) fn parent(&self, path: &EntryPath) -> Result<OwnedFd, Errno> {
        self.folder(path.parent().as_ref())
    }

    /// The folder at `path`, made with all above it where they aren't there.
    pub(crate) fn make_folder(&self, path: Option<&EntryPath>) -> Result<OwnedFd, Errno> {
        match (self.folder(path), path) {
            (Err(Errno::NOENT), Some(path)) => {
                let mut folder = openat(&self.top, ".", FOLDER, Mode::empty())?;
                for name in path.as_bytes().split(|byte| *byte == b'/') {
                    folder = make(&folder, name)?;
                }
                Ok(folder)
            }
            (opened, _) => opened,
        }
    }
}

/// The folder `name` in `folder`, made if it isn't there.
pub(crate) fn make(folder: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    match mkdirat(folder, name, FOLDER_MODE) {
        Ok(()) => {
            let made = openat(folder, name, FOLDER, Mode::empty())?;
            fchmod(&made, FOLDER_MODE)?;
            Ok(made)
        }
        Err(Errno::EXIST) => openat(folder, name, FOLDER, Mode::empty()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::plain("real/inner", true)]
    #[case::link_out("out/inner", false)]
    #[case::link_inside("alias/inner", false)]
    #[case::link_itself("alias", false)]
    fn no_way_of_entering_a_folder_follows_a_link(#[case] path: &str, #[case] entered: bool) {
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(outside.path().join("inner")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("real/inner")).unwrap();
        symlink("real", folder.path().join("alias")).unwrap();
        symlink(outside.path(), folder.path().join("out")).unwrap();
        let root = Root::open(folder.path()).unwrap();
        let path = EntryPath::parse(path.as_bytes()).unwrap();
        assert_eq!(root.folder(Some(&path)).is_ok(), entered);
        assert_eq!(root.walk(&path).is_ok(), entered);
        assert_eq!(root.make_folder(Some(&path)).is_ok(), entered);
    }

    #[test]
    fn a_path_longer_than_the_kernel_takes_at_once_is_made_and_entered() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let path = vec!["d".repeat(200); 40].join("/");
        let path = EntryPath::parse(path.as_bytes()).unwrap();
        root.make_folder(path.parent().as_ref()).unwrap();
        root.make_folder(Some(&path)).unwrap();
        assert!(root.folder(Some(&path)).is_ok());
    }
}
