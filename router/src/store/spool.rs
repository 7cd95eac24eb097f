//! Texts that are too long for an argument.

use camino::Utf8PathBuf;

use super::private::{self, Durability, StoreError};
use crate::LONGEST_TEXT;

/// The folder of spooled texts: one file per token, read once.
#[derive(Debug, Clone)]
pub struct Spool {
    folder: Utf8PathBuf,
}

impl Spool {
    /// The store in `folder`, which is made by the first write.
    pub fn new(folder: Utf8PathBuf) -> Self {
        Self { folder }
    }

    /// Whether `token` has the form of one: 32 hex digits.
    pub fn is_token(token: &str) -> bool {
        token.len() == 32
            && token
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    }

    /// Keep `text` under `token`, 32 fresh hex digits.
    ///
    /// # Errors
    ///
    /// When the token isn't one, or the file can't be written.
    pub fn put(&self, token: &str, text: &str) -> Result<(), StoreError> {
        self.checked(token)?;
        private::write(
            &self.folder,
            token,
            text.as_bytes(),
            Durability::UntilRestart,
        )
    }

    /// Take the text under `token`; `None` when it was never there or is used up.
    ///
    /// # Errors
    ///
    /// When the token isn't one, or the file can't be read.
    pub fn take(&self, token: &str) -> Result<Option<String>, StoreError> {
        self.checked(token)?;
        let path = self.folder.join(token);
        // A rename decides between two takers.
        let mine = self.folder.join(format!(".{token}.{}", std::process::id()));
        match std::fs::rename(&path, &mine) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StoreError::Write { path, source }),
        }
        let content = private::read(&mine, LONGEST_TEXT as u64);
        private::remove(&mine)?;
        content?
            .map(|bytes| {
                String::from_utf8(bytes).map_err(|_| StoreError::Malformed {
                    path,
                    problem: "it is not UTF-8".to_owned(),
                })
            })
            .transpose()
    }

    /// Remove what was written before `before` (seconds since 1970).
    ///
    /// # Errors
    ///
    /// When the folder can't be read.
    pub fn expire(&self, before: u64) -> Result<(), StoreError> {
        private::remove_older(&self.folder, before)
    }

    fn checked(&self, token: &str) -> Result<(), StoreError> {
        if Self::is_token(token) {
            Ok(())
        } else {
            Err(StoreError::Malformed {
                path: self.folder.clone(),
                problem: "a token has 32 hex digits".to_owned(),
            })
        }
    }
}
