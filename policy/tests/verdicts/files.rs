//! How policy files are found, read, extended and merged.

use boxery_policy::{Origin, find_policy, parse_policy};
use rstest::rstest;
use serde_json::json;

use crate::support::{Disk, places};

fn merged(parent: &str, child: &str) -> serde_json::Value {
    let child = child.replacen('{', r#"{"extends": "./parent.json", "#, 1);
    let disk = Disk::of(&[("/w/fence.json", &child), ("/w/parent.json", parent)]);
    disk.resolve("/w/fence.json")
        .expect("both are valid")
        .content
        .to_json()
}

#[rstest]
#[case::lists_join(r#"{"command": {"deny": ["a", "b"]}}"#, r#"{"command": {"deny": ["b", "c"]}}"#, json!({"command": {"deny": ["a", "b", "c"]}}))]
#[case::numbers_join(r#"{"network": {"allowLocalOutboundPorts": [1, 2]}}"#, r#"{"network": {"allowLocalOutboundPorts": [2, 3]}}"#, json!({"network": {"allowLocalOutboundPorts": [1, 2, 3]}}))]
#[case::a_switch_stays_on(r#"{"allowPty": true}"#, r#"{"allowPty": false}"#, json!({"allowPty": true}))]
#[case::a_switch_goes_on(r#"{"allowPty": false}"#, r#"{"allowPty": true}"#, json!({"allowPty": true}))]
#[case::an_open_switch_is_the_childs(r#"{"command": {"useDefaults": true}}"#, r#"{"command": {"useDefaults": false}}"#, json!({"command": {"useDefaults": false}}))]
#[case::an_open_switch_is_inherited(r#"{"forceNewSession": true}"#, r#"{"allowPty": true}"#, json!({"forceNewSession": true, "allowPty": true}))]
#[case::a_text_is_the_childs(r#"{"network": {"upstreamProxy": "http://a:1"}}"#, r#"{"network": {"upstreamProxy": "http://b:2"}}"#, json!({"network": {"upstreamProxy": "http://b:2"}}))]
#[case::an_empty_text_says_nothing(r#"{"network": {"upstreamProxy": "http://a:1"}}"#, r#"{"network": {"upstreamProxy": ""}}"#, json!({"network": {"upstreamProxy": "http://a:1"}}))]
#[case::a_word_is_the_childs(r#"{"devices": {"mode": "host"}}"#, r#"{"devices": {"mode": "minimal"}}"#, json!({"devices": {"mode": "minimal"}}))]
#[case::a_number_is_the_childs(r#"{"network": {"httpProxyPort": 1}}"#, r#"{"network": {"httpProxyPort": 2}}"#, json!({"network": {"httpProxyPort": 2}}))]
#[case::zero_says_nothing(r#"{"network": {"httpProxyPort": 1}}"#, r#"{"network": {"httpProxyPort": 0}}"#, json!({"network": {"httpProxyPort": 1}}))]
#[case::strict_implies_default(r#"{"filesystem": {"strictDenyRead": true}}"#, r#"{"allowPty": true}"#, json!({"filesystem": {"strictDenyRead": true, "defaultDenyRead": true}, "allowPty": true}))]
#[case::ssh_and_macos(r#"{"ssh": {"allowedHosts": ["a"]}, "macos": {"mach": {"lookup": ["x"]}}}"#, r#"{"ssh": {"allowedHosts": ["b"], "inheritDeny": true}}"#, json!({"ssh": {"allowedHosts": ["a", "b"], "inheritDeny": true}, "macos": {"mach": {"lookup": ["x"]}}}))]
fn a_child_is_merged_into_its_parent(
    #[case] parent: &str,
    #[case] child: &str,
    #[case] want: serde_json::Value,
) {
    assert_eq!(merged(parent, child), want);
}

#[rstest]
#[case::comments("// a\n{ /* b */ \"allowPty\": true, }", json!({"allowPty": true}))]
#[case::any_case("{\"ALLOWPTY\": true, \"Command\": {\"DENY\": [\"a\"]}}", json!({"allowPty": true, "command": {"deny": ["a"]}}))]
#[case::objects_join("{\"command\": {\"deny\": [\"a\"]}, \"command\": {\"allow\": [\"b\"]}}", json!({"command": {"deny": ["a"], "allow": ["b"]}}))]
#[case::the_last_list_wins("{\"command\": {\"deny\": [\"a\"], \"deny\": [\"b\"]}}", json!({"command": {"deny": ["b"]}}))]
#[case::null_says_nothing("{\"command\": null, \"network\": {\"allowedDomains\": null}, \"allowPty\": null}", json!({}))]
#[case::null_takes_a_list_back("{\"command\": {\"deny\": [\"a\"], \"deny\": null}}", json!({}))]
#[case::a_schema_is_fine("{\"$schema\": \"x\"}", json!({}))]
#[case::each_entry_once("{\"command\": {\"deny\": [\"a\", \"a\"]}}", json!({"command": {"deny": ["a"]}}))]
#[case::null_at_the_top("null", json!({}))]
fn go_reads_it_so_and_so_do_we(#[case] text: &str, #[case] want: serde_json::Value) {
    let parsed = parse_policy(text, "f").expect("valid").expect("not empty");
    assert_eq!(parsed.content.to_json(), want);
}

#[test]
fn an_empty_file_has_the_defaults_and_does_not_fall_through() {
    assert_eq!(parse_policy(" \n", "f"), Ok(None));
    let disk = Disk::of(&[
        ("/w/fence.json", ""),
        ("/home/u/.config/fence/fence.json", r#"{"allowPty": true}"#),
    ]);
    let found = find_policy("/w/a", &places(), &disk);
    assert_eq!(found, Origin::Project("/w/fence.json".to_owned()));
    assert_eq!(
        disk.resolve("/w/fence.json").unwrap().content.to_json(),
        json!({})
    );
}

#[rstest]
#[case::byte_order_mark(
    "\u{feff}{}",
    "the policy `f` can't be parsed: it begins with a byte order mark"
)]
#[case::a_list("[]", "the policy `f` can't be parsed: it isn't an object")]
#[case::rest(
    "{} x",
    "the policy `f` can't be parsed: Text cannot contain more than one JSON value on line 1 column 4"
)]
#[case::open(
    "{",
    "the policy `f` can't be parsed: Unterminated object on line 1 column 1"
)]
#[case::single_quotes(
    "{'a': 1}",
    "the policy `f` can't be parsed: Single-quoted strings are not allowed on line 1 column 2"
)]
#[case::a_number(
    "{\"allowPty\": 1}",
    "the policy `f` has a wrong `allowPty`: it has to be true or false, and line 1 has the number 1"
)]
#[case::a_text(
    "{\"command\":\n{\"deny\": \"x\"}}",
    "the policy `f` has a wrong `command.deny`: it has to be a list of strings, and line 2 has a string"
)]
#[case::an_entry(
    "{\"command\": {\"deny\": [1]}}",
    "the policy `f` has a wrong `command.deny`: it has to be a list of strings, and line 1 has the number 1"
)]
#[case::a_section(
    "{\"command\": []}",
    "the policy `f` has a wrong `command`: it has to be an object, and line 1 has a list"
)]
#[case::a_fraction(
    "{\"network\": {\"httpProxyPort\": 1.5}}",
    "the policy `f` has a wrong `network.httpProxyPort`: it has to be a whole number, and line 1 has the number 1.5"
)]
#[case::a_word(
    "{\"devices\": {\"mode\": \"all\"}}",
    "the policy `f` has a wrong `devices.mode`: `all` is none of `auto`, `minimal`, `host`"
)]
#[case::an_empty_rule(
    "{\"command\": {\"deny\": [\"\"]}}",
    "the policy `f` has a wrong `command.deny`: an entry is empty"
)]
#[case::a_scheme(
    "{\"network\": {\"allowedDomains\": [\"https://a.b\"]}}",
    "the policy `f` has a wrong `network.allowedDomains`: `https://a.b` has a scheme; a domain is only a name"
)]
#[case::a_path(
    "{\"network\": {\"deniedDomains\": [\"a.b/c\"]}}",
    "the policy `f` has a wrong `network.deniedDomains`: `a.b/c` has a path; a domain is only a name"
)]
#[case::a_port(
    "{\"network\": {\"allowedDomains\": [\"a.b:1\"]}}",
    "the policy `f` has a wrong `network.allowedDomains`: `a.b:1` has a port; a domain is only a name"
)]
#[case::one_label(
    "{\"network\": {\"allowedDomains\": [\"a\"]}}",
    "the policy `f` has a wrong `network.allowedDomains`: `a` is a single word; a domain has a dot"
)]
#[case::a_wide_star(
    "{\"network\": {\"allowedDomains\": [\"*.com\"]}}",
    "the policy `f` has a wrong `network.allowedDomains`: `*.com` is a single word; a domain has a dot"
)]
#[case::a_star_inside(
    "{\"network\": {\"allowedDomains\": [\"a.*.b\"]}}",
    "the policy `f` has a wrong `network.allowedDomains`: `a.*.b` has a `*` elsewhere than in front, as in `*.example.com`"
)]
#[case::a_dot(
    "{\"network\": {\"allowedDomains\": [\"a.b.\"]}}",
    "the policy `f` has a wrong `network.allowedDomains`: `a.b.` begins or ends with a dot"
)]
#[case::no_port(
    "{\"network\": {\"allowLocalOutboundPorts\": [0]}}",
    "the policy `f` has a wrong `network.allowLocalOutboundPorts`: 0 is no port"
)]
#[case::a_reserved_port(
    "{\"network\": {\"allowLocalOutboundPorts\": [3128]}}",
    "the policy `f` has a wrong `network.allowLocalOutboundPorts`: 3128 is the sandbox's own proxy port"
)]
#[case::a_proxy(
    "{\"network\": {\"upstreamProxy\": \"https://a\"}}",
    "the policy `f` has a wrong `network.upstreamProxy`: `https://a` isn't `http://HOST[:PORT]`"
)]
#[case::no_proxy(
    "{\"network\": {\"defaultAction\": \"proxy\"}}",
    "the policy `f` has a wrong `network.defaultAction`: `proxy` needs `network.upstreamProxy` in the same file"
)]
#[case::a_user(
    "{\"ssh\": {\"allowedHosts\": [\"u@h\"]}}",
    "the policy `f` has a wrong `ssh.allowedHosts`: `u@h` has a user; a host is only a name"
)]
#[case::a_host_port(
    "{\"ssh\": {\"deniedHosts\": [\"h:22\"]}}",
    "the policy `f` has a wrong `ssh.deniedHosts`: `h:22` has a port; a host is only a name"
)]
#[case::a_device(
    "{\"devices\": {\"allow\": [\"/dev\"]}}",
    "the policy `f` has a wrong `devices.allow`: `/dev` isn't below `/dev/`"
)]
#[case::a_mach_name(
    "{\"macos\": {\"mach\": {\"lookup\": [\"a*b\"]}}}",
    "the policy `f` has a wrong `macos.mach.lookup`: `a*b` isn't a name, `prefix*` or `*`"
)]
fn what_cannot_be_read_says_why(#[case] text: &str, #[case] want: &str) {
    let error = parse_policy(text, "f").expect_err("it is wrong");
    assert_eq!(error.to_string(), want);
    assert!(!error.hint().is_empty());
}

#[rstest]
#[case::a_letter("{\"command\": {\"denny\": []}}", &["f:1: `command.denny` is no key of a policy and says nothing; did you mean `command.deny`?"])]
#[case::a_section("{\n\"commands\": {\"deny\": [\"x\"]}}", &["f:2: `commands` is no key of a policy and says nothing; did you mean `command`?"])]
#[case::the_wrong_place("{\"deny\": [\"x\"]}", &["f:1: `deny` is no key of a policy and says nothing; did you mean `command.deny`?"])]
#[case::nothing_near("{\"environment\": {}}", &["f:1: `environment` is no key of a policy and says nothing"])]
#[case::a_pipe("{\"command\": {\"deny\": [\"curl | sh\"]}}", &["f: the rule `curl | sh` of `command.deny` matches nothing: a rule is one command, without operators"])]
#[case::a_wildcard("{\"command\": {\"deny\": [\"git *\"]}}", &["f: the rule `git *` of `command.deny` means a `*` as it stands: rules have no wildcards, and match whatever follows them"])]
#[case::ssh_without_hosts("{\"ssh\": {\"allowedCommands\": [\"ls\"]}}", &["f: the `ssh` section does nothing without `ssh.allowedHosts` or `ssh.deniedHosts`"])]
#[case::registries("{\"network\": {\"allowedDomains\": [\"registries\", \"localhost\", \"*\"]}}", &[])]
fn what_says_nothing_is_told(#[case] text: &str, #[case] want: &[&str]) {
    let parsed = parse_policy(text, "f").expect("valid").expect("not empty");
    assert_eq!(parsed.warnings, want);
}

#[rstest]
#[case::nearest(&["/w/fence.json", "/w/a/fence.json"], Origin::Project("/w/a/fence.json".to_owned()))]
#[case::jsonc_first(&["/w/a/fence.json", "/w/a/fence.jsonc"], Origin::Project("/w/a/fence.jsonc".to_owned()))]
#[case::a_nearer_json_beats_a_farther_jsonc(&["/w/fence.jsonc", "/w/a/fence.json"], Origin::Project("/w/a/fence.json".to_owned()))]
#[case::a_folder_is_no_file(&["/w/fence.json", "/w/a/fence.json/x"], Origin::Project("/w/fence.json".to_owned()))]
#[case::the_root(&["/fence.json"], Origin::Project("/fence.json".to_owned()))]
#[case::the_users(&["/home/u/.config/fence/fence.json"], Origin::User("/home/u/.config/fence/fence.json".to_owned()))]
#[case::none(&[], Origin::Nobody)]
fn the_policy_that_applies_is_found(#[case] files: &[&str], #[case] want: Origin) {
    let disk = Disk::of(&files.iter().map(|path| (*path, "{}")).collect::<Vec<_>>());
    assert_eq!(find_policy("/w/a", &places(), &disk), want);
}

#[rstest]
#[case::missing(&[("/w/fence.json", r#"{"extends": "./x.json"}"#)], "the policy `/w/fence.json` extends `./x.json`, which isn't there")]
#[case::empty(&[("/w/fence.json", r#"{"extends": "./x.json"}"#), ("/w/x.json", " ")], "the policy `/w/fence.json` extends `./x.json`, which is empty")]
#[case::no_template(&[("/w/fence.json", r#"{"extends": "cod"}"#)], "no template is named `cod`")]
#[case::itself(&[("/w/fence.json", r#"{"extends": "./fence.json"}"#)], "the policy `./fence.json` extends itself")]
#[case::each_other(&[("/w/fence.json", r#"{"extends": "../a.json"}"#), ("/a.json", r#"{"extends": "/w/fence.json"}"#)], "the policy `/w/fence.json` extends itself")]
#[case::base_of_base(&[("/w/fence.json", r#"{"extends": "@base"}"#), ("/home/u/.config/fence/fence.json", r#"{"extends": "@base"}"#)], "the policy `@base` extends itself")]
#[case::a_broken_parent(&[("/w/fence.json", r#"{"extends": "./x.json"}"#), ("/w/x.json", "{")], "the policy `/w/x.json` can't be parsed: Unterminated object on line 1 column 1")]
#[case::checked_alone(&[("/w/fence.json", r#"{"extends": "./x.json", "network": {"defaultAction": "proxy"}}"#), ("/w/x.json", r#"{"network": {"upstreamProxy": "http://a"}}"#)], "the policy `/w/fence.json` has a wrong `network.defaultAction`: `proxy` needs `network.upstreamProxy` in the same file")]
fn extends_that_lead_nowhere_say_so(#[case] files: &[(&str, &str)], #[case] want: &str) {
    let error = Disk::of(files)
        .resolve("/w/fence.json")
        .expect_err("it is wrong");
    assert_eq!(error.to_string(), want);
}

#[test]
fn at_most_ten_policies_extend_each_other() {
    let chain = |length: usize| {
        let mut files: Vec<(String, String)> = (0..length)
            .map(|at| {
                (
                    format!("/w/{at}.json"),
                    format!(r#"{{"extends": "./{}.json"}}"#, at + 1),
                )
            })
            .collect();
        files.push((format!("/w/{length}.json"), "{}".to_owned()));
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        Disk::of(&files).resolve("/w/0.json")
    };
    assert!(chain(9).is_ok());
    assert_eq!(
        chain(10).unwrap_err().to_string(),
        "more than 10 policies extend each other"
    );
}

#[test]
fn templates_base_and_files_are_extended_and_named() {
    let disk = Disk::of(&[
        (
            "/w/fence.json",
            r#"{"extends": "@base", "command": {"deny": ["c"]}}"#,
        ),
        (
            "/home/u/.config/fence/fence.json",
            r#"{"extends": "git-readonly.json", "command": {"deny": ["b"]}}"#,
        ),
    ]);
    let resolved = disk.resolve("/w/fence.json").expect("valid");
    assert_eq!(
        resolved.chain,
        [
            "the template `git-readonly`",
            "/home/u/.config/fence/fence.json",
            "/w/fence.json"
        ]
    );
    let lines = resolved.content.origins();
    assert!(
        lines.contains(&"command.deny: \"git push\": the template `git-readonly`".to_owned()),
        "{lines:#?}"
    );
    assert!(
        lines.contains(&"command.deny: \"b\": /home/u/.config/fence/fence.json".to_owned()),
        "{lines:#?}"
    );
    assert!(
        lines.contains(&"command.deny: \"c\": /w/fence.json".to_owned()),
        "{lines:#?}"
    );
    let without = Disk::of(&[(
        "/w/fence.json",
        r#"{"extends": "@base", "command": {"deny": ["c"]}}"#,
    )]);
    assert_eq!(
        without
            .resolve("/w/fence.json")
            .expect("valid")
            .content
            .to_json(),
        json!({"command": {"deny": ["c"]}})
    );
}

#[test]
fn the_digest_is_of_everything_that_it_is_made_of() {
    let digest = |parent: &str| {
        let disk = Disk::of(&[
            ("/w/fence.json", r#"{"extends": "./p.json"}"#),
            ("/w/p.json", parent),
        ]);
        disk.resolve("/w/fence.json").expect("valid").digest
    };
    assert_eq!(digest("{}"), digest("{}"));
    assert_ne!(digest("{}"), digest("{ }"));
    assert_eq!(digest("{}").len(), 64);
}

#[rstest]
#[case::nothing("{}", &[])]
#[case::commands(r#"{"command": {"deny": ["x"]}, "ssh": {"allowedHosts": ["a"]}}"#, &[])]
#[case::files(r#"{"filesystem": {"allowWrite": ["."]}}"#, &["filesystem"])]
#[case::hosts(r#"{"network": {"allowedDomains": ["a.b"]}}"#, &["network"])]
#[case::every_host(r#"{"network": {"allowedDomains": ["*"]}}"#, &[])]
#[case::every_host_but(r#"{"network": {"allowedDomains": ["*"], "deniedDomains": ["a.b"]}}"#, &["network"])]
#[case::exec(r#"{"command": {"runtimeExecPolicy": "argv"}}"#, &["exec"])]
#[case::exec_by_path(r#"{"command": {"runtimeExecPolicy": "path"}}"#, &[])]
#[case::devices(r#"{"devices": {"mode": "minimal"}}"#, &["devices"])]
#[case::other_systems(r#"{"macos": {"mach": {"lookup": ["x"]}}, "network": {"allowUnixSockets": ["/x"]}, "allowPty": true}"#, &[])]
fn sections_that_need_the_vm_are_named(#[case] text: &str, #[case] want: &[&str]) {
    let parsed = parse_policy(text, "f").expect("valid").expect("not empty");
    let names: Vec<&str> = parsed
        .content
        .sections()
        .into_iter()
        .map(boxery_policy::Section::name)
        .collect();
    assert_eq!(names, want);
}
