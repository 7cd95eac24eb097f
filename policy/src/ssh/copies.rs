//! The hosts that scp, sftp, rsync and their like reach over SSH.

use super::call::host_of;
use crate::command::Arg;

/// The hosts named by a call, with their indices; `None` for a program that isn't one
/// of these.
pub(crate) fn hosts(program: &str, args: &[Arg]) -> Option<Vec<(String, usize)>> {
    let (values, first_only) = match program {
        "scp" => ("cDFiJloPSX", false),
        "sftp" => ("bBcDFiJloPRSsX", true),
        "rsync" => ("eBTMfC", false),
        "sshfs" => ("oFpCdf", true),
        "mosh" => ("", true),
        "ssh-copy-id" => ("iopFt", true),
        _ => return None,
    };
    let mut hosts = Vec::new();
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        if let Some(option) = text.strip_prefix('-').filter(|option| !option.is_empty()) {
            if text == "--" {
                at += 1;
                continue;
            }
            let valued = !option.starts_with('-')
                && option
                    .find(|letter| values.contains(letter))
                    .is_some_and(|start| start + 1 == option.len());
            let value = args.get(at + 1).map_or("", |arg| arg.text.as_str());
            match option {
                "J" => hosts.extend(
                    value
                        .split(',')
                        .map(|hop| (host_of(hop).to_owned(), at + 1)),
                ),
                "o" => {
                    if let Some(hop) = value.to_ascii_lowercase().strip_prefix("proxyjump=") {
                        hosts.extend(hop.split(',').map(|hop| (host_of(hop).to_owned(), at + 1)));
                    }
                }
                // rsync's own ssh options may name another way to the host.
                "e" if program == "rsync" && value.contains(" -J") => {
                    let hop = value.split(" -J").nth(1).unwrap_or_default().trim();
                    hosts.push((
                        host_of(hop.split(' ').next().unwrap_or(hop)).to_owned(),
                        at + 1,
                    ));
                }
                _ => {}
            }
            at += if valued { 2 } else { 1 };
            continue;
        }
        let remote = match program {
            "scp" | "rsync" | "sshfs" => remote_part(text),
            _ => Some(
                text.strip_prefix("sftp://")
                    .map_or(text, |rest| rest.split('/').next().unwrap_or(rest)),
            ),
        };
        if let Some(host) = remote {
            let host = if program == "sftp" {
                remote_part(host).unwrap_or(host)
            } else {
                host
            };
            hosts.push((host_of(host).to_owned(), at));
            if first_only {
                break;
            }
        }
        at += 1;
    }
    Some(hosts)
}

/// `user@host` of `user@host:path`, of `scp://host/path`; `None` for a local path, and
/// for rsync's own daemon.
fn remote_part(text: &str) -> Option<&str> {
    if let Some(rest) = text
        .strip_prefix("scp://")
        .or_else(|| text.strip_prefix("ssh://"))
    {
        return Some(rest.split('/').next().unwrap_or(rest));
    }
    if text.starts_with("rsync://") || text.contains("::") && !text.contains('[') {
        return None;
    }
    if text.starts_with('[') || text.contains("@[") {
        return text
            .split("]:")
            .next()
            .map(|host| host.trim_start_matches('['));
    }
    let (host, _) = text.split_once(':')?;
    (!host.contains('/') && !host.is_empty()).then_some(host)
}
