//! Judges a call of ssh by the SSH section, in Fence's order: hosts denied, hosts
//! allowed, then each remote command: inherited denials, denied, all allowed, allowed.

use super::call::{SshCall, host_of, read_call};
use super::copies;
use crate::command::{Arg, Command, Finding, Judge, walk};
use crate::pattern::{Match, Pattern};
use crate::rule;
use crate::{Matched, RuleKind, Verdict};

/// The SSH section, ready to judge.
#[derive(Debug, Clone, Default)]
pub(crate) struct SshRules {
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) denied_hosts: Vec<String>,
    pub(crate) allowed_commands: Vec<Pattern>,
    pub(crate) denied_commands: Vec<Pattern>,
    pub(crate) allow_all_commands: bool,
    /// `command.deny`, when it is inherited.
    pub(crate) inherited: Vec<Pattern>,
    pub(crate) inherits_defaults: bool,
}

impl SshRules {
    /// Without a list of hosts the whole section is inactive, as in Fence.
    pub(crate) fn is_active(&self) -> bool {
        !self.allowed_hosts.is_empty() || !self.denied_hosts.is_empty()
    }

    /// What is to be said of `command`, if it reaches a host over SSH.
    pub(crate) fn judge(&self, program: &str, command: &Command<'_>) -> Finding {
        if !self.is_active() {
            return Finding::Pass;
        }
        if let Some(hosts) = copies::hosts(program, command.args) {
            return hosts
                .into_iter()
                .map(|(host, at)| self.host(&host, at))
                .find(|finding| *finding != Finding::Pass)
                .unwrap_or(Finding::Pass);
        }
        if !matches!(program, "ssh" | "autossh") {
            return Finding::Pass;
        }
        let call = read_call(command.args);
        self.call(&call)
    }

    fn call(&self, call: &SshCall<'_>) -> Finding {
        let Some(host) = call.host else {
            return Finding::Pass;
        };
        let own = self.host(host_of(&host.text), call.host_at);
        if own != Finding::Pass {
            return own;
        }
        for (hop, at) in &call.hosts {
            let found = self.host(hop, *at);
            if found != Finding::Pass {
                return found;
            }
        }
        if let Some((proxy, at)) = &call.proxy {
            return deny("allowedHosts", "", proxy, *at);
        }
        if let Some((option, at)) = &call.unknown {
            return Finding::Unclear(format!("behind `{option}` ssh may reach any host"), *at);
        }
        if call.command.is_empty() {
            return Finding::Pass;
        }
        let at = call.host_at + 1;
        if !self.allow_all_commands && self.allowed_commands.is_empty() {
            let words: Vec<&str> = call.command.iter().map(|arg| arg.text.as_str()).collect();
            return deny("allowedCommands", "", &words.join(" "), at);
        }
        // The far shell reads the words joined by blanks.
        let words: Vec<&str> = call.command.iter().map(|arg| arg.text.as_str()).collect();
        match walk(&Remote(self), &words.join(" ")) {
            Verdict::Allow if call.command.iter().all(Arg::is_exact) => Finding::Pass,
            Verdict::Allow => Finding::Unclear(
                "the remote command is only known when it runs".to_owned(),
                at,
            ),
            Verdict::Deny { rule, .. } => Finding::Deny(rule, at),
            Verdict::Unclear { reason, .. } => Finding::Unclear(reason, at),
        }
    }

    fn host(&self, host: &str, at: usize) -> Finding {
        if host.contains('\u{fffd}') {
            return Finding::Unclear("the host is only known when it runs".to_owned(), at);
        }
        if let Some(pattern) = self
            .denied_hosts
            .iter()
            .find(|pattern| host_matches(pattern, host))
        {
            return deny("deniedHosts", pattern, host, at);
        }
        if !self.allowed_hosts.is_empty()
            && !self
                .allowed_hosts
                .iter()
                .any(|pattern| host_matches(pattern, host))
        {
            return deny("allowedHosts", "", host, at);
        }
        Finding::Pass
    }
}

fn deny(key: &'static str, rule: &str, subject: &str, at: usize) -> Finding {
    Finding::Deny(
        Matched {
            kind: RuleKind::Ssh(key),
            rule: rule.to_owned(),
            subject: subject.to_owned(),
            source: None,
        },
        at,
    )
}

/// Judges one remote command.
struct Remote<'a>(&'a SshRules);

impl Judge for Remote<'_> {
    fn judge(&self, command: &Command<'_>) -> Finding {
        let rules = self.0;
        let words: Vec<&str> = command.args.iter().map(|arg| arg.text.as_str()).collect();
        let words = words.join(" ");
        let lists = [
            ("inheritDeny", &rules.inherited),
            ("deniedCommands", &rules.denied_commands),
        ];
        for (key, patterns) in lists {
            for pattern in patterns {
                match pattern.denies(command) {
                    Match::No => {}
                    Match::Yes(_) => return deny(key, &pattern.written, &words, 0),
                    Match::Maybe(at) => {
                        return Finding::Unclear(format!("it may be `{}`", pattern.written), at);
                    }
                }
            }
        }
        if rules.inherits_defaults
            && let Some(program) = command.args.first().and_then(|arg| arg.program())
            && let Some((_, pattern, Match::Yes(_))) = rule::find(program, command)
        {
            return deny("inheritDeny", &pattern, &words, 0);
        }
        let allowed = rules.allow_all_commands
            || rules
                .allowed_commands
                .iter()
                .any(|pattern| pattern.covers(command.args));
        if allowed {
            return Finding::Pass;
        }
        deny("allowedCommands", "", &words, 0)
    }

    fn follows_ssh(&self) -> bool {
        false
    }
}

/// `*` stands for anything, anywhere; case doesn't matter.
pub(crate) fn host_matches(pattern: &str, host: &str) -> bool {
    fn matches(pattern: &[u8], text: &[u8]) -> bool {
        // Greedy with one way back, which is enough for stars alone.
        let (mut at, mut star) = (0, None);
        let mut next = 0;
        while at < text.len() {
            match pattern.get(next) {
                Some(b'*') => {
                    star = Some((next, at));
                    next += 1;
                }
                Some(byte) if byte.eq_ignore_ascii_case(&text[at]) => {
                    next += 1;
                    at += 1;
                }
                _ => match star {
                    Some((position, taken)) => {
                        next = position + 1;
                        at = taken + 1;
                        star = Some((position, at));
                    }
                    None => return false,
                },
            }
        }
        pattern[next..].iter().all(|byte| *byte == b'*')
    }
    matches(pattern.as_bytes(), host.as_bytes())
}
