//! The private folder of pin files.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};
use fs2::FileExt;
use rustix::fs::{Mode as FileMode, OFlags};

use crate::file_name::{PinName, file_name, path_digest, project_root};
use crate::{PinError, PinFile, PinKey};

/// How long a session's pin outlives its last use, in seconds.
pub(crate) const SESSION_LIFE: u64 = 30 * 24 * 3600;

/// A pin file is a few hundred bytes; a larger one isn't boxery's.
const LARGEST_FILE: u64 = 64 * 1024;

/// How the names of temporary files begin; they lie beside the folder of pins,
/// never in it.
const TEMPORARY: &str = ".pin-";

/// A pin file that was read, and where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPin {
    /// The file.
    pub path: Utf8PathBuf,
    /// Its content.
    pub file: PinFile,
}

/// The folder `pins` in boxery's state folder: one file per pin, named by its key.
///
/// The folder holds pins and nothing else, because the shell words of a hook's
/// entry take any file in it for a pin; lock and temporary files lie beside it.
#[derive(Debug, Clone)]
pub struct PinStore {
    /// The folder; it may not exist.
    pub folder: Utf8PathBuf,
}

impl PinStore {
    /// The store in `folder`, which is made by the first write.
    pub fn new(folder: Utf8PathBuf) -> Self {
        Self { folder }
    }

    /// Write `file` under its key: temporary file, fsync, rename, under a lock.
    pub fn write(&self, file: &PinFile) -> Result<(), PinError> {
        let _lock = self.lock()?;
        self.write_locked(file)
    }

    /// Read the pin under `key`; `None` when there is no such file.
    pub fn read(&self, key: &PinKey) -> Result<Option<StoredPin>, PinError> {
        let mut pins = Vec::new();
        for name in self.names_of(key)? {
            pins.extend(self.read_name(&name)?);
        }
        // Two files of one project: a write was cut off between the new file
        // and the removal of the old. The later one counts.
        Ok(pins
            .into_iter()
            .max_by_key(|pin| (pin.file.written_at, pin.file.used_at)))
    }

    /// Remove the pin under `key`; whether there was one. A file that can't be
    /// read is removed too.
    pub fn remove(&self, key: &PinKey) -> Result<bool, PinError> {
        let _lock = self.lock()?;
        let mut found = false;
        for name in self.names_of(key)? {
            found |= self.unlink(&self.folder.join(name))?;
        }
        Ok(found)
    }

    /// Every pin file; one that can't be read is an `Err` of its own.
    pub fn list(&self) -> io::Result<Vec<Result<StoredPin, PinError>>> {
        let mut pins = Vec::new();
        for name in self.scan()? {
            match self.read_name(&name) {
                Ok(Some(pin)) => pins.push(Ok(pin)),
                // Removed since the folder was read.
                Ok(None) => {}
                Err(error) => pins.push(Err(error)),
            }
        }
        Ok(pins)
    }

    /// Note that the pin under `key` decided a call at `now` (seconds since 1970).
    ///
    /// This moves the file's modification time and writes nothing, so a call
    /// never waits for a disk, and no other reader can meet a moment without
    /// the file.
    pub fn touch(&self, key: &PinKey, now: u64) -> Result<(), PinError> {
        for name in self.names_of(key)? {
            let path = self.folder.join(name);
            let Some(file) = open_own(&path)? else {
                continue;
            };
            let written = |source| PinError::Write {
                path: path.clone(),
                source,
            };
            let used_at = seconds(file.metadata().map_err(written)?.mtime());
            if used_at < now {
                set_used(&file, now).map_err(written)?;
            }
        }
        Ok(())
    }

    /// Remove the pins that have ended: of processes that are gone, of sessions
    /// 30 days after their last use.
    pub fn expire(&self, now: u64) -> Result<Vec<StoredPin>, PinError> {
        let read = |source| PinError::Read {
            path: self.folder.clone(),
            source,
        };
        if self.scan().map_err(read)?.is_empty() {
            return Ok(Vec::new());
        }
        // Under the lock no pin is written, so what is read here is what is removed.
        let _lock = self.lock()?;
        let mut removed = Vec::new();
        for name in self.scan().map_err(read)? {
            // What can't be read is for the user to look at.
            if let Ok(Some(pin)) = self.read_name(&name)
                && has_ended(&pin.file, now)
                && self.unlink(&pin.path)?
            {
                removed.push(pin);
            }
        }
        self.remove_leftovers();
        Ok(removed)
    }

    /// The names in the folder; none when it doesn't exist.
    ///
    /// A local file system answers up to some 300 names in one system call and
    /// under the folder's lock, so a pin that is being replaced is never missed.
    pub(crate) fn scan(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Read the pin in the file `name`; `None` when there is no such file.
    pub(crate) fn read_name(&self, name: &str) -> Result<Option<StoredPin>, PinError> {
        let path = self.folder.join(name);
        let malformed = |problem: &str| PinError::Malformed {
            path: path.clone(),
            problem: problem.to_owned(),
        };
        let Some(file) = open_own(&path)? else {
            return Ok(None);
        };
        let read = |source| PinError::Read {
            path: path.clone(),
            source,
        };
        let metadata = file.metadata().map_err(read)?;
        if metadata.len() > LARGEST_FILE {
            return Err(malformed("it is too large"));
        }
        let mut text = Vec::new();
        file.take(LARGEST_FILE)
            .read_to_end(&mut text)
            .map_err(read)?;
        let version: VersionOnly =
            serde_json::from_slice(&text).map_err(|error| malformed(&error.to_string()))?;
        if version.version > PinFile::VERSION {
            return Err(malformed("a newer boxery wrote it"));
        }
        let mut pin: PinFile =
            serde_json::from_slice(&text).map_err(|error| malformed(&error.to_string()))?;
        if file_name(&pin.key, pin.git_common.as_deref()) != name {
            return Err(malformed("its key belongs to another file name"));
        }
        pin.used_at = pin.used_at.max(seconds(metadata.mtime()));
        Ok(Some(StoredPin { path, file: pin }))
    }

    /// Change pins with nobody else writing, until the guard is dropped.
    pub(crate) fn lock(&self) -> Result<File, PinError> {
        let path = self.beside().join("pins.lock");
        let written = |source| PinError::Write {
            path: path.clone(),
            source,
        };
        private_folder(&self.beside()).map_err(written)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path.as_std_path(), flags, FileMode::RUSR | FileMode::WUSR)
            .map_err(|error| written(error.into()))?;
        let file = File::from(file);
        file.lock_exclusive().map_err(written)?;
        Ok(file)
    }

    pub(crate) fn write_locked(&self, file: &PinFile) -> Result<(), PinError> {
        let name = file_name(&file.key, file.git_common.as_deref());
        let path = self.folder.join(&name);
        self.write_at(&path, file)
            .map_err(|source| PinError::Write {
                path: path.clone(),
                source,
            })?;
        for other in self.names_of(&file.key)? {
            if other != name {
                self.unlink(&self.folder.join(other))?;
            }
        }
        Ok(())
    }

    fn write_at(&self, path: &Utf8Path, file: &PinFile) -> io::Result<()> {
        private_folder(&self.folder)?;
        let mut text = serde_json::to_string_pretty(file)?;
        text.push('\n');
        let mut temporary = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .tempfile_in(self.beside())?;
        temporary.write_all(text.as_bytes())?;
        set_used(temporary.as_file(), file.used_at)?;
        temporary.as_file().sync_all()?;
        temporary.persist(path).map_err(|error| error.error)?;
        File::open(&self.folder)?.sync_all()
    }

    /// The files under `key` that exist or, for a session or a process, may exist.
    fn names_of(&self, key: &PinKey) -> Result<Vec<String>, PinError> {
        let Some(root) = project_root(key) else {
            return Ok(vec![file_name(key, None)]);
        };
        let digest = path_digest(root);
        let mut names = self.scan().map_err(|source| PinError::Read {
            path: self.folder.clone(),
            source,
        })?;
        names.retain(|name| match PinName::parse(name) {
            Some(PinName::Project { root, .. }) => root == digest,
            _ => false,
        });
        Ok(names)
    }

    fn unlink(&self, path: &Utf8Path) -> Result<bool, PinError> {
        match fs::remove_file(path) {
            Ok(()) => {
                let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
                synced.map_err(|source| PinError::Write {
                    path: path.to_owned(),
                    source,
                })?;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(PinError::Write {
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// Temporary files of writers that were killed. Called under the lock, so
    /// nobody is writing one.
    fn remove_leftovers(&self) {
        let Ok(entries) = fs::read_dir(self.beside()) else {
            return;
        };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
                // One that stays does no harm.
                drop(fs::remove_file(entry.path()));
            }
        }
    }

    fn beside(&self) -> Utf8PathBuf {
        match self.folder.parent() {
            Some(parent) if !parent.as_str().is_empty() => parent.to_owned(),
            _ => Utf8PathBuf::from("."),
        }
    }
}

#[derive(serde::Deserialize)]
struct VersionOnly {
    version: u32,
}

/// Whether `pin` has come to its end by itself.
fn has_ended(pin: &PinFile, now: u64) -> bool {
    match &pin.key {
        PinKey::Process { process, .. } => process.is_gone(),
        PinKey::Session { .. } => pin.used_at.saturating_add(SESSION_LIFE) < now,
        PinKey::Project { .. } => false,
    }
}

/// Open a file that only this user can have written. It is never waited for: a
/// pipe in its place is an error.
fn open_own(path: &Utf8Path) -> Result<Option<File>, PinError> {
    let malformed = |problem: &str| PinError::Malformed {
        path: path.to_owned(),
        problem: problem.to_owned(),
    };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path.as_std_path(), flags, FileMode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(rustix::io::Errno::LOOP) => return Err(malformed("it is a symbolic link")),
        Err(error) => {
            return Err(PinError::Read {
                path: path.to_owned(),
                source: error.into(),
            });
        }
    };
    let metadata = file.metadata().map_err(|source| PinError::Read {
        path: path.to_owned(),
        source,
    })?;
    if !metadata.is_file() {
        return Err(malformed("it is not a regular file"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(malformed("it belongs to another user"));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(malformed("other users can write to it"));
    }
    Ok(Some(file))
}

fn private_folder(folder: &Utf8Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

fn set_used(file: &File, at: u64) -> io::Result<()> {
    let at = UNIX_EPOCH
        .checked_add(Duration::from_secs(at))
        .unwrap_or_else(SystemTime::now);
    file.set_modified(at)
}

fn seconds(mtime: i64) -> u64 {
    u64::try_from(mtime).unwrap_or(0)
}
