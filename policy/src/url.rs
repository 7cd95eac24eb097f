//! Judges a declared URL: the network section's rules on its host.

use crate::{Matched, RuleKind, Span, Verdict};

/// Schemes that an agent's tools may reach.
const SCHEMES: &[&str] = &["http", "https", "ws", "wss"];

/// The network section, as far as names are concerned.
#[derive(Debug, Clone, Default)]
pub(crate) struct DomainRules {
    /// Each with the file that says it.
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<(String, String)>,
}

impl DomainRules {
    pub(crate) fn judge(&self, url: &str) -> Verdict {
        let deny = |kind: RuleKind, rule: &str, source: Option<&str>| Verdict::Deny {
            rule: Matched {
                kind,
                rule: rule.to_owned(),
                subject: url.to_owned(),
                source: source.map(str::to_owned),
            },
            span: Span {
                start: 0,
                end: url.len(),
            },
        };
        let host = match host(url) {
            Ok(host) => host,
            Err(problem) => return deny(RuleKind::BadUrl, problem, None),
        };
        if let Some((rule, source)) = self.deny.iter().find(|(rule, _)| matches(rule, &host)) {
            return deny(RuleKind::DeniedDomain, rule, Some(source));
        }
        if self.allow.iter().any(|rule| matches(rule, &host)) {
            return Verdict::Allow;
        }
        deny(RuleKind::UnknownDomain, "", None)
    }
}

/// The host in a URL, in lower case, or why there is none.
fn host(url: &str) -> Result<String, &'static str> {
    let Some((scheme, rest)) = url.split_once(':') else {
        return Err("it has no scheme");
    };
    let letters = scheme
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if scheme.is_empty() || !letters || !rest.starts_with("//") {
        return Err("it has no scheme");
    }
    if !SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()) {
        return Err("its scheme is none of http, https, ws, wss");
    }
    let authority = rest[2..]
        .split(['/', '?', '#', '\\'])
        .next()
        .unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host = if host.starts_with('[') {
        host.split(']')
            .next()
            .unwrap_or(host)
            .trim_start_matches('[')
    } else {
        host.split(':').next().unwrap_or(host)
    };
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err("it has no host");
    }
    Ok(host.to_ascii_lowercase())
}

/// An exact name, `*.name` for what lies below, or `*`.
fn matches(rule: &str, host: &str) -> bool {
    if rule == "*" {
        return true;
    }
    let rule = rule.to_ascii_lowercase();
    match rule.strip_prefix("*.") {
        Some(base) => host
            .strip_suffix(base)
            .is_some_and(|before| before.len() > 1 && before.ends_with('.')),
        None => rule == host,
    }
}
