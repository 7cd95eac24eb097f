//! What a call's end says about the answer before it.

use serde::{Deserialize, Serialize};

use crate::store::sha256_hex;
use crate::{CallNote, CallOutcome, ToolAction, ToolCall, ToolOutcome, parse_simple_command};

/// A plain call of a program whose exit status 1 is an answer, not a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlainCommand {
    /// `grep`, `egrep`, `fgrep`.
    Grep,
    /// `rg`.
    Rg,
    /// `find`.
    Find,
    /// `diff`, `cmp`.
    Diff,
    /// `test`.
    Test,
}

impl PlainCommand {
    /// The kind of `text`, when it is one simple command of such a program.
    pub fn of(text: &str) -> Option<Self> {
        let words = parse_simple_command(text).ok()?;
        match words.first()?.rsplit('/').next()? {
            "grep" | "egrep" | "fgrep" => Some(Self::Grep),
            "rg" => Some(Self::Rg),
            "find" => Some(Self::Find),
            "diff" | "cmp" => Some(Self::Diff),
            "test" => Some(Self::Test),
            _ => None,
        }
    }

    /// What its exit status 1 says, for the model.
    pub fn meaning_of_one(self) -> &'static str {
        match self {
            Self::Grep | Self::Rg => "exit status 1 means no match here, not a failure",
            Self::Find => {
                "exit status 1 of find means that some folders could not be read; an empty list means no match"
            }
            Self::Diff => "exit status 1 means that the files differ (no match), not a failure",
            Self::Test => {
                "exit status 1 means that the condition is false (no match), not a failure"
            }
        }
    }
}

/// What a call's end shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Nothing of note.
    Fine,
    /// The call ran elsewhere than it should have: the session drops to guard.
    Escaped {
        /// A clause for the alarm.
        reason: String,
    },
    /// A shell call ended whose begin this hook never saw.
    Unseen,
    /// The exit status is an answer.
    Answered(PlainCommand),
}

/// What the end of `call` shows, given what was noted when it began.
pub fn review(call: &ToolCall, outcome: &ToolOutcome, note: Option<&CallNote>) -> Finding {
    let (ToolAction::Shell { command, .. } | ToolAction::Carrier { command, .. }) = &call.action
    else {
        return Finding::Fine;
    };
    let Some(note) = note else {
        return match &call.action {
            ToolAction::Shell { .. } => Finding::Unseen,
            ToolAction::Carrier { .. }
            | ToolAction::Files { .. }
            | ToolAction::Fetch { .. }
            | ToolAction::OwnMcp
            | ToolAction::Other => Finding::Fine,
        };
    };
    match &note.outcome {
        CallOutcome::Passed => Finding::Fine,
        CallOutcome::Denied => match outcome {
            // Some agents report a denied call as a failure without a status.
            ToolOutcome::Failure { exit: None } => Finding::Fine,
            ToolOutcome::Success | ToolOutcome::Failure { exit: Some(_) } => Finding::Escaped {
                reason: "the agent ran a call that boxery had denied".to_owned(),
            },
        },
        CallOutcome::Rewritten {
            text_sha256, plain, ..
        } => {
            if sha256_hex(&[command.as_bytes()]) != *text_sha256 {
                return Finding::Escaped {
                    reason: "the agent ran another text than the one boxery wrote".to_owned(),
                };
            }
            match (outcome, plain) {
                (ToolOutcome::Failure { exit: Some(1) }, Some(plain)) => Finding::Answered(*plain),
                (ToolOutcome::Success | ToolOutcome::Failure { .. }, _) => Finding::Fine,
            }
        }
    }
}
