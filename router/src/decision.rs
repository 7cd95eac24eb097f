//! What happens to a call.

use boxery_pin::RemotePath;

use crate::Denial;

/// The router's answer to a [`HookEvent`](crate::HookEvent).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// boxery has no opinion: the agent goes on as if there were no hook.
    Pass,
    /// boxery has no opinion on the call, and something to tell the model.
    Tell {
        /// Full sentences for the model.
        context: String,
    },
    /// The call must not run.
    Deny {
        /// The rule that decided, a stable word such as `guard`.
        rule: &'static str,
        /// Full sentences for the model: what was refused, what to do instead.
        reason: String,
    },
    /// The user decides; an agent without a user denies.
    Ask {
        /// The rule that decided.
        rule: &'static str,
        /// Full sentences for the user.
        reason: String,
        /// The text to run when the user agrees; never runs the original on the laptop.
        command: String,
    },
    /// The call runs another text instead.
    Rewrite {
        /// The text, for a POSIX shell.
        command: String,
        /// What is said of the permission.
        grant: Grant,
    },
}

/// Whether a rewrite also answers the agent's permission question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// Say nothing: the agent asks as ever.
    None,
    /// The user's own rules allow the original text, or the user chose
    /// `--auto-approve`.
    Allow,
}

/// A decision, the rule behind it, and what must be on disk before it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// What the agent is told.
    pub decision: Decision,
    /// The rule that decided, a stable word for the record.
    pub rule: &'static str,
    /// What the record says besides, without words of the command.
    pub detail: Option<String>,
    /// The run that is due when the agent honours a rewrite.
    pub due: Option<Due>,
}

/// A run that a rewritten call will ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// The folder on the VM.
    pub folder: RemotePath,
    /// The model's own text, which the VM's bash gets.
    pub text: String,
    /// How the text travels to `boxery run`.
    pub carriage: Carriage,
    /// The digest of the policy that had nothing against the text.
    pub policy: Option<String>,
}

/// How a text gets from the hook to `boxery run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carriage {
    /// As the last argument.
    Argument,
    /// In a private file, named by a token.
    Spool,
}

impl Ruling {
    pub(crate) fn pass(rule: &'static str) -> Self {
        Self {
            decision: Decision::Pass,
            rule,
            detail: None,
            due: None,
        }
    }

    pub(crate) fn deny(rule: &'static str, reason: String) -> Self {
        Self {
            decision: Decision::Deny { rule, reason },
            rule,
            detail: None,
            due: None,
        }
    }

    /// The policy's own denial.
    pub(crate) fn refuse(denial: Denial) -> Self {
        Self {
            detail: Some(denial.detail),
            ..Self::deny(denial.rule, denial.reason)
        }
    }
}
