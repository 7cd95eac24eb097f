//! What the policy says of a command, in words for a model.

use boxery_policy::{Action, Matched, Policy, Verdict};

/// The rule of a denial because nothing can be told.
pub(crate) const UNCLEAR: &str = "policy-unclear";

/// What follows from the policy's verdict on a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// Nothing against it.
    Clear,
    /// What it runs can't be told, and no policy file says anything: it may run in a
    /// VM, and never on the laptop.
    Open {
        /// Why not, as half a sentence.
        reason: String,
    },
    /// It must not run.
    Refused(Denial),
}

/// Why a text must not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// A stable word for the record.
    pub rule: &'static str,
    /// One or two sentences for the model: what was refused, by which rule of which
    /// file, what to do instead.
    pub reason: String,
    /// The rule for the record, without words of the command.
    pub detail: String,
}

/// Judge `text`, a text of POSIX shell, by `policy`.
pub fn judge(policy: &Policy, text: &str) -> Judgement {
    match policy.evaluate(Action::Command(text)) {
        Verdict::Allow => Judgement::Clear,
        Verdict::Deny { rule, .. } => Judgement::Refused(denied(&rule)),
        Verdict::Unclear { reason, .. } if policy.is_default() => Judgement::Open { reason },
        Verdict::Unclear { reason, .. } => Judgement::Refused(unclear(policy, &reason)),
    }
}

fn denied(rule: &Matched) -> Denial {
    let place = rule
        .source
        .as_ref()
        .map_or_else(String::new, |source| format!(" in {}", named(source)));
    Denial {
        rule: "policy",
        reason: format!(
            "{rule}{place}. Don't try it in another form: go on without it, or ask the user to do it."
        ),
        detail: match &rule.source {
            Some(source) => format!("`{}` in {source}", rule.rule),
            None => format!("`{}`, a default rule", rule.rule),
        },
    }
}

/// Judge what a tool declares that it is about to do.
pub(crate) fn judge_declared<'a>(
    policy: &Policy,
    actions: impl IntoIterator<Item = Action<'a>>,
) -> Option<Denial> {
    actions
        .into_iter()
        .find_map(|action| match policy.evaluate(action) {
            Verdict::Allow => None,
            Verdict::Deny { rule, .. } => Some(denied(&rule)),
            Verdict::Unclear { reason, .. } => Some(unclear(policy, &reason)),
        })
}

/// The denial of what can't be told before it runs, where a policy file says that it
/// matters.
pub(crate) fn unclear(policy: &Policy, reason: &str) -> Denial {
    let files: Vec<String> = policy.names().into_iter().map(named).collect();
    let files = files.join(" and ");
    Denial {
        rule: UNCLEAR,
        reason: format!(
            "the policy {files} lets nothing run that can't be judged before: {reason}. Write the command out, \
             with plain words for the program and what the rules look at."
        ),
        detail: format!("unclear under {files}"),
    }
}

/// The denial of everything while the policy can't be used.
pub(crate) fn broken(why: &str) -> Denial {
    Denial {
        rule: "policy-broken",
        reason: format!(
            "the policy that holds here can't be used, so no command runs: {why}. Ask the user to mend it."
        ),
        detail: why.to_owned(),
    }
}

/// A file or a template, as it is told.
fn named(source: &str) -> String {
    if source.contains('/') {
        format!("`{source}`")
    } else {
        source.to_owned()
    }
}
