//! Which sessions were told that no policy file holds for them.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::time::{Duration, SystemTime};

use boxery_pin::{AgentId, SessionId};
use boxery_record::sha256_hex;
use camino::Utf8PathBuf;

use crate::app::App;

/// An empty file for each session.
#[derive(Debug)]
pub(crate) struct Told {
    folder: Utf8PathBuf,
}

impl Told {
    /// What a session is told once.
    pub(crate) const TEXT: &str = "no policy file holds here, so that only the default rules do; \
                                   `boxery policy init` writes one";

    pub(crate) fn new(app: &App) -> Self {
        Self {
            folder: app.env.state_path("told"),
        }
    }

    /// Whether this call is the first one for the session. Where that can't be kept,
    /// nobody is told again and again.
    pub(crate) fn first(&self, agent: &AgentId, session: Option<&SessionId>) -> bool {
        let session = session.map(ToString::to_string).unwrap_or_default();
        let name = sha256_hex(format!("{agent}\0{session}").as_bytes());
        let make = || -> io::Result<()> {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.folder)?;
            fs::File::create_new(self.folder.join(name))?;
            Ok(())
        };
        make().is_ok()
    }

    /// Forget sessions that were told longer than `age` ago.
    pub(crate) fn expire(&self, age: Duration) {
        let Some(before) = SystemTime::now().checked_sub(age) else {
            return;
        };
        let entries = self.folder.read_dir_utf8().into_iter().flatten().flatten();
        for entry in entries {
            let old = entry.metadata().and_then(|meta| meta.modified());
            if old.is_ok_and(|time| time < before) {
                // It only costs that a session is told once more.
                fs::remove_file(entry.path()).ok();
            }
        }
    }
}
