//! What happens to a call.

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
        /// The text to run when the user agrees; never the original.
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
