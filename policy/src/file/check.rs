//! What a file may not say, each file by itself.

use super::content::Content;
use super::error::PolicyError;
use super::key::Key;

/// The value of `allowedDomains` that stands for what the VM's package managers use.
pub const REGISTRIES: &str = "registries";

/// Ports on which Fence's own proxies listen.
const RESERVED: [i64; 2] = [3128, 1080];

/// The first thing that is wrong.
pub(crate) fn check(content: &Content, source: &str) -> Result<(), PolicyError> {
    let wrong = |key: Key, problem: String| {
        Err(PolicyError::Value {
            file: source.to_owned(),
            key: key.path().to_owned(),
            problem,
        })
    };
    for key in [Key::AllowedDomains, Key::DeniedDomains] {
        for domain in content.texts(key) {
            if let Some(problem) = domain_problem(&domain.value) {
                return wrong(key, format!("`{}` {problem}", domain.value));
            }
        }
    }
    for port in content.numbers(Key::AllowLocalOutboundPorts) {
        if !(1..=65535).contains(&port.value) {
            return wrong(
                Key::AllowLocalOutboundPorts,
                format!("{} is no port", port.value),
            );
        }
        if RESERVED.contains(&port.value) {
            return wrong(
                Key::AllowLocalOutboundPorts,
                format!("{} is the sandbox's own proxy port", port.value),
            );
        }
    }
    if let Some(proxy) = content.text(Key::UpstreamProxy)
        && !is_proxy(proxy)
    {
        return wrong(
            Key::UpstreamProxy,
            format!("`{proxy}` isn't `http://HOST[:PORT]`"),
        );
    }
    if content.text(Key::DefaultAction) == Some("proxy")
        && content.text(Key::UpstreamProxy).is_none()
    {
        return wrong(
            Key::DefaultAction,
            "`proxy` needs `network.upstreamProxy` in the same file".to_owned(),
        );
    }
    for key in [
        Key::Deny,
        Key::Allow,
        Key::AllowedCommands,
        Key::DeniedCommands,
        Key::AllowRead,
        Key::AllowExecute,
        Key::DenyRead,
        Key::AllowWrite,
        Key::DenyWrite,
    ] {
        if content
            .texts(key)
            .iter()
            .any(|entry| entry.value.is_empty())
        {
            return wrong(key, "an entry is empty".to_owned());
        }
    }
    for key in [Key::AllowedHosts, Key::DeniedHosts] {
        for host in content.texts(key) {
            if let Some(problem) = host_problem(&host.value) {
                return wrong(key, format!("`{}` {problem}", host.value));
            }
        }
    }
    for device in content.texts(Key::DevicesAllow) {
        let inside = device
            .value
            .strip_prefix("/dev/")
            .is_some_and(|rest| !rest.is_empty() && !rest.split('/').any(|part| part == ".."));
        if !inside {
            return wrong(
                Key::DevicesAllow,
                format!("`{}` isn't below `/dev/`", device.value),
            );
        }
    }
    for key in [Key::MachLookup, Key::MachRegister] {
        for name in content.texts(key) {
            let star = name.value.find('*');
            if name.value.is_empty() || star.is_some_and(|at| at + 1 != name.value.len()) {
                return wrong(
                    key,
                    format!("`{}` isn't a name, `prefix*` or `*`", name.value),
                );
            }
        }
    }
    Ok(())
}

/// Why an entry isn't a domain; as a clause that follows the entry.
fn domain_problem(domain: &str) -> Option<&'static str> {
    if matches!(domain, "*" | "localhost" | REGISTRIES) {
        return None;
    }
    if domain.is_empty() {
        return Some("is empty");
    }
    if domain.contains("://") {
        return Some("has a scheme; a domain is only a name");
    }
    if domain.contains('/') {
        return Some("has a path; a domain is only a name");
    }
    if domain.contains(':') {
        return Some("has a port; a domain is only a name");
    }
    let base = domain.strip_prefix("*.").unwrap_or(domain);
    if base.contains('*') {
        return Some("has a `*` elsewhere than in front, as in `*.example.com`");
    }
    if base.starts_with('.') || base.ends_with('.') {
        return Some("begins or ends with a dot");
    }
    if !base.contains('.') {
        return Some("is a single word; a domain has a dot");
    }
    if base.split('.').any(str::is_empty) || base.contains(char::is_whitespace) {
        return Some("is no domain");
    }
    None
}

fn host_problem(host: &str) -> Option<&'static str> {
    if host.is_empty() {
        return Some("is empty");
    }
    if host.contains("://") {
        return Some("has a scheme; a host is only a name");
    }
    if host.contains('/') {
        return Some("has a `/`; a host is only a name");
    }
    if host.contains('@') {
        return Some("has a user; a host is only a name");
    }
    // More than one colon is an IPv6 address.
    if host.matches(':').count() == 1 {
        return Some("has a port; a host is only a name");
    }
    None
}

fn is_proxy(proxy: &str) -> bool {
    let Some(rest) = proxy.strip_prefix("http://") else {
        return false;
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !host.starts_with('[') || host.ends_with(']') => (host, Some(port)),
        _ => (rest, None),
    };
    !host.is_empty()
        && !host.contains(['/', '@', '?', '#'])
        && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}
