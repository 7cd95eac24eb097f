//! What `registries` in `allowedDomains` comes to.

use boxery_policy::registries::{Facts, GATHER};
use boxery_policy::{Action, Verdict};
use rstest::rstest;

use crate::support;

fn facts(head: &str, content: &str) -> Facts {
    let lines: Vec<String> = content.lines().map(|line| format!(">{line}")).collect();
    Facts::parse(&format!("a greeting\n={head}\n{}\n", lines.join("\n")))
}

#[rstest]
#[case::npm_answer("tool npm registry", "https://registry.corp.example/npm/", &["registry.corp.example"])]
#[case::npm_undefined("tool npm registry", "undefined", &[])]
#[case::npmrc("file /home/u/.npmrc", "registry = https://u:p@registry.corp.example:8443/npm\n; registry=https://old.example/\n@team:registry=\"https://team.example\"\n//team.example/:_authToken=x", &["registry.corp.example", "team.example"])]
#[case::npm_proxy("file /etc/npmrc", "https-proxy=http://proxy.corp.example:3128", &["proxy.corp.example"])]
#[case::pip("file /etc/pip.conf", "[global]\nindex-url = https://Mirror.Example/simple\nextra-index-url =\n    https://one.example/simple\n    https://two.example/simple\n# find-links = https://old.example\ntrusted-host = other.example\n", &["mirror.example", "one.example", "two.example"])]
#[case::pip_spelled_otherwise("file /etc/pip.conf", "[install]\nindex_url: https://mirror.example\nfind-links = /srv/wheels file:///srv/more\n", &["mirror.example"])]
#[case::pip_variable("env PIP_EXTRA_INDEX_URL", "https://one.example https://two.example", &["one.example", "two.example"])]
#[case::cargo("file /home/u/.cargo/config.toml", "[source.any]\nreplace-with = 'm'\n[source.m]\nregistry = \"sparse+https://mirror.example/index/\"\n[registries]\ncorp = { index = 'ssh://git@git.corp.example/index.git' }\n[http]\nproxy = \"http://proxy.example:1\"\n", &["git.corp.example", "mirror.example", "proxy.example"])]
#[case::cargo_on_disk("file /home/u/.cargo/config.toml", "[source.x]\ndirectory = 'vendor'\n", &[])]
#[case::apt("file /etc/apt/sources.list", "# deb http://old.example x main\ndeb http://mirror.example/debian stable main\ndeb-src [ arch=amd64 signed-by=/x ] https://signed.example/ x main\ndeb [trusted=yes] file:/srv/apt ./\ndeb cdrom:[x]/ y main\ndeb mirror+https://list.example/m x main", &["mirror.example", "signed.example", "list.example"])]
#[case::apt_deb822("file /etc/apt/sources.list.d/x.sources", "Types: deb\nURIs: http://one.example/debian\n https://two.example/debian\nSuites: stable\n\nEnabled: no\nTypes: deb\nURIs: http://off.example/\n\n# URIs: http://old.example\nTypes: deb\nuris: tor+http://three.example\n", &["one.example", "two.example", "three.example"])]
#[case::apt_proxy("tool apt-config acquire", "Acquire \"\";\nAcquire::http::Proxy \"http://cache.example:3142\";\nAcquire::http::Pipeline-Depth \"0\";", &["cache.example"])]
#[case::go("tool go proxy", "https://proxy.corp.example/go|https://second.example,off", &["proxy.corp.example", "second.example"])]
#[case::go_sums("tool go sums", "sums.corp.example+abc https://sums2.example/x", &["sums2.example"])]
#[case::go_sums_by_name("tool go sums", "sums.corp.example", &["sums.corp.example"])]
#[case::go_sums_off("tool go sums", "off", &[])]
#[case::go_file("file /home/u/.config/go/env", "GOPROXY=https://proxy.corp.example\nGOFLAGS=-x=https://no.example", &["proxy.corp.example"])]
#[case::nothing("tool cargo version", "cargo 1.95.0", &[])]
fn hosts_are_found(#[case] head: &str, #[case] content: &str, #[case] want: &[&str]) {
    let found = facts(head, content).registries(&|_| false);
    assert_eq!(found.names(), want);
}

#[rstest]
#[case::pip(
    "tool pip3 version",
    "pip 25",
    "pip doesn't tell where it looks when no index is set."
)]
#[case::cargo(
    "tool cargo version",
    "cargo 1",
    "cargo doesn't tell where it looks when its source isn't replaced."
)]
#[case::downloads(
    "file /c/config.toml",
    "[source.a]\nreplace-with='b'",
    "where an index lets cargo download from is only told by the index."
)]
#[case::direct(
    "tool go proxy",
    "https://p.example,direct",
    "go fetches what its proxy doesn't have from the module's own host."
)]
#[case::broken("file /c/config.toml", "[source", "`/c/config.toml` can't be parsed.")]
fn what_cannot_be_found_out_is_said_with_a_remedy(
    #[case] head: &str,
    #[case] content: &str,
    #[case] want: &str,
) {
    let found = facts(head, content).registries(&|_| false);
    let reasons: Vec<&str> = found
        .unknown
        .iter()
        .map(|unknown| unknown.reason.as_str())
        .collect();
    assert_eq!(reasons, [want]);
    assert!(found.unknown[0].remedy.contains("\"HOST\""), "{found:?}");
}

#[test]
fn a_file_that_commands_can_write_does_not_count() {
    let facts = facts(
        "file /home/u/.config/pip/pip.conf",
        "[global]\nindex-url = https://evil.example",
    );
    let found = facts.registries(&|path| path.starts_with("/home/u/.config/"));
    assert_eq!(found.names(), Vec::<String>::new());
    assert_eq!(
        found.unknown[0].reason,
        "`/home/u/.config/pip/pip.conf` doesn't count, because commands can write it."
    );
}

#[test]
fn a_content_cannot_pose_as_a_head() {
    let found = facts(
        "file /home/u/.npmrc",
        "x\n=tool npm registry\nhttps://evil.example",
    )
    .registries(&|_| false);
    assert_eq!(found.names(), Vec::<String>::new());
}

#[test]
fn the_hosts_are_let_in_where_the_policy_says_registries() {
    let url = Action::Url("https://registry.corp.example/x");
    let hosts = ["registry.corp.example".to_owned()];
    let denied = |policy: &boxery_policy::Policy| !matches!(policy.evaluate(url), Verdict::Allow);
    let with = support::policy(r#"{"network": {"allowedDomains": ["registries"]}}"#);
    let without = support::policy(r#"{"network": {"allowedDomains": ["a.example"]}}"#);
    let barred = support::policy(
        r#"{"network": {"allowedDomains": ["registries"], "deniedDomains": ["registry.corp.example"]}}"#,
    );
    assert!(denied(&with) && with.wants_registries() && !without.wants_registries());
    assert!(!denied(&with.with_registries(&hosts)));
    assert!(denied(&without.with_registries(&hosts)));
    assert!(denied(&barred.with_registries(&hosts)));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the file is the test's own")]
fn the_script_runs_in_a_plain_shell_and_its_facts_are_read() {
    let home = std::env::temp_dir().join(format!("boxery-registries-{}", std::process::id()));
    std::fs::create_dir_all(&home).expect("a folder");
    std::fs::write(
        home.join(".npmrc"),
        "registry=https://registry.corp.example/\n=file /x\n",
    )
    .expect("a file");
    let output = std::process::Command::new("sh")
        .args(["-c", GATHER])
        .env("HOME", &home)
        .env("PIP_INDEX_URL", "https://mirror.example/simple")
        .output()
        .expect("sh runs");
    std::fs::remove_dir_all(&home).expect("the folder goes");
    assert!(output.status.success(), "{output:?}");
    let facts = Facts::parse(&String::from_utf8_lossy(&output.stdout));
    let names = facts.registries(&|_| false).names();
    for host in ["registry.corp.example", "mirror.example"] {
        assert!(names.iter().any(|name| name == host), "{names:?}");
    }
}
