//! What a user's ssh configuration says of a host is what OpenSSH makes of it, or
//! is left to OpenSSH: files as people have them, against `ssh -G`'s own words.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a scene that can't be set up should fail at once"
)]

use std::fs;
use std::process::Command;

use boxery_remote::{Laptop, PipeChoice, Plan};
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

    async fn plan(&self, target: &str) -> Plan {
        let laptop = Laptop {
            home: Utf8PathBuf::try_from(self.folder.path().to_owned()).unwrap(),
            user: "me".to_owned(),
            agent_socket: None,
            ssh_config: Some(self.config()),
            ssh_program: "ssh".into(),
            known_hosts: Utf8PathBuf::try_from(self.folder.path().join("known")).unwrap(),
            keep_keys: false,
            kerberos: false,
        };
        Plan::resolve(&target.parse().unwrap(), PipeChoice::Auto, &laptop)
            .await
            .unwrap()
    }

    /// Host name, port and user as OpenSSH would use them.
    fn openssh(&self, target: &str) -> (String, String, String) {
        let output = Command::new("ssh")
            .args(["-F", self.config().as_str(), "-G", target])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let of = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.unwrap_or_default().trim().to_owned()
        };
        (of("hostname "), of("port "), of("user "))
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
#[tokio::test]
async fn a_configuration_means_what_openssh_means_or_is_left_to_it(
    #[case] files: &[(&str, &str)],
    #[case] left: Option<&str>,
) {
    let place = Place::new(files);
    let plan = place.plan("dev").await;
    let options = plan.options();
    let ours = (
        options.host.clone(),
        options.port.to_string(),
        options.user.clone(),
    );
    assert_eq!(ours, place.openssh("dev"));
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
#[case::loop_of_includes(&[("config", "Include @/config\n")])]
#[case::no_such_keyword(&[("config", "Host dev\n NoSuchThing yes\n")])]
#[tokio::test]
async fn a_configuration_that_openssh_refuses_is_refused(#[case] files: &[(&str, &str)]) {
    let place = Place::new(files);
    let laptop = Laptop {
        home: "/nonexistent".into(),
        user: "me".to_owned(),
        agent_socket: None,
        ssh_config: Some(place.config()),
        ssh_program: "ssh".into(),
        known_hosts: "/nonexistent".into(),
        keep_keys: false,
        kerberos: false,
    };
    let plan = Plan::resolve(&"dev".parse().unwrap(), PipeChoice::Auto, &laptop).await;
    assert!(plan.is_err(), "{plan:?}");
}
