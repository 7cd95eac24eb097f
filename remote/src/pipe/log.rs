//! What ssh's log says, as the errors that the native pipe gives.

use camino::Utf8Path;

use crate::known_hosts::host_name;
use crate::{HostOptions, RemoteError};

/// Why ssh ended with 255; `None` when it says nothing (then it was the command).
pub(super) fn failure(path: &Utf8Path, options: &HostOptions) -> Option<RemoteError> {
    let text = std::fs::read(path).unwrap_or_default();
    parse(&String::from_utf8_lossy(&text), options)
}

/// Algorithm and fingerprint of the key that the server showed.
pub(super) fn host_key(log: &str) -> Option<(String, String)> {
    let line = log
        .lines()
        .find_map(|line| line.strip_prefix("debug1: Server host key: "))?;
    let mut words = line.split_whitespace();
    Some((words.next()?.to_owned(), words.next()?.to_owned()))
}

fn parse(log: &str, options: &HostOptions) -> Option<RemoteError> {
    let said: Vec<&str> = log
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("debug1: ") && !line.is_empty())
        .collect();
    let has = |needle: &str| said.iter().find(|line| line.contains(needle));
    let address = options.address();
    let host = host_name(&options.host, options.port);
    let (algorithm, fingerprint) = host_key(log).unwrap_or_default();
    if has("REVOKED HOST KEY DETECTED").is_some() {
        return Some(RemoteError::HostKeyRevoked { host, fingerprint });
    }
    if has("REMOTE HOST IDENTIFICATION HAS CHANGED").is_some() {
        let known = said
            .iter()
            .find_map(|line| line.strip_prefix("Offending "))
            .and_then(|line| line.split_once(" key in "))
            .map_or_else(|| "known_hosts".to_owned(), |(_, at)| at.to_owned());
        return Some(RemoteError::HostKeyChanged {
            host,
            algorithm,
            line: String::new(),
            fingerprint,
            known,
        });
    }
    if has("host key is known for").is_some() {
        return Some(RemoteError::HostKeyUnknown {
            host,
            algorithm,
            fingerprint,
            line: String::new(),
        });
    }
    if has("Could not resolve hostname").is_some() {
        return Some(RemoteError::Resolve {
            host: options.host.clone(),
        });
    }
    if has("Permission denied (").is_some() || has("Too many authentication failures").is_some() {
        return Some(denied(log, options));
    }
    if has("Connection refused").is_some() {
        return Some(RemoteError::Refused { address });
    }
    if has("Connection timed out").is_some() || has("Operation timed out").is_some() {
        return Some(RemoteError::Timeout {
            address,
            seconds: options.connect_timeout.as_secs(),
            step: "connection",
        });
    }
    if let Some(line) = has("connect to host") {
        let detail = line.rsplit_once(": ").map_or(*line, |(_, end)| end);
        return Some(RemoteError::Unreachable {
            address,
            detail: detail.to_owned(),
        });
    }
    let authenticated = log.contains("debug1: Authentication succeeded")
        || log.contains("debug1: Entering interactive session");
    let last = said.last().copied();
    match (authenticated, last) {
        (true, Some(line))
            if line.contains("not responding")
                || line.contains("Broken pipe")
                || line.contains("Connection reset")
                || line.contains("closed by remote host")
                || line.contains("Connection to ") =>
        {
            Some(RemoteError::Lost)
        }
        (true, _) => None,
        (false, line) => Some(RemoteError::Ssh {
            address,
            detail: line.unwrap_or("ssh ended without a word").to_owned(),
        }),
    }
}

/// The keys that ssh offered, and whether one stayed out for its passphrase.
fn denied(log: &str, options: &HostOptions) -> RemoteError {
    let mut offered = Vec::new();
    let mut accepted = None;
    for line in log.lines() {
        if let Some(rest) = line.strip_prefix("debug1: Offering public key: ") {
            offered.push(rest.split(' ').next().unwrap_or(rest).to_owned());
        }
        if let Some(rest) = line.strip_prefix("debug1: Server accepts key: ") {
            accepted = rest.split(' ').next().map(str::to_owned);
        }
    }
    // The server would have taken it, and ssh could not read it: in batch mode
    // that is a passphrase that nobody typed.
    if let Some(path) = accepted
        && options.identity_files.iter().any(|file| *file == path)
    {
        return RemoteError::EncryptedKey { path: path.into() };
    }
    RemoteError::Auth {
        user: options.user.clone(),
        host: options.host.clone(),
        offered: if offered.is_empty() {
            "there is none".to_owned()
        } else {
            offered.join(", ")
        },
    }
}
