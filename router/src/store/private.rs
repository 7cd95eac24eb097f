//! Private files: 0600 in a 0700 folder, replaced as a whole, never through a link.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A store that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or folder cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file or folder cannot be written.
    #[error("cannot write `{path}`")]
    Write {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file isn't what boxery writes.
    #[error("`{path}` is not a file of boxery's: {problem}")]
    Malformed {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// Whether a file must survive a crash of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// It is worth nothing after a restart.
    UntilRestart,
    /// It must be on the disk.
    OnDisk,
}

/// Records are small; anything larger isn't ours.
const LARGEST_RECORD: u64 = 64 << 10;

/// The SHA-256 over `parts` with NUL between them, in hex.
pub(crate) fn sha256_hex(parts: &[&[u8]]) -> String {
    boxery_record::sha256_hex(&parts.join(&0_u8))
}

pub(crate) fn create_folder(folder: &Utf8Path) -> Result<(), StoreError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|source| StoreError::Write {
            path: folder.to_owned(),
            source,
        })
}

pub(crate) fn write(
    folder: &Utf8Path,
    name: &str,
    content: &[u8],
    durability: Durability,
) -> Result<(), StoreError> {
    let path = folder.join(name);
    let temporary = folder.join(format!(".{name}.{}", std::process::id()));
    let failed = |source| StoreError::Write {
        path: path.clone(),
        source,
    };
    let open = || {
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)
    };
    let mut file = match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_folder(folder)?;
            open().map_err(failed)?
        }
        other => other.map_err(failed)?,
    };
    let written = file.write_all(content).and_then(|()| match durability {
        Durability::UntilRestart => Ok(()),
        Durability::OnDisk => file.sync_all(),
    });
    if let Err(source) = written.and_then(|()| std::fs::rename(&temporary, &path)) {
        std::fs::remove_file(&temporary).ok();
        return Err(failed(source));
    }
    Ok(())
}

pub(crate) fn write_record<T: Serialize>(
    folder: &Utf8Path,
    name: &str,
    record: &T,
    durability: Durability,
) -> Result<(), StoreError> {
    let content = serde_json::to_vec(record).map_err(|error| StoreError::Malformed {
        path: folder.join(name),
        problem: error.to_string(),
    })?;
    write(folder, name, &content, durability)
}

/// The content of a private file; `None` when there is none.
pub(crate) fn read(path: &Utf8Path, limit: u64) -> Result<Option<Vec<u8>>, StoreError> {
    let failed = |source| StoreError::Read {
        path: path.to_owned(),
        source,
    };
    let malformed = |problem: &str| StoreError::Malformed {
        path: path.to_owned(),
        problem: problem.to_owned(),
    };
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file: File = match file {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(failed)?,
    };
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(malformed("it is not a plain file"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(malformed("it belongs to another user"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(malformed("other users may read or write it"));
    }
    if metadata.len() > limit {
        return Err(malformed("it is too large"));
    }
    let mut content = Vec::new();
    file.take(limit).read_to_end(&mut content).map_err(failed)?;
    Ok(Some(content))
}

pub(crate) fn read_record<T: DeserializeOwned>(path: &Utf8Path) -> Result<Option<T>, StoreError> {
    let Some(content) = read(path, LARGEST_RECORD)? else {
        return Ok(None);
    };
    serde_json::from_slice(&content)
        .map(Some)
        .map_err(|error| StoreError::Malformed {
            path: path.to_owned(),
            problem: error.to_string(),
        })
}

/// Remove `path`; whether it was there.
pub(crate) fn remove(path: &Utf8Path) -> Result<bool, StoreError> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(StoreError::Write {
            path: path.to_owned(),
            source,
        }),
    }
}

/// The names in `folder` that are records (not hidden); none when it isn't there.
pub(crate) fn names(folder: &Utf8Path) -> Result<Vec<String>, StoreError> {
    let failed = |source| StoreError::Read {
        path: folder.to_owned(),
        source,
    };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        if let Ok(name) = entry.map_err(failed)?.file_name().into_string()
            && !name.starts_with('.')
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Remove the files in `folder` that were last written before `before` (seconds since 1970).
pub(crate) fn remove_older(folder: &Utf8Path, before: u64) -> Result<(), StoreError> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(|source| StoreError::Read {
            path: folder.to_owned(),
            source,
        })?,
    };
    for entry in entries.flatten() {
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_file() && metadata.mtime() < i64::try_from(before).unwrap_or(i64::MAX) {
            // Another process may have been quicker.
            std::fs::remove_file(entry.path()).ok();
        }
    }
    Ok(())
}
