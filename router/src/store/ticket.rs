//! The note that a rewritten call is due.

use boxery_pin::{AgentId, DriftRule, RemotePath, SessionId, VmName};
use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::private::{self, Durability, StoreError, sha256_hex};

/// What `boxery run` learns from the hook that rewrote its call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// Version of this shape.
    pub version: u32,
    /// The agent.
    pub agent: AgentId,
    /// Its session.
    pub session: Option<SessionId>,
    /// The subagent that makes the call, when it isn't the main one.
    pub subagent: Option<String>,
    /// The call.
    pub call: Option<String>,
    /// The VM.
    pub vm: VmName,
    /// The folder on the VM.
    pub folder: RemotePath,
    /// Whether the agent's own shell goes on in the folder in which it ended.
    #[serde(default)]
    pub keeps_folder: bool,
    /// The drift rule of the pin, when it has one.
    pub drift: Option<DriftRule>,
    /// The policy that judged the text.
    pub policy: Option<JudgedBy>,
    /// The SHA-256 of the text, in hex.
    pub text_sha256: String,
    /// When it was written, seconds since 1970.
    pub written_at: u64,
    /// When it is worth nothing any more, seconds since 1970.
    pub expires_at: u64,
}

/// The policy that judged a text, so that the run can ask the same one again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgedBy {
    /// Its digest.
    pub digest: String,
    /// The folder on the laptop for which it was found.
    pub folder: Option<Utf8PathBuf>,
    /// The pinned project, as the hook knew it: agents tell it to their hooks alone.
    pub project: Option<Utf8PathBuf>,
}

impl Ticket {
    /// The version that this build writes.
    pub const VERSION: u32 = 1;
    /// How long a call may wait, for instance on the user's permission.
    pub const LIFETIME: u64 = 24 * 3600;

    /// The digest that a ticket holds of its text.
    pub fn digest(text: &str) -> String {
        sha256_hex(&[text.as_bytes()])
    }
}

/// A ticket's file name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TicketName(String);

/// The folder of tickets.
#[derive(Debug, Clone)]
pub struct Tickets {
    folder: Utf8PathBuf,
}

impl Tickets {
    /// The store in `folder`, which is made by the first write.
    pub fn new(folder: Utf8PathBuf) -> Self {
        Self { folder }
    }

    /// Write `ticket`; `random` is 32 fresh hex digits.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    pub fn write(&self, ticket: &Ticket, random: &str) -> Result<TicketName, StoreError> {
        let key = key(&ticket.vm, &ticket.folder, &ticket.text_sha256);
        let name = format!("{key}.{random}.json");
        private::write_record(&self.folder, &name, ticket, Durability::UntilRestart)?;
        Ok(TicketName(name))
    }

    /// Take the ticket for running `text` in `folder` on `vm`: the oldest that
    /// is still good, by one rename, so that no two runs get the same one.
    ///
    /// # Errors
    ///
    /// When the folder or a ticket in it can't be read.
    pub fn take(
        &self,
        vm: &VmName,
        folder: &RemotePath,
        text: &str,
        now: u64,
    ) -> Result<Option<Ticket>, StoreError> {
        let digest = Ticket::digest(text);
        let start = format!("{}.", key(vm, folder, &digest));
        let taken = self.folder.join("taken");
        let mut waiting = Vec::new();
        for name in private::names(&self.folder)? {
            if !name.starts_with(&start) {
                continue;
            }
            let Some(ticket) = private::read_record::<Ticket>(&self.folder.join(&name))? else {
                continue;
            };
            let sound = ticket.version == Ticket::VERSION
                && ticket.vm == *vm
                && ticket.folder == *folder
                && ticket.text_sha256 == digest;
            if !sound {
                return Err(StoreError::Malformed {
                    path: self.folder.join(&name),
                    problem: "it is for another run".to_owned(),
                });
            }
            if ticket.expires_at > now {
                waiting.push((ticket.written_at, name, ticket));
            }
        }
        waiting.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        for (_, name, ticket) in waiting {
            if self.claim(&name, &taken)? {
                return Ok(Some(ticket));
            }
        }
        Ok(None)
    }

    fn claim(&self, name: &str, taken: &Utf8Path) -> Result<bool, StoreError> {
        let from = self.folder.join(name);
        let to = taken.join(name);
        let mut made = false;
        loop {
            match std::fs::rename(&from, &to) {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    if made || taken.exists() {
                        return Ok(false);
                    }
                    private::create_folder(taken)?;
                    made = true;
                }
                Err(source) => return Err(StoreError::Write { path: to, source }),
            }
        }
    }

    /// Whether the ticket is still there.
    ///
    /// # Errors
    ///
    /// When the folder can't be looked at.
    pub fn is_waiting(&self, name: &TicketName) -> Result<bool, StoreError> {
        let path = self.folder.join(&name.0);
        path.try_exists()
            .map_err(|source| StoreError::Read { path, source })
    }

    /// Take a ticket back whose call won't run.
    ///
    /// # Errors
    ///
    /// When the file can't be removed.
    pub fn withdraw(&self, name: &TicketName) -> Result<(), StoreError> {
        private::remove(&self.folder.join(&name.0)).map(|_| ())
    }

    /// Remove what has expired, taken or not.
    ///
    /// # Errors
    ///
    /// When the folder can't be read.
    pub fn expire(&self, now: u64) -> Result<(), StoreError> {
        let before = now.saturating_sub(Ticket::LIFETIME);
        private::remove_older(&self.folder, before)?;
        private::remove_older(&self.folder.join("taken"), before)
    }
}

fn key(vm: &VmName, folder: &RemotePath, text_sha256: &str) -> String {
    sha256_hex(&[
        vm.as_str().as_bytes(),
        folder.as_str().as_bytes(),
        text_sha256.as_bytes(),
    ])
}
