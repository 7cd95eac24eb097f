//! Where a VM is, as the user writes it.

use std::fmt;
use std::str::FromStr;

use crate::RemoteError;

/// `user@host[:port]`, `host[:port]` or a `Host` of `ssh_config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The user, where one was named.
    pub user: Option<String>,
    /// The host or alias.
    pub host: String,
    /// The port, where one was named.
    pub port: Option<u16>,
}

impl FromStr for Target {
    type Err = RemoteError;

    fn from_str(text: &str) -> Result<Self, RemoteError> {
        let bad = |reason| RemoteError::BadTarget {
            target: text.to_owned(),
            reason,
        };
        let rest = text.strip_prefix("ssh://").unwrap_or(text);
        let (user, rest) = match rest.rsplit_once('@') {
            Some((user, rest)) => (Some(user.to_owned()), rest),
            None => (None, rest),
        };
        if let Some(user) = &user
            && (user.is_empty() || user.starts_with('-') || !plain(user))
        {
            return Err(bad("the user isn't one"));
        }
        let (host, port) = if let Some(inner) = rest.strip_prefix('[') {
            let (host, after) = inner
                .split_once(']')
                .ok_or_else(|| bad("a `[` without `]`"))?;
            match after {
                "" => (host, None),
                _ => (
                    host,
                    Some(
                        after
                            .strip_prefix(':')
                            .ok_or_else(|| bad("no `:` after `]`"))?,
                    ),
                ),
            }
        } else {
            match rest.split_once(':') {
                // More than one colon is an IPv6 address.
                Some((_, port)) if port.contains(':') => (rest, None),
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            }
        };
        if host.is_empty() {
            return Err(bad("it has no host"));
        }
        if host.starts_with('-') || !plain(host) {
            return Err(bad("the host isn't a name or address"));
        }
        let port = match port {
            None => None,
            Some(port) => match port.parse() {
                Ok(0) | Err(_) => return Err(bad("the port isn't 1 to 65535")),
                Ok(port) => Some(port),
            },
        };
        Ok(Self {
            user,
            host: host.to_owned(),
            port,
        })
    }
}

/// No white space, control characters, quotes or shell syntax: such names are
/// refused by OpenSSH too.
fn plain(text: &str) -> bool {
    !text
        .chars()
        .any(|c| c.is_whitespace() || c.is_control() || "'\"`$\\;&|<>(){}!*?#/".contains(c))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match self.port {
            Some(port) if self.host.contains(':') => write!(f, "[{}]:{port}", self.host),
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::Target;

    #[rstest]
    #[case::alias("dev", None, "dev", None)]
    #[case::user("me@dev", Some("me"), "dev", None)]
    #[case::port("me@10.0.0.1:2222", Some("me"), "10.0.0.1", Some(2222))]
    #[case::host_port("dev:22", None, "dev", Some(22))]
    #[case::at_in_user("a@b@host", Some("a@b"), "host", None)]
    #[case::six("::1", None, "::1", None)]
    #[case::six_port("me@[fe80::1]:2200", Some("me"), "fe80::1", Some(2200))]
    #[case::url("ssh://me@dev:7", Some("me"), "dev", Some(7))]
    fn a_target_has_user_host_and_port(
        #[case] text: &str,
        #[case] user: Option<&str>,
        #[case] host: &str,
        #[case] port: Option<u16>,
    ) {
        let want = Target {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port,
        };
        assert_eq!(text.parse::<Target>().unwrap(), want);
    }

    #[rstest]
    fn what_is_no_target_is_refused(
        #[values(
            "",
            "@dev",
            "me@",
            "-oProxyCommand=x",
            "me@-v",
            "-x@dev",
            "dev:0",
            "dev:70000",
            "dev:x",
            "[::1",
            "[::1]22",
            "a b",
            "dev;id",
            "$(id)",
            "dev\n"
        )]
        text: &str,
    ) {
        assert!(text.parse::<Target>().is_err());
    }
}
