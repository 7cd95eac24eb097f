//! A policy, ready to judge.

use crate::command::{Command, Finding, Judge, walk};
use crate::file::{Content, Key, Origin, Resolved, Said, Section};
use crate::path::{PathRule, Roots, WriteRules, is_dangerous};
use crate::pattern::{Match, Pattern};
use crate::rule;
use crate::ssh::SshRules;
use crate::url::DomainRules;
use crate::{Action, Matched, REGISTRIES, RuleKind, Verdict};

/// Every rule that holds for a call.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Each has to agree.
    layers: Vec<Layer>,
}

/// One resolved policy.
#[derive(Debug, Clone)]
struct Layer {
    origin: Origin,
    digest: String,
    sections: Vec<Section>,
    allow: Vec<Pattern>,
    /// With the file that says it.
    deny: Vec<(Pattern, String)>,
    defaults: bool,
    ssh: SshRules,
    writes: WriteRules,
    domains: DomainRules,
    /// What may not be read.
    reads: Vec<PathRule>,
}

impl Policy {
    /// The policy that `resolved` says, with paths bound to `roots`.
    pub fn new(resolved: &Resolved, roots: &Roots<'_>) -> Self {
        Self {
            layers: vec![Layer::new(resolved, roots)],
        }
    }

    /// Both policies at once: what either forbids is forbidden.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.layers.extend(other.layers);
        self
    }

    /// What the policy says of `action`.
    pub fn evaluate(&self, action: Action<'_>) -> Verdict {
        let mut unclear = None;
        for layer in &self.layers {
            match layer.evaluate(action) {
                Verdict::Allow => {}
                denied @ Verdict::Deny { .. } => return denied,
                open @ Verdict::Unclear { .. } => {
                    unclear.get_or_insert(open);
                }
            }
        }
        unclear.unwrap_or(Verdict::Allow)
    }

    /// Whether `filesystem.denyRead` names the file at the absolute `path`: it stays on
    /// the laptop then. A relative pattern stands in `folder` here.
    pub fn denies_read(&self, path: &str, folder: &str) -> bool {
        let mut rules = self.layers.iter().flat_map(|layer| &layer.reads);
        rules.any(|rule| rule.names(path, folder))
    }

    /// Whether `filesystem.denyWrite` names the file at the absolute `path`, or other
    /// programs run it or take settings from it, whatever else may be written.
    pub fn keeps_from_change(&self, path: &str, folder: &str) -> bool {
        let mut rules = self.layers.iter().flat_map(|layer| &layer.writes.deny);
        is_dangerous(path) || rules.any(|rule| rule.names(path, folder))
    }

    /// Whether `registries` stands among the hosts that may be reached.
    pub fn wants_registries(&self) -> bool {
        self.layers
            .iter()
            .any(|layer| layer.domains.allow.iter().any(|host| host == REGISTRIES))
    }

    /// This policy with `hosts` in the place of `registries`.
    #[must_use]
    pub fn with_registries(mut self, hosts: &[String]) -> Self {
        for layer in &mut self.layers {
            let allow = &mut layer.domains.allow;
            if allow.iter().any(|host| host == REGISTRIES) {
                allow.extend_from_slice(hosts);
            }
        }
        self
    }

    /// Whether no file says anything, so that only the default rules hold.
    pub fn is_default(&self) -> bool {
        self.layers
            .iter()
            .all(|layer| layer.origin == Origin::Nobody)
    }

    /// The files that say it, as they are told to the user.
    pub fn names(&self) -> Vec<&str> {
        self.layers
            .iter()
            .filter(|layer| layer.origin != Origin::Nobody)
            .map(|layer| layer.origin.name())
            .collect()
    }

    /// What would have to be enforced where commands run.
    pub fn sections(&self) -> Vec<Section> {
        let mut sections: Vec<Section> = self
            .layers
            .iter()
            .flat_map(|layer| layer.sections.clone())
            .collect();
        sections.sort_unstable();
        sections.dedup();
        sections
    }

    /// What tells this policy from any other.
    pub fn digest(&self) -> String {
        self.layers
            .iter()
            .map(|layer| layer.digest.as_str())
            .collect::<Vec<_>>()
            .join("+")
    }
}

fn patterns(entries: &[Said<String>]) -> impl Iterator<Item = (Pattern, String)> + '_ {
    entries
        .iter()
        .filter_map(|said| Some((Pattern::parse(&said.value)?, said.source.clone())))
}

impl Layer {
    fn new(resolved: &Resolved, roots: &Roots<'_>) -> Self {
        let content: &Content = &resolved.content;
        let only = |key: Key| {
            patterns(content.texts(key))
                .map(|(pattern, _)| pattern)
                .collect::<Vec<_>>()
        };
        let values = |key: Key| {
            content
                .texts(key)
                .iter()
                .map(|said| said.value.clone())
                .collect::<Vec<_>>()
        };
        let paths = |key: Key| {
            content
                .texts(key)
                .iter()
                .map(|said| PathRule::new(&said.value, &said.source, roots))
                .collect::<Vec<_>>()
        };
        let defaults = content.switch(Key::UseDefaults).unwrap_or(true);
        let inherits = content.switch(Key::InheritDeny).unwrap_or(false);
        Self {
            origin: resolved.origin.clone(),
            digest: resolved.digest.clone(),
            sections: content.sections(),
            allow: only(Key::Allow),
            deny: patterns(content.texts(Key::Deny)).collect(),
            defaults,
            ssh: SshRules {
                allowed_hosts: values(Key::AllowedHosts),
                denied_hosts: values(Key::DeniedHosts),
                allowed_commands: only(Key::AllowedCommands),
                denied_commands: only(Key::DeniedCommands),
                allow_all_commands: content.switch(Key::AllowAllCommands).unwrap_or(false),
                inherited: if inherits {
                    only(Key::Deny)
                } else {
                    Vec::new()
                },
                inherits_defaults: inherits && defaults,
            },
            reads: paths(Key::DenyRead),
            writes: WriteRules {
                allow: paths(Key::AllowWrite),
                deny: paths(Key::DenyWrite),
            },
            domains: DomainRules {
                allow: values(Key::AllowedDomains),
                deny: content
                    .texts(Key::DeniedDomains)
                    .iter()
                    .map(|said| (said.value.clone(), said.source.clone()))
                    .collect(),
            },
        }
    }

    fn evaluate(&self, action: Action<'_>) -> Verdict {
        match action {
            Action::Command(text) => {
                let says_something = self.defaults || !self.deny.is_empty() || self.ssh.is_active();
                if !says_something || text.trim().is_empty() {
                    return Verdict::Allow;
                }
                walk(self, text)
            }
            // Without a file, files and hosts are as over plain SSH.
            Action::Write { .. } | Action::Url(_) if self.origin == Origin::Nobody => {
                Verdict::Allow
            }
            Action::Write { path, folder } => self.writes.judge(path, folder),
            Action::Url(url) => self.domains.judge(url),
        }
    }
}

impl Judge for Layer {
    fn judge(&self, command: &Command<'_>) -> Finding {
        let Some(program) = command.args.first().and_then(|arg| arg.program()) else {
            return Finding::Pass;
        };
        let words = || {
            let words: Vec<&str> = command.args.iter().map(|arg| arg.text.as_str()).collect();
            words.join(" ").replace('\u{fffd}', "…")
        };
        let maybe = |rule: &str, at: usize| {
            Finding::Unclear(
                format!("whether it is `{rule}` is only known when it runs"),
                at,
            )
        };
        let mut open = None;
        if !self.allow.iter().any(|rule| rule.covers(command.args)) {
            for (rule, source) in self.deny.iter().filter(|(rule, _)| rule.program == program) {
                match rule.denies(command) {
                    Match::No => {}
                    Match::Maybe(at) => drop(open.get_or_insert_with(|| maybe(&rule.written, at))),
                    Match::Yes(at) => {
                        return Finding::Deny(
                            Matched {
                                kind: RuleKind::Command,
                                rule: rule.written.clone(),
                                subject: words(),
                                source: Some(source.clone()),
                            },
                            at,
                        );
                    }
                }
            }
            if self.defaults
                && let Some((rule, written, found)) = rule::find(program, command)
            {
                match found {
                    Match::No => {}
                    Match::Maybe(at) => drop(open.get_or_insert_with(|| maybe(&written, at))),
                    Match::Yes(at) => {
                        return Finding::Deny(
                            Matched {
                                kind: RuleKind::Default(rule.name),
                                rule: written,
                                subject: words(),
                                source: None,
                            },
                            at,
                        );
                    }
                }
            }
        }
        match self.ssh.judge(program, command) {
            Finding::Pass => open.unwrap_or(Finding::Pass),
            Finding::Deny(mut matched, at) => {
                matched.source = Some(self.origin.name().to_owned());
                Finding::Deny(matched, at)
            }
            unclear @ Finding::Unclear(..) => unclear,
        }
    }

    fn follows_ssh(&self) -> bool {
        true
    }
}
