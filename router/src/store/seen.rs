//! When an agent's hook was last heard of.

use boxery_pin::{AgentId, SessionId};
use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use super::private::{self, Durability, StoreError};

/// The last session that told its begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastSeen {
    /// Version of this shape.
    pub version: u32,
    /// The agent.
    pub agent: AgentId,
    /// Its session.
    pub session: Option<SessionId>,
    /// When, seconds since 1970.
    pub seen_at: u64,
}

/// The folder of last-seen notes: one file per agent.
#[derive(Debug, Clone)]
pub struct Seen {
    folder: Utf8PathBuf,
}

impl Seen {
    /// The store in `folder`, which is made by the first write.
    pub fn new(folder: Utf8PathBuf) -> Self {
        Self { folder }
    }

    /// Note that a session of `agent` began at `now`.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    pub fn note(
        &self,
        agent: &AgentId,
        session: Option<&SessionId>,
        now: u64,
    ) -> Result<(), StoreError> {
        let seen = LastSeen {
            version: 1,
            agent: agent.clone(),
            session: session.cloned(),
            seen_at: now,
        };
        private::write_record(&self.folder, &name(agent), &seen, Durability::UntilRestart)
    }

    /// When `agent` was last heard of.
    ///
    /// # Errors
    ///
    /// When the file is there and can't be read.
    pub fn read(&self, agent: &AgentId) -> Result<Option<LastSeen>, StoreError> {
        private::read_record(&self.folder.join(name(agent)))
    }
}

fn name(agent: &AgentId) -> String {
    format!("{}.json", &private::sha256_hex(&[agent.0.as_bytes()])[..32])
}
