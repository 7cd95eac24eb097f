//! What a call of `ssh` says: the host, the hosts on the way, the remote command.

use crate::command::Arg;

/// Options of ssh with a value (OpenSSH 10).
const VALUES: &str = "BbcDEeFIiJLlmOoPpQRSWwM";

/// A call of ssh.
#[derive(Debug, Default)]
pub(crate) struct SshCall<'a> {
    /// The host, as written.
    pub(crate) host: Option<&'a Arg>,
    /// Its index among the arguments.
    pub(crate) host_at: usize,
    /// The remote command's words.
    pub(crate) command: &'a [Arg],
    /// Hosts named by options, with the option's index.
    pub(crate) hosts: Vec<(String, usize)>,
    /// Commands that options start on this side.
    pub(crate) runs_here: Vec<String>,
    /// An option after which the host isn't what it says, and its index.
    pub(crate) unknown: Option<(String, usize)>,
    /// An option that connects by a command of its own, and its index.
    pub(crate) proxy: Option<(String, usize)>,
}

/// Read the arguments of `ssh`.
pub(crate) fn read_call(args: &[Arg]) -> SshCall<'_> {
    let mut call = SshCall::default();
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        if text == "--" && call.host.is_none() {
            at += 1;
            call.host = args.get(at);
            call.host_at = at;
            at += 1;
            break;
        }
        if !text.starts_with('-') || text == "-" {
            if call.host.is_some() {
                break;
            }
            call.host = Some(arg);
            call.host_at = at;
            at += 1;
            // ssh goes on to read options behind the host.
            continue;
        }
        let valued = text[1..]
            .char_indices()
            .find(|(_, letter)| VALUES.contains(*letter));
        if let Some((start, letter)) = valued {
            let glued = &text[1 + start + letter.len_utf8()..];
            let value = if glued.is_empty() {
                at += 1;
                args.get(at).map_or("", |arg| arg.text.as_str())
            } else {
                glued
            };
            note(&mut call, letter, value, at.min(args.len() - 1));
        }
        at += 1;
    }
    call.command = args.get(at..).unwrap_or_default();
    call
}

fn note(call: &mut SshCall<'_>, letter: char, value: &str, at: usize) {
    match letter {
        'J' => call.hosts.extend(jumps(value).map(|host| (host, at))),
        'F' if !matches!(value, "/dev/null" | "none") => {
            call.unknown = Some((format!("-F {value}"), at));
        }
        'o' => {
            let (key, value) = value.split_once(['=', ' ', '\t']).unwrap_or((value, ""));
            let value = value.trim_start_matches(['=', ' ', '\t']);
            match key.trim().to_ascii_lowercase().as_str() {
                "proxyjump" => call.hosts.extend(jumps(value).map(|host| (host, at))),
                "hostname" => call.hosts.push((host_of(value).to_owned(), at)),
                "proxycommand" if value != "none" => {
                    call.proxy = Some((format!("ProxyCommand={value}"), at));
                    call.runs_here.push(value.to_owned());
                }
                "proxyusefdpass" | "knownhostscommand" | "localcommand" => {
                    call.runs_here.push(value.to_owned());
                }
                "include" | "match" => call.unknown = Some((format!("-o {key}"), at)),
                _ => {}
            }
        }
        _ => {}
    }
}

fn jumps(value: &str) -> impl Iterator<Item = String> + '_ {
    value
        .split(',')
        .filter(|hop| *hop != "none" && !hop.is_empty())
        .map(|hop| host_of(hop).to_owned())
}

/// The host in `user@host`, `ssh://user@host:port`, `host:port`.
pub(crate) fn host_of(text: &str) -> &str {
    let (rest, is_url) = match text.strip_prefix("ssh://") {
        Some(rest) => (rest.split('/').next().unwrap_or(rest), true),
        None => (text, false),
    };
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    if let Some(inner) = host.strip_prefix('[') {
        return inner.split(']').next().unwrap_or(inner);
    }
    let port = |host: &str| {
        host.rsplit_once(':').is_some_and(|(name, port)| {
            !name.contains(':') && port.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    if is_url || port(host) {
        return host.split(':').next().unwrap_or(host);
    }
    host
}
