//! What is asked, and what is answered.

use std::fmt;

/// What an agent is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action<'a> {
    /// Run a text of shell.
    Command(&'a str),
    /// Write a file, as a tool declares it.
    Write {
        /// The path, as given.
        path: &'a str,
        /// The folder that a relative one stands in.
        folder: Option<&'a str>,
    },
    /// Reach a URL, as a tool declares it.
    Url(&'a str),
}

/// Bytes of the text that was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte behind the last.
    pub end: usize,
}

/// What the policy says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing against it.
    Allow,
    /// A rule forbids it.
    Deny {
        /// The rule.
        rule: Matched,
        /// The words that decided it.
        span: Span,
    },
    /// It can't be told before it runs.
    Unclear {
        /// Why, as half a sentence.
        reason: String,
        /// The words that it hangs on.
        span: Span,
    },
}

/// The rule that forbids something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matched {
    /// What kind of rule.
    pub kind: RuleKind,
    /// The rule, as written.
    pub rule: String,
    /// What it forbids, in the words of the call.
    pub subject: String,
    /// Where the rule stands, when a file says it.
    pub source: Option<String>,
}

/// The kinds of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleKind {
    /// An entry of `command.deny`.
    Command,
    /// One of the rules that hold without being written; its name.
    Default(&'static str),
    /// The SSH section: the key that decided.
    Ssh(&'static str),
    /// An entry of `filesystem.denyWrite`.
    DenyWrite,
    /// No entry of `filesystem.allowWrite`.
    NotWritable,
    /// A file that other programs run or read settings from.
    DangerousFile,
    /// A path that can't be judged.
    BadPath,
    /// An entry of `network.deniedDomains`.
    DeniedDomain,
    /// No entry of `network.allowedDomains`.
    UnknownDomain,
    /// A URL that can't be judged.
    BadUrl,
}

impl fmt::Display for Matched {
    /// A clause: what is refused, and by which rule.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            rule,
            subject,
            source: _,
        } = self;
        let subject = shortened(subject);
        match kind {
            RuleKind::Command => write!(
                f,
                "`{subject}` is denied by the rule `{rule}` of `command.deny`"
            ),
            RuleKind::Default(name) => write!(
                f,
                "`{subject}` is denied by the default rule `{rule}` ({name})"
            ),
            RuleKind::Ssh(key) if rule.is_empty() => {
                write!(f, "`{subject}` is denied by `ssh.{key}`")
            }
            RuleKind::Ssh(key) => write!(f, "`{subject}` is denied by `{rule}` of `ssh.{key}`"),
            RuleKind::DenyWrite => write!(
                f,
                "writing `{subject}` is denied by the rule `{rule}` of `filesystem.denyWrite`"
            ),
            RuleKind::NotWritable => write!(
                f,
                "writing `{subject}` is denied, because no rule of `filesystem.allowWrite` covers it"
            ),
            RuleKind::DangerousFile => write!(
                f,
                "writing `{subject}` is denied, because `{rule}` can make other programs run something"
            ),
            RuleKind::BadPath => write!(f, "writing `{subject}` is denied, because {rule}"),
            RuleKind::DeniedDomain => write!(
                f,
                "reaching `{subject}` is denied by the rule `{rule}` of `network.deniedDomains`"
            ),
            RuleKind::UnknownDomain => write!(
                f,
                "reaching `{subject}` is denied, because no rule of `network.allowedDomains` covers it"
            ),
            RuleKind::BadUrl => write!(f, "reaching `{subject}` is denied, because {rule}"),
        }
    }
}

/// A text on one line, and not too long of it.
fn shortened(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= 160 {
        return line;
    }
    line.chars().take(157).chain("...".chars()).collect()
}
