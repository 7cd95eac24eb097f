//! What was decided for a call, until its end is known.

use boxery_pin::{AgentId, SessionId};
use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::private::{self, Durability, StoreError, sha256_hex};
use crate::{Decision, HookEvent, PlainCommand, Ruling, TicketName, ToolCall};

/// Which call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallKey {
    /// The agent.
    pub agent: AgentId,
    /// Its session.
    pub session: Option<SessionId>,
    /// The call's own id.
    pub call: String,
}

impl CallKey {
    /// The key of `call`; `None` for an agent that doesn't tell its calls apart.
    pub fn of(event: &HookEvent, call: &ToolCall) -> Option<Self> {
        Some(Self {
            agent: event.agent.clone(),
            session: event.session.clone(),
            call: call.call_id.clone()?,
        })
    }

    fn name(&self) -> String {
        format!(
            "{}.{}.json",
            session_part(&self.agent, self.session.as_ref()),
            &sha256_hex(&[self.call.as_bytes()])[..32]
        )
    }
}

fn session_part(agent: &AgentId, session: Option<&SessionId>) -> String {
    let session = session.map_or("", |session| session.0.as_str());
    let mut hex = sha256_hex(&[agent.0.as_bytes(), session.as_bytes()]);
    hex.truncate(32);
    hex
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "is")]
pub enum CallOutcome {
    /// Left to the agent.
    Passed,
    /// Denied.
    Denied,
    /// Rewritten, or to be rewritten when the user agrees.
    Rewritten {
        /// The SHA-256 of the text that boxery wrote, in hex.
        text_sha256: String,
        /// What the original was, when its exit status 1 is an answer.
        plain: Option<PlainCommand>,
        /// The ticket that the rewritten call takes.
        ticket: Option<TicketName>,
    },
}

/// What was decided for a call. Never holds the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallNote {
    /// Version of this shape.
    pub version: u32,
    /// The call.
    pub key: CallKey,
    /// What was decided.
    pub outcome: CallOutcome,
    /// When, seconds since 1970.
    pub decided_at: u64,
    /// When the agent called it a success with the ticket still there, seconds since 1970.
    pub succeeded_at: Option<u64>,
}

impl CallNote {
    /// The version that this build writes.
    pub const VERSION: u32 = 1;

    /// The note for `ruling` on a call whose text was `original`.
    pub fn new(
        key: CallKey,
        ruling: &Ruling,
        original: &str,
        ticket: Option<TicketName>,
        now: u64,
    ) -> Self {
        let outcome = match &ruling.decision {
            Decision::Pass | Decision::Tell { .. } => CallOutcome::Passed,
            Decision::Deny { .. } => CallOutcome::Denied,
            Decision::Ask { command, .. } | Decision::Rewrite { command, .. } => {
                CallOutcome::Rewritten {
                    text_sha256: sha256_hex(&[command.as_bytes()]),
                    plain: PlainCommand::of(original),
                    ticket,
                }
            }
        };
        Self {
            version: Self::VERSION,
            key,
            outcome,
            decided_at: now,
            succeeded_at: None,
        }
    }

    /// The ticket that the call should have taken.
    pub fn ticket(&self) -> Option<&TicketName> {
        match &self.outcome {
            CallOutcome::Rewritten { ticket, .. } => ticket.as_ref(),
            CallOutcome::Passed | CallOutcome::Denied => None,
        }
    }
}

/// The folder of call notes.
#[derive(Debug, Clone)]
pub struct Calls {
    folder: Utf8PathBuf,
    overdue: Utf8PathBuf,
}

impl Calls {
    /// How long a rewritten call's ticket may stay after the agent's success, in seconds.
    pub const GRACE: u64 = 10;

    /// The store in `folder`, which is made by the first write.
    pub fn new(folder: Utf8PathBuf) -> Self {
        Self {
            overdue: folder.join("overdue"),
            folder,
        }
    }

    /// Keep `note`.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    pub fn write(&self, note: &CallNote) -> Result<(), StoreError> {
        private::write_record(
            &self.folder,
            &note.key.name(),
            note,
            Durability::UntilRestart,
        )
    }

    /// The note of a call.
    ///
    /// # Errors
    ///
    /// When the file is there and can't be read.
    pub fn read(&self, key: &CallKey) -> Result<Option<CallNote>, StoreError> {
        private::read_record(&self.folder.join(key.name()))
    }

    /// Forget a call that has ended.
    ///
    /// # Errors
    ///
    /// When the file can't be removed.
    pub fn remove(&self, key: &CallKey) -> Result<(), StoreError> {
        private::remove(&self.folder.join(key.name())).map(|_| ())
    }

    /// Keep an eye on a call that succeeded at `now` with its ticket still there.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    pub fn watch(&self, note: &CallNote, now: u64) -> Result<(), StoreError> {
        let note = CallNote {
            succeeded_at: Some(now),
            ..note.clone()
        };
        private::write_record(
            &self.overdue,
            &note.key.name(),
            &note,
            Durability::UntilRestart,
        )
    }

    /// The calls of a session under [`Calls::watch`].
    ///
    /// # Errors
    ///
    /// When the folder or a note in it can't be read.
    pub fn watched(
        &self,
        agent: &AgentId,
        session: Option<&SessionId>,
    ) -> Result<Vec<CallNote>, StoreError> {
        let start = format!("{}.", session_part(agent, session));
        let mut notes = Vec::new();
        for name in private::names(&self.overdue)? {
            if name.starts_with(&start) {
                notes.extend(private::read_record(&self.overdue.join(name))?);
            }
        }
        Ok(notes)
    }

    /// End the watch over a call.
    ///
    /// # Errors
    ///
    /// When the file can't be removed.
    pub fn unwatch(&self, key: &CallKey) -> Result<(), StoreError> {
        private::remove(&self.overdue.join(key.name())).map(|_| ())
    }

    /// Remove notes that were written before `before` (seconds since 1970).
    ///
    /// # Errors
    ///
    /// When the folder can't be read.
    pub fn expire(&self, before: u64) -> Result<(), StoreError> {
        let folders: [&Utf8Path; 2] = [&self.folder, &self.overdue];
        folders
            .into_iter()
            .try_for_each(|folder| private::remove_older(folder, before))
    }
}
