//! The state of syncs on disk: each file is replaced as a whole, and a damaged one
//! is never taken for one that says something.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Digest;

/// What each file begins with. Another version's files are read as damaged ones.
const MAGIC: &[u8; 16] = b"boxery sync  1\0\n";

/// Whether a file must survive a crash of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// It can be made again.
    UntilRestart,
    /// It must be on the disk.
    OnDisk,
}

/// What is in `file`; `None` if there is none.
pub(crate) fn read<T: DeserializeOwned>(file: &Path) -> io::Result<Option<T>> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let damaged = || io::Error::from(io::ErrorKind::InvalidData);
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(damaged)?;
    let (digest, content) = rest.split_at_checked(32).ok_or_else(damaged)?;
    if digest != Digest::of(content).0 {
        return Err(damaged());
    }
    postcard::from_bytes(content)
        .map(Some)
        .map_err(|_| damaged())
}

/// Replace `file`, 0600. Its folder has to be there.
pub(crate) fn write<T: Serialize>(
    file: &Path,
    value: &T,
    durability: Durability,
) -> io::Result<()> {
    let content = postcard::to_stdvec(value).map_err(io::Error::other)?;
    let temporary = file.with_extension("new");
    let mut new = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    new.write_all(MAGIC)?;
    new.write_all(&Digest::of(&content).0)?;
    new.write_all(&content)?;
    if durability == Durability::OnDisk {
        new.sync_all()?;
    }
    fs::rename(&temporary, file)?;
    if durability == Durability::OnDisk
        && let Some(folder) = file.parent()
    {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}
