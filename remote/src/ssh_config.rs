//! Which pipe can do what the user's ssh configuration says of a host.
//!
//! Only OpenSSH reads its configuration right (`Match`, `Include`, tokens,
//! canonical names), so `ssh -G` is asked, once for the host and once for a
//! neutral one without any configuration. The lines that differ decide: when
//! the native pipe does the same for each of them it is chosen, else `ssh` is.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tokio::process::Command;

use crate::known_hosts::KnownHosts;
use crate::{Laptop, PipeChoice, RemoteError, Target};

/// All that the native pipe needs to know of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostOptions {
    /// The name or address to connect to.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The user there.
    pub user: String,
    /// Key files, in order; those that don't exist are skipped.
    pub identity_files: Vec<Utf8PathBuf>,
    /// Offer only keys that `identity_files` name.
    pub identities_only: bool,
    /// The agent's socket.
    pub agent: Option<Utf8PathBuf>,
    /// The user's known-hosts files, and boxery's own last.
    pub known_hosts: Vec<Utf8PathBuf>,
    /// The machine's known-hosts files.
    pub global_known_hosts: Vec<Utf8PathBuf>,
    /// How long each step of connecting may take.
    pub connect_timeout: Duration,
    /// Silence after which the server is asked for a sign of life.
    pub keepalive: Duration,
    /// Signs of life that may stay out.
    pub keepalive_max: usize,
}

impl HostOptions {
    /// `host:port` for messages.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// How a target will be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// By SSH in this process.
    Native(HostOptions),
    /// By a child `ssh`.
    System {
        /// What `ssh -G` says, as far as messages need it.
        options: HostOptions,
        /// Why the native pipe can't; `None` when the user chose.
        because: Option<String>,
    },
}

impl Plan {
    /// Ask `ssh -G` and choose.
    pub async fn resolve(
        target: &Target,
        choice: PipeChoice,
        laptop: &Laptop,
    ) -> Result<Self, RemoteError> {
        let Some(text) = ask_ssh(target, Some(target), laptop).await? else {
            return without_ssh(target, choice, laptop);
        };
        let neutral = ask_ssh(target, None, laptop).await?.unwrap_or_default();
        let settings = Settings::parse(&text);
        let options = settings.options(laptop);
        if choice == PipeChoice::System {
            return Ok(Self::System {
                options,
                because: None,
            });
        }
        let differing = settings.differing(&Settings::parse(&neutral));
        let unsupported = differing
            .iter()
            .find(|(key, values)| !supported(key, values, laptop))
            .map(|(key, values)| format!("{key} {}", values.join(" ")))
            .or_else(|| needs_ssh(&options));
        match (unsupported, choice) {
            (None, _) => Ok(Self::Native(options)),
            (Some(line), PipeChoice::Native) => Err(RemoteError::NotNative {
                target: target.to_string(),
                line,
            }),
            (because, _) => Ok(Self::System { options, because }),
        }
    }

    /// What is known of the host.
    pub fn options(&self) -> &HostOptions {
        match self {
            Self::Native(options) | Self::System { options, .. } => options,
        }
    }
}

/// `ssh -G` for `target`, or for a neutral host without configuration; `None`
/// when there is no `ssh`.
async fn ask_ssh(
    named: &Target,
    target: Option<&Target>,
    laptop: &Laptop,
) -> Result<Option<String>, RemoteError> {
    let mut command = Command::new(&laptop.ssh_program);
    match target {
        Some(target) => {
            if let Some(config) = &laptop.ssh_config {
                command.args(["-F", config.as_str()]);
            }
            command.args(destination(target));
        }
        None => {
            command.args(["-F", "/dev/null", "-G", "--", "boxery-neutral"]);
        }
    }
    let output = match command.stdin(std::process::Stdio::null()).output().await {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(RemoteError::Start {
                program: laptop.ssh_program.to_string(),
                source,
            });
        }
    };
    if !output.status.success() {
        return Err(RemoteError::SshConfig {
            target: named.to_string(),
            detail: one_line(&output.stderr),
        });
    }
    Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()))
}

fn destination(target: &Target) -> Vec<String> {
    let mut words = vec!["-G".to_owned()];
    words.extend(target_words(target));
    words
}

/// The words that name `target` to `ssh`.
pub(crate) fn target_words(target: &Target) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(port) = target.port {
        words.extend(["-p".to_owned(), port.to_string()]);
    }
    if let Some(user) = &target.user {
        words.extend(["-l".to_owned(), user.clone()]);
    }
    words.extend(["--".to_owned(), target.host.clone()]);
    words
}

/// The last line of what a program said.
pub(crate) fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.unwrap_or("it said nothing").trim().to_owned()
}

fn without_ssh(target: &Target, choice: PipeChoice, laptop: &Laptop) -> Result<Plan, RemoteError> {
    let configs = [
        Some(laptop.home.join(".ssh/config")),
        Some(Utf8PathBuf::from("/etc/ssh/ssh_config")),
        laptop.ssh_config.clone(),
    ];
    let configured = configs.iter().flatten().any(|path| says_something(path));
    if configured || target.user.is_none() || choice == PipeChoice::System {
        return Err(RemoteError::NoSshProgram {
            target: target.to_string(),
        });
    }
    let home = laptop.home.join(".ssh");
    let options = HostOptions {
        host: target.host.clone(),
        port: target.port.unwrap_or(22),
        user: target.user.clone().unwrap_or_else(|| laptop.user.clone()),
        identity_files: ["id_rsa", "id_ecdsa", "id_ed25519"]
            .map(|name| home.join(name))
            .to_vec(),
        identities_only: false,
        agent: laptop.agent_socket.clone(),
        known_hosts: vec![
            home.join("known_hosts"),
            home.join("known_hosts2"),
            laptop.known_hosts.clone(),
        ],
        global_known_hosts: vec![
            "/etc/ssh/ssh_known_hosts".into(),
            "/etc/ssh/ssh_known_hosts2".into(),
        ],
        connect_timeout: CONNECT_TIMEOUT,
        keepalive: KEEPALIVE,
        keepalive_max: 3,
    };
    match needs_ssh(&options) {
        None => Ok(Plan::Native(options)),
        Some(_) => Err(RemoteError::NoSshProgram {
            target: target.to_string(),
        }),
    }
}

/// Whether a configuration file has a line that isn't a comment (or can't be read).
fn says_something(path: &Utf8Path) -> bool {
    match std::fs::read_to_string(path) {
        Ok(text) => text
            .lines()
            .any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const KEEPALIVE: Duration = Duration::from_secs(15);

/// `ssh -G`'s lines by keyword; some keywords come several times.
#[derive(Debug)]
struct Settings(BTreeMap<String, Vec<String>>);

impl Settings {
    fn parse(text: &str) -> Self {
        let mut map = BTreeMap::<String, Vec<String>>::new();
        for line in text.lines() {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            map.entry(key.to_lowercase())
                .or_default()
                .push(value.to_owned());
        }
        Self(map)
    }

    fn differing(&self, neutral: &Self) -> Vec<(String, Vec<String>)> {
        let keys: BTreeSet<&String> = self.0.keys().chain(neutral.0.keys()).collect();
        keys.into_iter()
            .filter(|key| self.0.get(*key) != neutral.0.get(*key))
            .map(|key| (key.clone(), self.0.get(key).cloned().unwrap_or_default()))
            .collect()
    }

    fn first(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.first().map(String::as_str)
    }

    fn seconds(&self, key: &str) -> Option<Duration> {
        match self.first(key)?.parse() {
            Ok(0) | Err(_) => None,
            Ok(seconds) => Some(Duration::from_secs(seconds)),
        }
    }

    fn options(&self, laptop: &Laptop) -> HostOptions {
        let expand = |path: &str| expand_home(path, &laptop.home);
        let files = |key: &str| -> Vec<Utf8PathBuf> {
            let words = self.first(key).unwrap_or_default().split(' ');
            words
                .filter(|word| !word.is_empty() && *word != "none")
                .map(expand)
                .collect()
        };
        let mut known_hosts = files("userknownhostsfile");
        known_hosts.push(laptop.known_hosts.clone());
        let agent = match self.first("identityagent") {
            None | Some("SSH_AUTH_SOCK") => laptop.agent_socket.clone(),
            Some("none") => None,
            Some(path) => Some(expand(path)),
        };
        HostOptions {
            host: self.first("hostname").unwrap_or_default().to_owned(),
            port: self
                .first("port")
                .and_then(|port| port.parse().ok())
                .unwrap_or(22),
            user: self.first("user").unwrap_or(&laptop.user).to_owned(),
            identity_files: self
                .0
                .get("identityfile")
                .into_iter()
                .flatten()
                .filter(|path| *path != "none")
                .map(|path| expand(path))
                .collect(),
            identities_only: self.first("identitiesonly") == Some("yes"),
            agent,
            known_hosts,
            global_known_hosts: files("globalknownhostsfile"),
            connect_timeout: self.seconds("connecttimeout").unwrap_or(CONNECT_TIMEOUT),
            keepalive: self.seconds("serveraliveinterval").unwrap_or(KEEPALIVE),
            keepalive_max: self
                .first("serveralivecountmax")
                .and_then(|count| count.parse().ok())
                .unwrap_or(3),
        }
    }
}

fn expand_home(path: &str, home: &Utf8Path) -> Utf8PathBuf {
    match path.strip_prefix("~/").or_else(|| path.strip_prefix("%d/")) {
        Some(rest) => home.join(rest),
        None => path.into(),
    }
}

/// Whether the native pipe does the same as `ssh` for a line that differs.
fn supported(key: &str, values: &[String], laptop: &Laptop) -> bool {
    let all = |allowed: &[&str]| values.iter().all(|value| allowed.contains(&value.as_str()));
    // A token or variable that `ssh -G` left for later.
    let plain = || {
        values
            .iter()
            .all(|value| !value.trim_start_matches("%d/").contains(['%', '$', '"']))
    };
    match key {
        "host"
        | "hostname"
        | "port"
        | "user"
        | "identitiesonly"
        | "serveraliveinterval"
        | "serveralivecountmax"
        | "connecttimeout"
        // Whatever it says, both pipes refuse unknown and changed keys.
        | "stricthostkeychecking"
        // These make no difference to a run: no terminal, no forwarding, no
        // shared connection, no password, and known hosts aren't written.
        | "batchmode"
        | "checkhostip"
        | "clearallforwardings"
        | "controlmaster"
        | "controlpath"
        | "controlpersist"
        | "dynamicforward"
        | "escapechar"
        | "exitonforwardfailure"
        | "fingerprinthash"
        | "forkafterauthentication"
        | "forwardx11"
        | "forwardx11timeout"
        | "forwardx11trusted"
        | "gatewayports"
        | "hashknownhosts"
        | "ipqos"
        | "kbdinteractiveauthentication"
        | "localforward"
        | "loglevel"
        | "logverbose"
        | "numberofpasswordprompts"
        | "passwordauthentication"
        | "permitremoteopen"
        | "remotecommand"
        | "remoteforward"
        | "requesttty"
        | "sessiontype"
        | "stdinnull"
        | "streamlocalbindmask"
        | "streamlocalbindunlink"
        | "syslogfacility"
        | "tcpkeepalive"
        | "updatehostkeys"
        | "visualhostkey"
        | "xauthlocation"
        | "compression"
        | "enableescapecommandline"
        | "addkeystoagent"
        | "tag" => true,
        "identityfile" | "identityagent" | "userknownhostsfile" | "globalknownhostsfile" => plain(),
        // A run sends these itself.
        "sendenv" => all(&["LANG", "LC_*", "COLORTERM", "NO_COLOR"]),
        "gssapiauthentication" | "gssapidelegatecredentials" | "gssapikeyexchange" => {
            !laptop.kerberos
        }
        "pubkeyauthentication" => all(&["true", "yes"]),
        _ => false,
    }
}

/// What no line says and yet only `ssh` can do.
fn needs_ssh(options: &HostOptions) -> Option<String> {
    for path in &options.identity_files {
        let certificate = Utf8PathBuf::from(format!("{path}-cert.pub"));
        if path.exists() && certificate.exists() {
            return Some(format!("the certificate {certificate}"));
        }
        let public = Utf8PathBuf::from(format!("{path}.pub"));
        let kind = std::fs::read_to_string(public).unwrap_or_default();
        if path.exists() && kind.trim_start().starts_with("sk-") {
            return Some(format!("the security key {path}"));
        }
    }
    let known = KnownHosts::of(options).ok()?;
    known
        .has_authority()
        .then(|| format!("@cert-authority for {}", options.host))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn laptop() -> Laptop {
        Laptop {
            home: "/home/me".into(),
            user: "me".to_owned(),
            agent_socket: Some("/run/agent".into()),
            ssh_config: None,
            ssh_program: "ssh".into(),
            known_hosts: "/home/me/.config/boxery/known_hosts".into(),
            keep_keys: false,
            kerberos: false,
        }
    }

    async fn plan(config: &str, target: &str) -> Plan {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::try_from(folder.path().join("config")).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a scratch file")]
        std::fs::write(&path, config).unwrap();
        let laptop = Laptop {
            ssh_config: Some(path),
            ..laptop()
        };
        Plan::resolve(&target.parse().unwrap(), PipeChoice::Auto, &laptop)
            .await
            .unwrap()
    }

    #[rstest]
    #[case::empty("", "me@dev", None)]
    #[case::stock_debian(
        "Host *\n SendEnv LANG LC_*\n HashKnownHosts yes\n GSSAPIAuthentication yes",
        "dev",
        None
    )]
    #[case::host(
        "Host dev\n HostName 10.0.0.1\n Port 2222\n User you\n IdentityFile ~/.ssh/dev\n IdentitiesOnly yes",
        "dev",
        None
    )]
    #[case::other_host("Host other\n ProxyJump evil", "dev", None)]
    #[case::multiplexing(
        "ControlMaster auto\nControlPath ~/.ssh/%C\nControlPersist 10m",
        "dev",
        None
    )]
    #[case::loose_host_keys("StrictHostKeyChecking no", "dev", None)]
    #[case::agent("IdentityAgent /run/other", "dev", None)]
    #[case::match_block("Host dev\nMatch host other\n Port 2222\n ProxyJump evil", "dev", None)]
    #[case::jump("ProxyJump gate", "dev", Some("proxyjump"))]
    #[case::proxy("ProxyCommand nc %h %p", "dev", Some("proxycommand"))]
    #[case::match_exec("Match exec true\n ProxyCommand nc %h %p", "dev", Some("proxycommand"))]
    #[case::certificate("CertificateFile ~/.ssh/x-cert.pub", "dev", Some("certificatefile"))]
    #[case::known_hosts_command("KnownHostsCommand /bin/echo", "dev", Some("knownhostscommand"))]
    #[case::pkcs11("PKCS11Provider /usr/lib/x.so", "dev", Some("pkcs11provider"))]
    #[case::ciphers("Ciphers aes256-ctr", "dev", Some("ciphers"))]
    #[case::alias_of_the_key("HostKeyAlias x", "dev", Some("hostkeyalias"))]
    #[case::dns_keys("VerifyHostKeyDNS yes", "dev", Some("verifyhostkeydns"))]
    #[case::forward_agent("ForwardAgent yes", "dev", Some("forwardagent"))]
    #[case::four("AddressFamily inet", "dev", Some("addressfamily"))]
    #[case::other_environment("SendEnv MY_TOKEN", "dev", Some("sendenv"))]
    #[case::token_in_a_path("IdentityFile ~/.ssh/%h-%r", "dev", Some("identityfile"))]
    #[case::hidden_in_an_include("Host *\n SetEnv A=b", "dev", Some("setenv"))]
    #[tokio::test]
    async fn native_only_where_it_does_the_same(
        #[case] config: &str,
        #[case] target: &str,
        #[case] because: Option<&str>,
    ) {
        match (plan(config, target).await, because) {
            (Plan::Native(_), None) => {}
            (
                Plan::System {
                    because: Some(line),
                    ..
                },
                Some(want),
            ) => {
                assert!(line.starts_with(want), "{line}");
            }
            (plan, want) => panic!("wanted {want:?}, got {plan:?}"),
        }
    }

    #[tokio::test]
    async fn the_settings_of_a_host_are_those_of_ssh() {
        let config = "Host dev\n HostName 10.0.0.1\n Port 2222\n User you\n\
            IdentityFile ~/.ssh/dev\n IdentitiesOnly yes\n IdentityAgent none\n\
            UserKnownHostsFile /k1 /k2\n GlobalKnownHostsFile /g\n\
            ServerAliveInterval 5\n ConnectTimeout 7";
        let plan = plan(config, "dev").await;
        let home = std::env::home_dir().unwrap();
        let options = plan.options();
        assert!(matches!(plan, Plan::Native(_)));
        // `ssh -G` writes the home folder out, from the user database.
        let identity = &options.identity_files[0];
        assert!(
            identity == "/home/me/.ssh/dev" || identity.starts_with(home.to_str().unwrap()),
            "{identity}"
        );
        assert_eq!(
            HostOptions {
                identity_files: Vec::new(),
                ..options.clone()
            },
            HostOptions {
                host: "10.0.0.1".to_owned(),
                port: 2222,
                user: "you".to_owned(),
                identity_files: Vec::new(),
                identities_only: true,
                agent: None,
                known_hosts: ["/k1", "/k2", "/home/me/.config/boxery/known_hosts"]
                    .map(Utf8PathBuf::from)
                    .to_vec(),
                global_known_hosts: vec!["/g".into()],
                connect_timeout: Duration::from_secs(7),
                keepalive: Duration::from_secs(5),
                keepalive_max: 3,
            }
        );
    }

    #[rstest]
    #[case::user_and_host("me@dev", true)]
    #[case::alias("dev", false)]
    #[tokio::test]
    async fn without_ssh_only_a_full_target_is_reached(#[case] target: &str, #[case] want: bool) {
        let folder = tempfile::tempdir().unwrap();
        let laptop = Laptop {
            home: Utf8PathBuf::try_from(folder.path().to_owned()).unwrap(),
            ssh_program: "/nonexistent/ssh".into(),
            ..laptop()
        };
        let plan = Plan::resolve(&target.parse().unwrap(), PipeChoice::Auto, &laptop).await;
        // A system-wide configuration that says something rules it out for all.
        let want = want && !says_something(Utf8Path::new("/etc/ssh/ssh_config"));
        assert_eq!(matches!(plan, Ok(Plan::Native(_))), want, "{plan:?}");
    }
}
