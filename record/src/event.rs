//! What a line says.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A session of an agent began or went on.
    SessionStart,
    /// A session ended.
    SessionEnd,
    /// A call was judged.
    Decision,
    /// A rewritten call arrived at `boxery run`.
    TicketTaken,
    /// A command started in the VM.
    RunStarted,
    /// A command was not run, because of the policy.
    RunRefused,
    /// A command in the VM ended.
    RunEnded,
    /// A call ran as something else than what it was rewritten to.
    Escaped,
    /// A project, session or process was pinned.
    Pin,
    /// A pin was removed or ended.
    Unpin,
    /// The hook was installed.
    Install,
    /// The hook was removed.
    Uninstall,
    /// A redirect was proven, or the proof failed.
    Proof,
    /// The log itself was found unfinished or cut; see [`Gap`].
    Gap,
    /// A word of another version.
    #[serde(untagged)]
    Other(String),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SessionStart => "session_start",
            Self::SessionEnd => "session_end",
            Self::Decision => "decision",
            Self::TicketTaken => "ticket_taken",
            Self::RunStarted => "run_started",
            Self::RunRefused => "run_refused",
            Self::RunEnded => "run_ended",
            Self::Escaped => "escaped",
            Self::Pin => "pin",
            Self::Unpin => "unpin",
            Self::Install => "install",
            Self::Uninstall => "uninstall",
            Self::Proof => "proof",
            Self::Gap => "gap",
            Self::Other(word) => word,
        })
    }
}

/// Who saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// A program on the laptop said so: a hook, or a verb.
    ClientAttested,
    /// It was seen in the VM.
    VmObserved,
}

/// What the log lacks before this line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Bytes after the last good line that aren't a line of the chain.
    pub bytes: u64,
    /// Their SHA-256, without the line end that closes them.
    pub sha256: String,
    /// Whether they held a line end: a torn write never does.
    pub foreign: bool,
    /// Whether the file `head` was absent or unreadable.
    pub headless: bool,
}

/// One event. Texts of commands never stand here, only their digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, seconds since 1970; on disk `2026-05-04T12:00:00Z`.
    #[serde(with = "timestamp")]
    pub time: u64,
    /// What happened.
    pub kind: Kind,
    /// Who saw it.
    pub tier: Tier,
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Its subagent, when it isn't the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    /// The call's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The VM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<String>,
    /// The pin's mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The decision: `pass`, `deny`, `ask` or `rewrite`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// The rule that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// SHA-256 of the command's text, by [`sha256_hex`](crate::sha256_hex).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_sha256: Option<String>,
    /// The exit status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// How many bytes of output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Words for the reader, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What the log lacks before this line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
}

impl Event {
    /// When, as it stands on disk: `2026-05-04T12:00:00Z`.
    pub fn time_text(&self) -> String {
        time_text(self.time)
    }

    /// An event with nothing but what it must have, `client_attested`.
    pub fn new(time: u64, kind: Kind) -> Self {
        Self {
            time,
            kind,
            tier: Tier::ClientAttested,
            agent: None,
            session: None,
            subagent: None,
            call: None,
            tool: None,
            vm: None,
            mode: None,
            decision: None,
            rule: None,
            command_sha256: None,
            exit: None,
            bytes: None,
            detail: None,
            gap: None,
        }
    }
}

/// An event as it stands in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Version of the shape.
    pub v: u32,
    /// Its number; the first line ever has 1.
    pub seq: u64,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// The `hash` of the line before; zeros for the first line ever.
    pub prev: String,
    /// SHA-256 of this line without this field.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hash: String,
}

impl Entry {
    /// The version that this build writes.
    pub const VERSION: u32 = 1;
}

/// Seconds since 1970 as RFC 3339 text in UTC.
mod timestamp {
    use jiff::Timestamp;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde's `with` hands a reference"
    )]
    pub(super) fn serialize<S: Serializer>(time: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&super::timestamp_of(*time))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time: Timestamp = text.parse().map_err(D::Error::custom)?;
        u64::try_from(time.as_second()).map_err(D::Error::custom)
    }
}

/// Seconds since 1970 as the log spells them: `2026-05-04T12:00:00Z`.
pub fn time_text(time: u64) -> String {
    timestamp_of(time).to_string()
}

/// `time` for display; one past what the calendar can tell is its last moment.
pub(crate) fn timestamp_of(time: u64) -> jiff::Timestamp {
    i64::try_from(time)
        .ok()
        .and_then(|time| jiff::Timestamp::from_second(time).ok())
        .unwrap_or(jiff::Timestamp::MAX)
}
