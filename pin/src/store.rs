//! The private folder of pin files.

use std::io;

use camino::Utf8PathBuf;

use crate::{PinError, PinFile, PinKey};

/// A pin file that was read, and where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPin {
    /// The file.
    pub path: Utf8PathBuf,
    /// Its content.
    pub file: PinFile,
}

/// The folder `pins` in boxery's state folder: one file per pin, named by its key.
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
        let _ = file;
        Ok(())
    }

    /// Read the pin under `key`; `None` when there is no such file.
    pub fn read(&self, key: &PinKey) -> Result<Option<StoredPin>, PinError> {
        let _ = key;
        Ok(None)
    }

    /// Remove the pin under `key`; whether there was one.
    pub fn remove(&self, key: &PinKey) -> Result<bool, PinError> {
        let _ = key;
        Ok(false)
    }

    /// Every pin file; one that can't be read is an `Err` of its own.
    pub fn list(&self) -> io::Result<Vec<Result<StoredPin, PinError>>> {
        Ok(Vec::new())
    }

    /// Note that the pin under `key` decided a call at `now` (seconds since 1970).
    pub fn touch(&self, key: &PinKey, now: u64) -> Result<(), PinError> {
        let _ = (key, now);
        Ok(())
    }

    /// Remove the pins that have ended: of processes that are gone, of sessions
    /// 30 days after their last use.
    pub fn expire(&self, now: u64) -> Result<Vec<StoredPin>, PinError> {
        let _ = now;
        Ok(Vec::new())
    }
}
