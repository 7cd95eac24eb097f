//! What a user's ssh configuration says of a host is what OpenSSH makes of it, or
//! is left to OpenSSH: files as people have them, against `ssh -G`'s own words.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a scene that can't be set up should fail at once"
)]

use std::fs;
use std::process::Command;
use std::time::Duration;

use boxery_remote::{HostOptions, Laptop, PipeChoice, Plan, RemoteError};
use camino::Utf8PathBuf;
use rstest::rstest;
use tempfile::TempDir;

/// A folder with a configuration that includes the files beside it, spelled `@`.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = text.replace('@', folder.path().to_str().unwrap());
            fs::write(path, text).unwrap();
        }
        Self { folder }
    }

    fn config(&self) -> Utf8PathBuf {
        Utf8PathBuf::try_from(self.folder.path().join("config")).unwrap()
    }

    fn laptop(&self) -> Laptop {
        Laptop {
            home: Utf8PathBuf::try_from(self.folder.path().to_owned()).unwrap(),
            user: "me".to_owned(),
            agent_socket: Some("/run/agent".into()),
            ssh_config: Some(self.config()),
            ssh_program: "ssh".into(),
            known_hosts: Utf8PathBuf::try_from(self.folder.path().join("known")).unwrap(),
            keep_keys: false,
            kerberos: false,
        }
    }

    async fn plan(&self, target: &str) -> Result<Plan, RemoteError> {
        let target = target.parse().unwrap();
        Plan::resolve(&target, PipeChoice::Auto, &self.laptop()).await
    }

    /// What OpenSSH says of a target; an error where it refuses the configuration.
    fn openssh(&self, target: &str) -> Result<OpenSsh, String> {
        let output = Command::new("ssh")
            .args(["-F", self.config().as_str(), "-G", "--", target])
            .output()
            .unwrap();
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let text = String::from_utf8(output.stdout).unwrap();
        let home = self.folder.path().to_str().unwrap().to_owned();
        Ok(OpenSsh { text, home })
    }
}

/// The lines of `ssh -G`.
struct OpenSsh {
    text: String,
    home: String,
}

impl OpenSsh {
    fn all(&self, key: &str) -> Vec<&str> {
        let values = self.text.lines().filter_map(|line| line.strip_prefix(key));
        values.filter_map(|line| line.strip_prefix(' ')).collect()
    }

    fn one(&self, key: &str) -> &str {
        self.all(key).first().copied().unwrap_or_default()
    }

    /// Files as OpenSSH opens them: it expands the home folder of its user database, the
    /// tests have another one.
    fn files<'a>(&self, values: impl IntoIterator<Item = &'a str>) -> Vec<Utf8PathBuf> {
        let expand = |value: &str| match value.strip_prefix("~/") {
            Some(rest) => format!("{}/{rest}", self.home),
            None => value.replace("%d/", &format!("{}/", self.home)),
        };
        let named = values.into_iter().filter(|value| *value != "none");
        named.map(|value| expand(value).into()).collect()
    }

    fn seconds(&self, key: &str, ours: u64) -> Duration {
        match self.one(key).parse() {
            Ok(0) | Err(_) => Duration::from_secs(ours),
            Ok(seconds) => Duration::from_secs(seconds),
        }
    }

    /// All that a connection is made of.
    fn options(&self, laptop: &Laptop) -> HostOptions {
        let mut known_hosts = self.files(self.one("userknownhostsfile").split(' '));
        known_hosts.push(laptop.known_hosts.clone());
        HostOptions {
            host: self.one("hostname").to_owned(),
            port: self.one("port").parse().unwrap(),
            user: self.one("user").to_owned(),
            identity_files: self.files(self.all("identityfile")),
            identities_only: self.one("identitiesonly") == "yes",
            agent: match self.one("identityagent") {
                "" | "SSH_AUTH_SOCK" => laptop.agent_socket.clone(),
                path => self.files([path]).pop(),
            },
            known_hosts,
            global_known_hosts: self.files(self.one("globalknownhostsfile").split(' ')),
            // Where nothing is said boxery is less patient than OpenSSH.
            connect_timeout: self.seconds("connecttimeout", 15),
            keepalive: self.seconds("serveraliveinterval", 15),
            keepalive_max: self.one("serveralivecountmax").parse().unwrap(),
        }
    }
}

#[rstest]
#[case::include(
    &[("config", "Include @/more/*.conf\nHost *\n User you\n"),
      ("more/a.conf", "Host dev\n HostName 10.0.0.7\n Port 2201\n")],
    None
)]
#[case::include_in_a_block(
    &[("config", "Host dev\n Include @/dev\nHost other\n Include @/evil\n"),
      ("dev", "HostName 10.0.0.7\n"), ("evil", "ProxyCommand evil\n")],
    None
)]
#[case::include_of_nothing(&[("config", "Include @/none/*\nHost dev\n Port 2201\n")], None)]
#[case::include_with_a_jump(
    &[("config", "Include @/jump\n"), ("jump", "Host d*\n ProxyJump gate\n")],
    Some("proxyjump gate")
)]
#[case::match_leak(
    &[("config", "Host dev\n User you\nMatch host other\n Port 2222\n ProxyJump evil\n")],
    None
)]
#[case::match_that_applies(
    &[("config", "Match originalhost dev\n Port 2222\n User you\n")],
    None
)]
#[case::match_negated(&[("config", "Match !host dev\n ProxyJump evil\nHost dev\n Port 7\n")], None)]
#[case::match_exec_no(&[("config", "Match exec \"false\"\n ProxyJump evil\n")], None)]
#[case::match_exec_yes(&[("config", "Match host dev exec \"true\"\n Port 2203\n")], None)]
#[case::match_not_exec(
    &[("config", "Match !exec \"true\"\n ProxyCommand evil\n")],
    None
)]
// Fedora's own file ends so: every block is read a second time.
#[case::match_final(
    &[("config", "Host dev\n Port 2204\nMatch final all\n User you\n")],
    None
)]
#[case::match_final_jump(
    &[("config", "Match final all\n ProxyJump gate\n")],
    Some("proxyjump gate")
)]
#[case::first_wins(&[("config", "Host dev\n Port 1\nHost *\n Port 2\n ProxyJump none\n")], None)]
#[case::jump_switched_off(
    &[("config", "Host dev\n ProxyJump none\nHost *\n ProxyJump gate\n")],
    None
)]
#[case::canonical(
    &[("config", "CanonicalizeHostname yes\nCanonicalDomains invalid\nCanonicalizeFallbackLocal yes\n")],
    Some("canonical")
)]
#[case::quoted_and_equals(&[("config", "Host=dev\n HostName = \"10.0.0.7\"\n Port=2205\n")], None)]
#[case::tokens(&[("config", "Host dev\n HostName %h.example.org\n")], None)]
#[case::wildcards_and_negation(
    &[("config", "Host d?v !dev\n ProxyJump evil\nHost *v\n Port 2206\n")],
    None
)]
#[case::include_relative_order(
    &[("config", "Include @/2 @/1\nHost dev\n Port 3\n"), ("1", "Port 1\n"), ("2", "Port 2\n")],
    None
)]
#[case::include_in_a_match(
    &[("config", "Match host dev\n Include @/dev\nMatch host other\n Include @/evil\n"),
      ("dev", "User you\n"), ("evil", "ProxyJump evil\n")],
    None
)]
#[case::match_user(&[("config", "Host dev\n User you\nMatch user you\n Port 2210\n")], None)]
#[case::match_another_user(
    &[("config", "Host dev\n User you\nMatch user them\n ProxyJump evil\n")],
    None
)]
#[case::match_local_user(&[("config", "Match localuser nobody-here\n ProxyJump evil\n")], None)]
#[case::match_host_is_the_name_to_connect_to(
    &[("config", "Host dev\n HostName real\nMatch host real\n Port 2211\nMatch host dev\n ProxyJump evil\n")],
    None
)]
#[case::match_several(
    &[("config", "Match host dev user them\n ProxyJump evil\nMatch host d*,!dev\n ProxyJump evil\n")],
    None
)]
#[case::match_exec_tokens(&[("config", "Match exec \"test %h = dev\"\n Port 2212\n")], None)]
#[case::match_canonical_without_it(&[("config", "Match canonical\n ProxyJump evil\n")], None)]
#[case::match_canonical_with_it(
    &[("config", "CanonicalizeHostname always\nMatch canonical\n Port 2213\n")],
    Some("canonicalizehostname")
)]
#[case::canonical_names_by_cname(
    &[("config", "Host dev\n HostName localhost\nHost *\n CanonicalizeHostname yes\nCanonicalDomains invalid\nCanonicalizePermittedCNAMEs *.a.invalid:*.b.invalid\n")],
    Some("canonical")
)]
#[case::canonical_names_switched_off(&[("config", "CanonicalizeHostname no\n")], None)]
#[case::jump_over_several(
    &[("config", "ProxyJump one:2222,two\n")],
    Some("proxyjump one:2222,two")
)]
#[case::proxy_command_with_tokens(
    &[("config", "ProxyCommand nc %h %p %r\n")],
    Some("proxycommand nc %h %p %r")
)]
#[case::proxy_command_switched_off(
    &[("config", "ProxyCommand none\nHost *\n ProxyCommand evil\n")],
    None
)]
#[case::the_key_of_another_name(&[("config", "HostKeyAlias other\n")], Some("hostkeyalias other"))]
#[case::keys(
    &[("config", "IdentitiesOnly yes\nIdentityFile ~/.ssh/a\nIdentityFile %d/b\nIdentityFile /c\n")],
    None
)]
#[case::no_key(&[("config", "IdentityFile none\n")], None)]
#[case::key_with_a_token(&[("config", "IdentityFile ~/%h-%p-%r\n")], Some("identityfile ~/%h-%p-%r"))]
#[case::key_with_a_hash(&[("config", "IdentityFile ~/%C\n")], Some("identityfile ~/%C"))]
#[case::key_with_a_variable(&[("config", "IdentityFile ${HOME}/k\n")], Some("identityfile"))]
#[case::certificate(&[("config", "CertificateFile ~/k-cert.pub\n")], Some("certificatefile"))]
#[case::agent(&[("config", "IdentityAgent ~/agent\n")], None)]
#[case::usual_agent(&[("config", "IdentityAgent SSH_AUTH_SOCK\n")], None)]
#[case::no_agent(&[("config", "IdentityAgent none\n")], None)]
#[case::agent_of_a_variable(&[("config", "IdentityAgent $OTHER\n")], Some("identityagent"))]
#[case::either_family(&[("config", "AddressFamily any\n")], None)]
#[case::one_family(&[("config", "AddressFamily inet6\n")], Some("addressfamily inet6"))]
#[case::bound_address(&[("config", "BindAddress 127.0.0.1\n")], Some("bindaddress 127.0.0.1"))]
#[case::bound_interface(&[("config", "BindInterface lo\n")], Some("bindinterface lo"))]
#[case::variables_that_a_run_sends_too(&[("config", "SendEnv LANG LC_*\n")], None)]
#[case::other_variables(&[("config", "SendEnv LANG TOKEN\n")], Some("sendenv"))]
#[case::set_variables(&[("config", "SetEnv A=b\n")], Some("setenv A=b"))]
// What a run asks for itself, whatever the file says for a shell.
#[case::command_and_terminal(
    &[("config", "RemoteCommand tmux attach\nRequestTTY force\nForwardX11 yes\nLocalForward 1 a:2\n")],
    None
)]
#[case::shared_connection(
    &[("config", "ControlMaster auto\nControlPersist 10m\nControlPath ~/.ssh/%C-%h-%p-%r\n")],
    None
)]
#[case::forwarded_agent(&[("config", "ForwardAgent yes\n")], Some("forwardagent"))]
#[case::signs_of_life(
    &[("config", "ServerAliveInterval 7\nServerAliveCountMax 2\nConnectTimeout 9\n")],
    None
)]
#[case::known_hosts(
    &[("config", "UserKnownHostsFile @/a @/b\nGlobalKnownHostsFile @/c\n")],
    None
)]
#[case::no_known_hosts(&[("config", "UserKnownHostsFile none\nGlobalKnownHostsFile none\n")], None)]
#[case::an_address(&[("config", "HostName ::1\nPort 2214\n")], None)]
#[case::what_an_older_one_may_not_know(&[("config", "IgnoreUnknown NoSuch*\nNoSuchThing yes\n")], Some("ignoreunknown"))]
#[tokio::test]
async fn a_configuration_means_what_openssh_means_or_is_left_to_it(
    #[case] files: &[(&str, &str)],
    #[case] left: Option<&str>,
) {
    let place = Place::new(files);
    let plan = place.plan("dev").await.unwrap();
    let openssh = place.openssh("dev").unwrap();
    assert_eq!(*plan.options(), openssh.options(&place.laptop()));
    match (&plan, left) {
        (Plan::Native(_), None) => {}
        (
            Plan::System {
                because: Some(line),
                ..
            },
            Some(want),
        ) => assert!(line.starts_with(want), "{line}"),
        (plan, want) => panic!("wanted {want:?}, got {plan:?}"),
    }
}

#[rstest]
#[case::upper_case("DEV")]
#[case::user("you@dev")]
#[case::user_and_port("you@dev:2222")]
#[tokio::test]
async fn what_the_target_says_wins_as_for_openssh(#[case] target: &str) {
    let place = Place::new(&[("config", "Host dev\n User me\n Port 7\n HostName real\n")]);
    let plan = place.plan(target).await.unwrap();
    // OpenSSH takes a port in a URI only.
    let openssh = place.openssh(&format!("ssh://{target}")).unwrap();
    assert_eq!(*plan.options(), openssh.options(&place.laptop()));
}

#[rstest]
#[case::loop_of_includes(&[("config", "Include @/config\n")])]
#[case::no_such_keyword(&[("config", "Host dev\n NoSuchThing yes\n")])]
#[case::no_such_condition(&[("config", "Match nosuch dev\n Port 1\n")])]
#[case::match_all_and_more(&[("config", "Match all host dev\n Port 1\n")])]
#[case::no_port(&[("config", "Port none\n")])]
#[case::no_family(&[("config", "AddressFamily ipx\n")])]
#[tokio::test]
async fn a_configuration_that_openssh_refuses_is_refused(#[case] files: &[(&str, &str)]) {
    let place = Place::new(files);
    assert!(place.openssh("dev").is_err());
    let plan = place.plan("dev").await;
    assert!(
        matches!(plan, Err(RemoteError::SshConfig { .. })),
        "{plan:?}"
    );
}

/// Known to OpenSSH since 9.4, or refused by one that doesn't know it.
#[rstest]
#[case::here("127.0.0.0/8")]
#[case::elsewhere("192.0.2.0/24")]
#[tokio::test]
async fn a_match_of_networks_is_what_this_openssh_makes_of_it(#[case] network: &str) {
    let text = format!("Match localnetwork {network}\n Port 2215\n");
    let place = Place::new(&[("config", &text)]);
    match (place.plan("dev").await, place.openssh("dev")) {
        (Ok(plan), Ok(openssh)) => {
            assert_eq!(*plan.options(), openssh.options(&place.laptop()));
        }
        (Err(RemoteError::SshConfig { .. }), Err(_)) => {}
        (plan, openssh) => panic!("{plan:?}, and OpenSSH: {:?}", openssh.err()),
    }
}
