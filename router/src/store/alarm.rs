//! Sessions in which a call ran elsewhere than it should have.

use boxery_pin::{AgentId, SessionId};
use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use super::private::{self, Durability, StoreError, sha256_hex};

/// An alarm: redirect is off for the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alarm {
    /// Version of this shape.
    pub version: u32,
    /// The agent.
    pub agent: AgentId,
    /// The session; absent for an agent that names none.
    pub session: Option<SessionId>,
    /// Why, as a clause.
    pub reason: String,
    /// When, seconds since 1970.
    pub raised_at: u64,
}

/// The folder of alarms.
#[derive(Debug, Clone)]
pub struct Alarms {
    folder: Utf8PathBuf,
}

impl Alarms {
    /// The store in `folder`, which is made by the first write.
    pub fn new(folder: Utf8PathBuf) -> Self {
        Self { folder }
    }

    /// Raise an alarm; the first one of a session stays.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    pub fn raise(&self, alarm: &Alarm) -> Result<(), StoreError> {
        let name = name(&alarm.agent, alarm.session.as_ref());
        if matches!(
            private::read_record::<Alarm>(&self.folder.join(&name)),
            Ok(Some(_))
        ) {
            return Ok(());
        }
        private::write_record(&self.folder, &name, alarm, Durability::OnDisk)
    }

    /// The alarm of a session.
    ///
    /// # Errors
    ///
    /// When the file is there and can't be read: the caller takes that for an alarm.
    pub fn read(
        &self,
        agent: &AgentId,
        session: Option<&SessionId>,
    ) -> Result<Option<Alarm>, StoreError> {
        private::read_record(&self.folder.join(name(agent, session)))
    }

    /// End the alarm of a session; whether there was one.
    ///
    /// # Errors
    ///
    /// When the file can't be removed.
    pub fn clear(&self, agent: &AgentId, session: Option<&SessionId>) -> Result<bool, StoreError> {
        private::remove(&self.folder.join(name(agent, session)))
    }

    /// Remove alarms that were raised before `before` (seconds since 1970).
    ///
    /// # Errors
    ///
    /// When the folder can't be read.
    pub fn expire(&self, before: u64) -> Result<(), StoreError> {
        private::remove_older(&self.folder, before)
    }

    /// Every alarm; unreadable ones as errors.
    ///
    /// # Errors
    ///
    /// When the folder can't be read.
    pub fn list(&self) -> Result<Vec<Result<Alarm, StoreError>>, StoreError> {
        let mut alarms = Vec::new();
        for name in private::names(&self.folder)? {
            alarms.extend(private::read_record(&self.folder.join(name)).transpose());
        }
        Ok(alarms)
    }
}

fn name(agent: &AgentId, session: Option<&SessionId>) -> String {
    let session = session.map_or("", |session| session.0.as_str());
    format!(
        "{}.json",
        sha256_hex(&[agent.0.as_bytes(), session.as_bytes()])
    )
}
