//! The policy on the way out: what `boxery run` and `boxery jobs start` make of it.

use std::process::{Command, Output};

use boxery_record::{Filter, Log};
use rstest::rstest;
use serde_json::{Value, json};

use crate::scene::{Scene, answer, feed, write};

const NO_PUSH: &str = r#"{"command": {"deny": ["git push"]}}"#;
const EVERY_SECTION: &str = r#"{"filesystem": {"denyRead": ["~/.ssh"]}, "network": {"deniedDomains": ["example.com"]},
    "command": {"runtimeExecPolicy": "argv"}, "devices": {"mode": "minimal"}}"#;

/// A session redirected to the VM of this machine, whose copy of the project exists.
fn scene(configuration: &str) -> Scene {
    let scene = Scene::redirected();
    write(
        &scene.home().join(".config/boxery/config.toml"),
        &format!(
            "drift = \"off\"\n{configuration}\n[vm.dev]\ntarget = \"embedded\"\ndir = \"/root/boxery\"\n"
        ),
    );
    let copy = shlex::split(&rewritten(&scene, "true")).unwrap()[4].clone();
    let words = ["run", "dev", "--cwd", "/root", "--", "mkdir", "-p", &copy];
    let made = scene.sandbox.boxery(words).output().unwrap();
    assert!(made.status.success(), "{}", scene.sandbox.render(&made));
    scene
}

fn rewritten(scene: &Scene, command: &str) -> String {
    let answer = scene.bash(command);
    let text = answer["updatedInput"]["command"].as_str();
    text.unwrap_or_else(|| panic!("not rewritten: {answer}"))
        .to_owned()
}

/// Run what the hook wrote, as the agent does.
fn start(scene: &Scene, text: &str) -> Output {
    let mut shell = scene.sandbox.command("/bin/bash");
    shell.args(["-c", text]).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The details of the events of a kind.
fn details(scene: &Scene, kind: &str) -> Vec<String> {
    let log = Log::new(scene.state("log"));
    let entries = log.entries(Filter::default()).unwrap();
    let events = entries.map(|entry| entry.unwrap().event);
    events
        .filter(|event| event.kind.to_string() == kind)
        .map(|event| event.detail.unwrap_or_default())
        .collect()
}

#[test]
fn a_redirected_command_is_judged_again_and_the_first_result_says_that_no_file_holds() {
    let scene = scene("");
    let first = start(&scene, &rewritten(&scene, "echo one"));
    assert_eq!(String::from_utf8_lossy(&first.stdout), "one\n");
    assert!(
        said(&first).contains("no policy file holds here"),
        "{}",
        said(&first)
    );
    let second = start(&scene, &rewritten(&scene, "echo two"));
    assert!(
        !said(&second).contains("no policy file"),
        "{}",
        said(&second)
    );
}

#[rstest]
#[case::made(None, Some("{}"))]
#[case::changed(Some(NO_PUSH), Some("{}"))]
#[case::removed(Some(NO_PUSH), None)]
fn a_policy_that_changed_between_hook_and_run_refuses_the_run(
    #[case] before: Option<&str>,
    #[case] after: Option<&str>,
) {
    let scene = scene("");
    let path = scene.project().join("fence.json");
    let put = |text: Option<&str>| match text {
        Some(text) => write(&path, text),
        None => std::fs::remove_file(&path).unwrap(),
    };
    if before.is_some() {
        put(before);
    }
    let text = rewritten(&scene, "echo ran");
    put(after);
    let output = start(&scene, &text);
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    assert!(output.stdout.is_empty());
    assert!(
        said(&output).starts_with("boxery: the policy changed between the hook and this run"),
        "{}",
        said(&output)
    );
    assert_eq!(details(&scene, "run_refused").len(), 1);
    // Its ticket is used up, which is on record, and there for no second time.
    assert_eq!(details(&scene, "ticket_taken").len(), 1);
    start(&scene, &text);
    assert_eq!(details(&scene, "ticket_taken").len(), 1);
    // The same call once more is judged by the policy as it is now.
    let again = start(&scene, &rewritten(&scene, "echo ran"));
    assert_eq!(
        String::from_utf8_lossy(&again.stdout),
        "ran\n",
        "{}",
        said(&again)
    );
}

#[test]
fn trust_that_came_between_hook_and_run_is_a_change_too() {
    let scene = scene("");
    write(&scene.project().join("fence.json"), NO_PUSH);
    let text = rewritten(&scene, "echo ran");
    scene.sandbox.run(&["policy", "trust"]);
    let output = start(&scene, &text);
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
}

#[test]
fn a_worktree_of_a_project_that_only_the_hook_is_told_of_has_one_policy() {
    let scene = scene("mode = \"redirect\"");
    write(&scene.project().join("fence.json"), NO_PUSH);
    let worktree = scene.home().join("worktree");
    let git = "git init -q && git -c user.name=n -c user.email=e commit -q --allow-empty -m x \
               && git worktree add -q \"$1\"";
    let mut shell = scene.sandbox.command("/bin/sh");
    let made = shell.args(["-c", git, "sh", worktree.as_str()]).status();
    assert!(made.unwrap().success());
    let pinned = |mut command: Command| {
        command.env("BOXERY_VM", "dev").current_dir(&worktree);
        command
    };
    let call = |text: &str| {
        let payload = scene.call("PreToolUse", "Bash", &json!({ "command": text }));
        let mut payload: Value = serde_json::from_str(&payload).unwrap();
        payload["cwd"] = json!(worktree);
        let mut hook = pinned(scene.sandbox.boxery(["hook", "run", "claude-code"]));
        hook.env("CLAUDE_PROJECT_DIR", scene.project());
        answer(&feed(hook, &payload.to_string()))
    };
    assert_eq!(call("git push")["permissionDecision"], "deny");
    let allowed = call("true");
    let text = allowed["updatedInput"]["command"].as_str().unwrap();
    let mut shell = pinned(scene.sandbox.command("/bin/bash"));
    let output = shell.args(["-c", text]).output().unwrap();
    assert!(
        said(&output).contains("isn't on the VM"),
        "{}",
        said(&output)
    );
}

#[rstest]
#[case::words(&["run", "dev", "--cwd", "/root", "--", "git", "push"], "`git push` of `command.deny`")]
#[case::text(&["run", "dev", "--cwd", "/root", "--", "bash", "-c", "env git push"], "`git push` of `command.deny`")]
#[case::unclear(&["run", "dev", "--cwd", "/root", "--", "bash", "-c", "$X"], "can't be judged")]
#[case::json(&["run", "dev", "--json", "--cwd", "/root", "--", "git", "push"], "`git push` of `command.deny`")]
#[case::job(&["jobs", "start", "dev", "--cwd", "/root", "--", "sudo", "git", "push"], "`git push` of `command.deny`")]
fn a_run_without_a_ticket_is_judged_too(#[case] words: &[&str], #[case] want: &str) {
    let scene = scene("");
    write(&scene.project().join("fence.json"), NO_PUSH);
    let output = scene.sandbox.boxery(words).output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{}", said(&output));
    assert!(said(&output).contains(want), "{}", said(&output));
    assert_eq!(details(&scene, "run_refused").len(), 1);
    assert!(
        details(&scene, "run_started").len() <= 1,
        "only the scene's own"
    );
}

#[test]
fn under_an_agent_a_run_without_a_ticket_has_the_policy_of_the_hook() {
    let scene = scene("[hook.claude-code]\npolicy = \"code\"");
    let words = ["run", "dev", "--cwd", "/root", "--", "git", "push"];
    let mut command = scene.sandbox.boxery(words);
    command.env("CLAUDECODE", "1");
    let output = command.output().unwrap();
    assert!(
        said(&output).contains("in the template `code`"),
        "{}",
        said(&output)
    );
}

#[test]
fn sections_that_no_vm_enforces_refuse_the_run_in_one_line() {
    let scene = scene("");
    write(&scene.project().join("fence.json"), EVERY_SECTION);
    let output = start(&scene, &rewritten(&scene, "echo ran"));
    assert_eq!(output.status.code(), Some(125));
    assert!(output.stdout.is_empty());
    let said = said(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("has rules on filesystem, network, exec, devices, which aren't enforced on VMs yet")
            && said.contains("accept = [\"filesystem:unavailable\", \"network:unavailable\", \"exec:unavailable\", \"devices:unavailable\"]"),
        "{said}"
    );
    assert_eq!(
        details(&scene, "run_refused"),
        ["filesystem, network, exec, devices"]
    );
}

#[rstest]
#[case::all(
    "accept = [\"filesystem:unavailable\", \"network:unavailable\", \"exec:unavailable\", \"devices:unavailable\"]",
    true
)]
#[case::not_all(
    "accept = [\"filesystem:unavailable\", \"network:unavailable\", \"exec:unavailable\"]",
    false
)]
#[case::less(
    "accept = [\"filesystem:unavailable\", \"network:partial\", \"exec:unavailable\", \"devices:unavailable\"]",
    false
)]
fn what_the_user_accepts_runs_and_is_on_record_each_time(#[case] accept: &str, #[case] runs: bool) {
    let scene = scene(accept);
    write(&scene.project().join("fence.json"), EVERY_SECTION);
    for _ in 0..2 {
        let output = start(&scene, &rewritten(&scene, "echo ran"));
        assert_eq!(output.status.success(), runs, "{}", said(&output));
    }
    let want = "not enforced, as the user accepts: filesystem, network, exec, devices";
    let on_record = details(&scene, "run_started");
    let count = on_record.iter().filter(|detail| *detail == want).count();
    assert_eq!(count, if runs { 2 } else { 0 }, "{on_record:?}");
}

#[test]
fn a_typo_of_a_policy_is_told_with_a_sessions_first_result() {
    let scene = scene("");
    write(
        &scene.project().join("fence.json"),
        r#"{"command": {"denny": ["x"]}}"#,
    );
    let first = said(&start(&scene, &rewritten(&scene, "echo a")));
    assert!(first.contains("did you mean `command.deny`?"), "{first}");
    let second = said(&start(&scene, &rewritten(&scene, "echo b")));
    assert!(
        second.is_empty() || !second.contains("did you mean"),
        "{second}"
    );
}

#[test]
fn show_asks_a_vm_what_registries_stands_for() {
    let scene = scene("");
    write(
        &scene.project().join("fence.json"),
        r#"{"network": {"allowedDomains": ["registries"]}}"#,
    );
    let words = ["policy", "show", "--vm", "dev", "--json"];
    let output = scene.sandbox.boxery(words).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let registries = &shown["registries"];
    let hosts = registries["hosts"].as_array().unwrap();
    let unknown = registries["unknown"].as_array().unwrap();
    // Which tools are there is the machine's; each host has a source, each gap a remedy.
    assert!(
        hosts.iter().all(|host| host["source"].is_string()),
        "{shown}"
    );
    assert!(
        unknown.iter().all(|gap| gap["remedy"].is_string()),
        "{shown}"
    );
    assert!(!hosts.is_empty() || !unknown.is_empty(), "{shown}");

    let output = scene
        .sandbox
        .boxery(["policy", "show", "--vm", "dev"])
        .output()
        .unwrap();
    assert!(
        said(&output).contains("`registries` on dev:"),
        "{}",
        said(&output)
    );
}
