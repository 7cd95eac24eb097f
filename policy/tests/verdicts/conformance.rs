//! The verdicts of the real Fence, row by row, and the tables of its path and URL checks.
//!
//! `fence/cases.jsonl` was measured with a build of fence main 6d6e0c6 (2026-08-08):
//! `fence` is its verdict, `strict` the one that a sound engine gives where that differs.

use std::collections::BTreeMap;

use boxery_policy::{
    Action, Found, Origin, Places, Policy, Reader, Roots, Verdict, resolve_policy,
};
use rstest::rstest;
use serde::Deserialize;

/// One file, and nothing else on disk.
struct OneFile(String);

impl Reader for OneFile {
    fn read(&self, path: &str) -> Found {
        if path == "/w/fence.json" {
            Found::Text(self.0.clone())
        } else {
            Found::Missing
        }
    }
    fn canonical(&self, path: &str) -> String {
        path.to_owned()
    }
}

fn policy(json: &str) -> Policy {
    let file = OneFile(json.to_owned());
    let origin = Origin::Project("/w/fence.json".to_owned());
    let resolved = resolve_policy(origin, &Places::default(), &file).expect("the policy is valid");
    let links = |path: &str| (path == "/w/link").then(|| "/etc".to_owned());
    let roots = Roots {
        home: "/home/u",
        folder: "/w/t",
        links: &links,
    };
    Policy::new(&resolved, &roots)
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Deny { .. } => "deny",
        Verdict::Unclear { .. } => "unclear",
    }
}

#[derive(Deserialize)]
struct Head {
    policies: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct Row {
    id: String,
    policy: String,
    command: String,
    fence: String,
    strict: Option<String>,
}

#[test]
fn every_row_of_the_real_fence_gets_its_verdict() {
    let text = include_str!("../fence/cases.jsonl");
    let mut lines = text.lines();
    let head: Head = serde_json::from_str(lines.next().expect("a first line")).expect("policies");
    let policies: BTreeMap<String, Policy> = head
        .policies
        .iter()
        .map(|(name, json)| (name.clone(), policy(&json.to_string())))
        .collect();
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in lines {
        let row: Row = serde_json::from_str(line).expect("a row");
        let want = match row.strict.as_deref() {
            Some("unknown") => "unclear",
            Some(strict) => strict,
            None => row.fence.as_str(),
        };
        let verdict = policies[&row.policy].evaluate(Action::Command(&row.command));
        if word(&verdict) != want {
            wrong.push(format!(
                "{} {}: {:?} should be {want}, is {verdict:?}",
                row.id, row.policy, row.command
            ));
        }
        count += 1;
    }
    assert_eq!(count, 241, "no row is lost");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Table C of the research: paths.
const WRITES: &str = r#"{"filesystem": {
    "allowWrite": ["/w", "~/d", "./rel", "rel2", "/g/**/*.log"],
    "denyWrite": ["/w/sec", "**/.env", "*.key", "/w/**/*.pem"]}}"#;

#[rstest]
#[case::itself("/w", None, "allow")]
#[case::below("/w/a", None, "allow")]
#[case::no_prefix_of_a_name("/w/secret", None, "allow")]
#[case::home("/home/u/d/x", None, "allow")]
#[case::outside("/wx/a", None, "deny")]
#[case::denied("/w/sec", None, "deny")]
#[case::denied_below("/w/sec/a", None, "deny")]
#[case::env("/w/.env", None, "deny")]
#[case::env_below("/w/x/.env", None, "deny")]
#[case::other_env("/w/.env.local", None, "allow")]
#[case::key_never_matches("/w/a.key", None, "allow")]
#[case::key_relative("a.key", Some("/w"), "allow")]
#[case::pem("/w/a.pem", None, "deny")]
#[case::pem_below("/w/x/a.pem", None, "deny")]
#[case::relative_rule("rel/x", Some("/w/t"), "allow")]
#[case::relative("x", Some("/w"), "allow")]
#[case::relative_without_folder("x", None, "deny")]
#[case::folder_not_absolute("x", Some("w"), "deny")]
#[case::no_tilde_in_targets("~/d/x", None, "deny")]
#[case::tilde_is_a_name("~/d/x", Some("/w"), "allow")]
#[case::log("/g/a.log", None, "allow")]
#[case::log_below("/g/b/a.log", None, "allow")]
#[case::no_log("/g/b/a.txt", None, "deny")]
#[case::bashrc("/w/.bashrc", None, "deny")]
#[case::mcp("/w/.mcp.json", None, "deny")]
#[case::gitmodules("/w/.gitmodules", None, "deny")]
#[case::git_config("/w/.git/config", None, "deny")]
#[case::git_hook("/w/.git/hooks/x", None, "deny")]
#[case::vscode("/w/.vscode/s.json", None, "deny")]
#[case::idea("/w/.idea/x", None, "deny")]
#[case::git_head("/w/.git/HEAD", None, "allow")]
#[case::git_lock("/w/.git/config.lock", None, "allow")]
#[case::the_folder_itself("/w/.vscode", None, "allow")]
#[case::claude("/w/.claude/settings.json", None, "allow")]
#[case::fence("/w/fence.json", None, "allow")]
#[case::nothing("", None, "allow")]
#[case::dots("/w/x/../sec/a", None, "deny")]
#[case::dots_out("/w/../etc/passwd", None, "deny")]
fn writes_are_judged_as_by_fence(
    #[case] path: &str,
    #[case] folder: Option<&str>,
    #[case] want: &str,
) {
    let verdict = policy(WRITES).evaluate(Action::Write { path, folder });
    assert_eq!(word(&verdict), want, "{verdict:?}");
}

#[rstest]
#[case::git_config_stays_closed(
    r#"{"filesystem": {"allowWrite": ["/w"], "allowGitConfig": true}}"#,
    "/w/.git/config",
    "deny"
)]
#[case::nothing_is_writable("{}", "/w/a", "deny")]
#[case::an_empty_file("", "/w/a", "deny")]
#[case::a_link_means_its_target(
    r#"{"filesystem": {"allowWrite": ["/w/link"]}}"#,
    "/etc/passwd",
    "allow"
)]
#[case::not_the_link(
    r#"{"filesystem": {"allowWrite": ["/w/link"]}}"#,
    "/w/link/passwd",
    "deny"
)]
fn writes_depend_on_the_policy(#[case] json: &str, #[case] path: &str, #[case] want: &str) {
    let verdict = policy(json).evaluate(Action::Write { path, folder: None });
    assert_eq!(word(&verdict), want, "{verdict:?}");
}

/// Table C of the research: URLs.
const HOSTS: &str = r#"{"network": {
    "allowedDomains": ["example.com", "*.openai.com", "localhost"],
    "deniedDomains": ["bad.openai.com"]}}"#;

#[rstest]
#[case::plain("https://example.com/x", "allow")]
#[case::case_and_port("http://EXAMPLE.com:8080/", "allow")]
#[case::user("https://user:p@example.com/", "allow")]
#[case::websocket("wss://example.com/s", "allow")]
#[case::localhost("http://localhost:3000", "allow")]
#[case::wildcard("https://api.openai.com", "allow")]
#[case::deep("https://a.b.openai.com", "allow")]
#[case::below_a_denied_name("https://x.bad.openai.com/", "allow")]
#[case::the_base("https://openai.com/", "deny")]
#[case::below_an_exact_name("https://www.example.com/", "deny")]
#[case::suffix("https://example.com.evil.com", "deny")]
#[case::user_trick("https://example.com@evil.com/", "deny")]
#[case::trailing_dot("https://example.com./", "deny")]
#[case::address("http://127.0.0.1/", "deny")]
#[case::in_the_query("https://evil.com/?x=https://example.com", "deny")]
#[case::denied("https://bad.openai.com", "deny")]
#[case::ftp("ftp://example.com", "deny")]
#[case::file("file:///etc/passwd", "deny")]
#[case::no_scheme("example.com", "deny")]
#[case::relative("//example.com/x", "deny")]
#[case::no_host("https://", "deny")]
#[case::backslash("https://evil.com\\@example.com/", "deny")]
fn urls_are_judged_as_by_fence(#[case] url: &str, #[case] want: &str) {
    let verdict = policy(HOSTS).evaluate(Action::Url(url));
    assert_eq!(word(&verdict), want, "{verdict:?}");
}

#[test]
fn no_url_passes_without_a_list() {
    let verdict = policy("{}").evaluate(Action::Url("https://example.com"));
    assert_eq!(word(&verdict), "deny");
}
