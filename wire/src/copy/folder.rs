//! Folders below a target, entered without following a link.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

/// What whoever copies has to be able to do in a folder.
pub(super) const OWNERS: u32 = 0o700;

/// The folder that a path lies in, and its name there. The target itself has the
/// empty path.
pub(super) fn place(target: &Path, path: &[u8]) -> io::Result<(OwnedFd, Vec<u8>)> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let (mut folder, mut last) = match (target.parent(), target.file_name()) {
        (Some(parent), Some(name)) => {
            let parent = if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            };
            let folder = openat(CWD, parent, flags, Mode::empty())?;
            (folder, name.as_bytes().to_vec())
        }
        // `/`, `.` or `..`: a folder that is there.
        (Some(_) | None, _) => (openat(CWD, target, flags, Mode::empty())?, b".".to_vec()),
    };
    if path.is_empty() {
        return Ok((folder, last));
    }
    for part in path.split(|byte| *byte == b'/') {
        if part.is_empty() || part == b"." || part == b".." || part.contains(&0) {
            return Err(invalid());
        }
        folder = enter(&folder, &last)?;
        last = part.to_vec();
    }
    Ok((folder, last))
}

/// Enter a real folder, never a link to one.
pub(super) fn enter(folder: &OwnedFd, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(
        folder,
        OsStr::from_bytes(name),
        flags,
        Mode::empty(),
    )?)
}
