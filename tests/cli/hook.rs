//! The endpoint `boxery hook run claude-code`, fed as the agent feeds it.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use boxery_pin::{Mode, PinKey, SessionId};
use boxery_router::{Alarms, Ticket, Tickets};
use camino::Utf8Path;
use rstest::rstest;
use serde_json::{Value, json};

use crate::scene::{SESSION, Scene, answer, feed, now, write};
use crate::support::BOXERY;

pub(crate) fn reason(answer: &Value) -> &str {
    assert_eq!(answer["permissionDecision"], "deny", "{answer}");
    answer["permissionDecisionReason"].as_str().unwrap()
}

pub(crate) fn is_silent(output: &Output) -> bool {
    output.status.code() == Some(0) && output.stdout.is_empty() && output.stderr.is_empty()
}

/// Every recorded and made-up payload of Claude Code that the adapter is tested with.
fn golden() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/tests/golden/claude-code");
    let mut payloads: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".in.json"))
        .map(|path| {
            (
                path.display().to_string(),
                std::fs::read_to_string(&path).unwrap(),
            )
        })
        .collect();
    payloads.sort();
    assert!(payloads.len() > 20);
    payloads
}

// R2
#[test]
fn unpinned_says_nothing_to_every_payload_and_leaves_only_the_last_seen_mark() {
    let scene = Scene::new();
    let broken = [
        String::new(),
        "{".to_owned(),
        "null".to_owned(),
        "\u{feff}{}".to_owned(),
    ];
    for payload in golden()
        .into_iter()
        .map(|(_, payload)| payload)
        .chain(broken)
    {
        let output = scene.hook(&payload);
        assert!(is_silent(&output), "{payload}: {output:?}");
    }
    let state = scene.state("");
    let left: Vec<_> = state
        .read_dir_utf8()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_owned())
        .collect();
    assert_eq!(left, ["seen"]);
}

#[rstest]
#[case::configuration(".config/boxery/config.toml")]
#[case::log(".local/state/boxery/log")]
#[case::tickets(".local/state/boxery/tickets")]
#[case::hold(".local/state/boxery/hold")]
fn unpinned_looks_at_no_other_file_of_boxerys(#[case] broken: &str) {
    let scene = Scene::new();
    write(&scene.home().join(broken), "\0 not what boxery writes");
    assert!(is_silent(&scene.hook(&scene.call(
        "PreToolUse",
        "Bash",
        &json!({ "command": "id" })
    ))));
}

#[test]
fn another_session_in_another_project_is_untouched() {
    let scene = Scene::guarded();
    let payload = scene
        .call("PreToolUse", "Bash", &json!({ "command": "id" }))
        .replace(SESSION, "other");
    assert!(is_silent(&scene.hook(&payload)));
}

// R1
#[test]
fn guard_denies_every_recorded_shell_call_and_names_the_way() {
    let scene = Scene::guarded();
    let mut denied = 0;
    for (name, payload) in golden() {
        let Ok(mut payload) = serde_json::from_str::<Value>(&payload) else {
            continue;
        };
        let event = payload["hook_event_name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if !matches!(event.as_str(), "PreToolUse" | "PreSkillShellCommand")
            || payload["tool_name"] != "Bash"
            || !payload["tool_input"]["command"].is_string()
        {
            continue;
        }
        payload["session_id"] = SESSION.into();
        payload["cwd"] = scene.project().into_string().into();
        let answer = answer(&scene.hook(&payload.to_string()));
        assert_eq!(answer["hookEventName"], event.as_str());
        let reason = reason(&answer);
        assert!(
            reason.contains("vm_bash") || reason.contains("boxery"),
            "{name}: {reason}"
        );
        denied += 1;
    }
    assert!(denied >= 10, "{denied}");
}

#[test]
fn guard_tells_the_model_the_exact_route() {
    let scene = Scene::guarded();
    let answer = scene.bash("git commit -m \"$(cat <<'EOF'\nit's\nEOF\n)\"; echo done");
    let reason = reason(&answer);
    assert!(
        reason.starts_with("this session is pinned to VM dev; run it with vm_bash, or vm_jobs for long-running commands; without those tools run `/"),
        "{reason}"
    );
    let route = reason.split('`').nth(1).unwrap();
    // What the model is told to run is let pass, and nothing else of its kind.
    let passed = scene.hook(&scene.call("PreToolUse", "Bash", &json!({ "command": route })));
    assert!(is_silent(&passed), "{passed:?}");
    self::reason(&scene.bash(&format!("{route}; x")));
    let entry = scene.last_entry();
    assert_eq!(
        (&entry["decision"], &entry["rule"], &entry["vm"]),
        (&"deny".into(), &"guard".into(), &"dev".into())
    );
    assert!(!entry.to_string().contains("git commit"));
}

#[rstest]
#[case::monitor("Monitor", json!({ "command": "id" }))]
#[case::powershell("PowerShell", json!({ "command": "Get-Item ." }))]
#[case::foreign_server("mcp__shell__run", json!({ "a": { "script": "id" } }))]
#[case::own_configuration("Write", json!({ "file_path": "~/.config/boxery/config.toml", "content": "" }))]
#[case::policy("Write", json!({ "file_path": "fence.json", "content": "" }))]
#[case::start_up_file("Edit", json!({ "file_path": "~/.bashrc", "old_string": "", "new_string": "" }))]
#[case::start_up_file_after_a_blank("Write", json!({ "file_path": " ~/.bashrc", "content": "" }))]
#[case::aliases("Write", json!({ "file_path": "~/.bash_aliases", "content": "" }))]
#[case::users_git_configuration("Write", json!({ "file_path": "~/.gitconfig", "content": "" }))]
#[case::git_configuration("Write", json!({ "file_path": ".git/config", "content": "" }))]
#[case::git_head("Write", json!({ "file_path": "sub/.git/HEAD", "content": "" }))]
#[case::list_of_lists("mcp__shell__run", json!({ "commands": [["sh", "-c", "id"]] }))]
#[case::not_a_string("Bash", json!({ "command": ["id"] }))]
#[case::nothing("Bash", json!({}))]
fn other_ways_to_run_something_here_are_closed(#[case] tool: &str, #[case] input: Value) {
    let scene = Scene::guarded();
    let text = input.to_string().replace('~', scene.home().as_str());
    let input: Value = serde_json::from_str(&text).unwrap();
    reason(&answer_or_block(&scene.hook(&scene.call(
        "PreToolUse",
        tool,
        &input,
    ))));
}

/// Like [`answer`]; an unreadable payload is also denied by the exit status.
pub(crate) fn answer_or_block(output: &Output) -> Value {
    assert!(matches!(output.status.code(), Some(0 | 2)), "{output:?}");
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    value["hookSpecificOutput"].clone()
}

#[rstest]
#[case::read("Read", json!({ "file_path": "/etc/hosts" }))]
#[case::write("Write", json!({ "file_path": "src/a.rs", "content": "" }))]
#[case::search("ToolSearch", json!({ "query": "x" }))]
fn other_tools_pass(#[case] tool: &str, #[case] input: Value) {
    let scene = Scene::guarded();
    assert!(is_silent(&scene.hook(&scene.call(
        "PreToolUse",
        tool,
        &input
    ))));
    assert_eq!(scene.last_entry()["decision"], "pass");
}

#[test]
fn the_allowlist_and_harmless_verbs_pass() {
    let scene = Scene::guarded();
    let config = scene.home().join(".config/boxery/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    write(
        &config,
        &format!("allow = [\"git status\", \"ls\"]\n{text}"),
    );
    let binary = Path::new(BOXERY)
        .canonicalize()
        .unwrap()
        .display()
        .to_string();
    for text in ["git status -s", "ls 'a b'", &format!("{binary} status")] {
        assert!(
            is_silent(&scene.hook(&scene.call("PreToolUse", "Bash", &json!({ "command": text })))),
            "{text}"
        );
    }
    for text in [
        "git status; id",
        "ls *",
        "boxery status",
        &format!("{binary} unpin"),
    ] {
        reason(&scene.bash(text));
    }
}

#[rstest]
#[case::nothing("")]
#[case::no_json("{")]
#[case::two_documents("{}{}")]
#[case::a_key_twice(r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"true","command":"id"}}"#)]
#[case::a_lone_surrogate(
    r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"\ud800"}}"#
)]
fn a_payload_that_cannot_be_read_is_denied_while_a_pin_may_apply(#[case] payload: &str) {
    let output = Scene::guarded().hook(payload);
    assert_eq!(output.status.code(), Some(2));
    assert!(!output.stderr.is_empty());
    reason(&answer_or_block(&output));
}

#[test]
fn a_payload_of_any_size_is_drained_and_a_deep_one_denied() {
    let scene = Scene::guarded();
    reason(&scene.bash(&"x y; ".repeat(600_000)));
    let deep = "[".repeat(100_000);
    assert_eq!(scene.hook(&deep).status.code(), Some(2));
    let huge = scene.call(
        "PreToolUse",
        "Bash",
        &json!({ "command": "x".repeat(17 << 20) }),
    );
    assert_eq!(scene.hook(&huge).status.code(), Some(2));
}

pub(crate) type Damage = fn(&Scene);

#[rstest]
#[case::pin_not_json(|scene: &Scene| damage_pins(scene, |path| write(path, "{")))]
#[case::pin_empty(|scene: &Scene| damage_pins(scene, |path| write(path, "")))]
#[case::pin_of_a_later_version(|scene: &Scene| damage_pins(scene, |path| {
    let text = std::fs::read_to_string(path).unwrap();
    write(path, &text.replace("\"version\":1", "\"version\":99").replace("\"version\": 1", "\"version\": 99"));
}))]
#[case::pin_is_a_folder(|scene: &Scene| damage_pins(scene, |path| {
    std::fs::remove_file(path).unwrap();
    std::fs::create_dir(path).unwrap();
}))]
#[case::pins_is_a_file(|scene: &Scene| {
    std::fs::remove_dir_all(scene.state("pins")).unwrap();
    write(&scene.state("pins"), "");
})]
#[case::configuration_broken(|scene: &Scene| write(&scene.home().join(".config/boxery/config.toml"), "["))]
#[case::configuration_unknown_key(|scene: &Scene| write(&scene.home().join(".config/boxery/config.toml"), "alow = []"))]
#[case::vm_unknown(|scene: &Scene| write(&scene.home().join(".config/boxery/config.toml"), ""))]
#[case::policy_in_project(|scene: &Scene| write(&scene.project().join("fence.json"), "{"))]
#[case::policy_of_user(|scene: &Scene| write(&scene.home().join(".config/fence/fence.jsonc"), "[]"))]
#[case::hold(|scene: &Scene| write(&scene.state("hold"), "not now"))]
fn what_is_broken_denies(
    #[case] damage: Damage,
    #[values(Mode::Guard, Mode::Redirect)] mode: Mode,
) {
    let scene = match mode {
        Mode::Guard => Scene::guarded(),
        Mode::Redirect => Scene::redirected(),
    };
    damage(&scene);
    let output = scene.hook(&scene.call("PreToolUse", "Bash", &json!({ "command": "id" })));
    reason(&answer(&output));
}

fn damage_pins(scene: &Scene, damage: fn(&Utf8Path)) {
    for entry in scene.state("pins").read_dir_utf8().unwrap() {
        damage(entry.unwrap().path());
    }
}

#[rstest]
#[case::known("dev", true)]
#[case::unknown("nowhere", false)]
#[case::no_name("../x", false)]
fn boxery_vm_pins_every_call(#[case] value: &str, #[case] known: bool) {
    let scene = Scene::new();
    let mut command = scene.sandbox.boxery(["hook", "run", "claude-code"]);
    command.env("BOXERY_VM", value);
    let answer = answer(&feed(
        command,
        &scene.call("PreToolUse", "Bash", &json!({ "command": "id" })),
    ));
    assert_eq!(
        reason(&answer).contains("pinned to VM dev"),
        known,
        "{answer}"
    );
}

// A project's settings can set the variable for what the agent starts, not for the
// agent's own process. The shell plays the agent.
#[rstest]
#[case::blanked("dev", "BOXERY_VM=", true)]
#[case::changed("dev", "BOXERY_VM=nowhere", true)]
#[case::set_by_settings_alone("", "BOXERY_VM=dev", true)]
#[case::in_neither("", "BOXERY_VM=", false)]
fn boxery_vm_of_the_agents_own_process_comes_first(
    #[case] own: &str,
    #[case] settings: &str,
    #[case] pinned: bool,
) {
    let scene = Scene::new();
    let mut agent = scene.sandbox.command("sh");
    agent
        .arg("-c")
        .arg(r#"env CLAUDE_PID=$$ "$0" "$1" hook run claude-code; exit"#)
        .args([settings, BOXERY])
        .env("BOXERY_VM", own);
    let output = feed(
        agent,
        &scene.call("PreToolUse", "Bash", &json!({ "command": "id" })),
    );
    if pinned {
        assert!(reason(&answer(&output)).contains("pinned to VM dev"));
    } else {
        assert!(is_silent(&output), "{output:?}");
    }
}

#[test]
fn a_wrong_entry_denies_only_while_something_is_pinned() {
    let run = |scene: &Scene| feed(scene.sandbox.boxery(["hook", "run", "claude-kode"]), "{}");
    assert_eq!(run(&Scene::new()).status.code(), Some(64));
    assert_eq!(run(&Scene::guarded()).status.code(), Some(2));
}

#[test]
fn a_payload_that_never_ends_is_denied_within_the_deadline() {
    let scene = Scene::guarded();
    let mut command = scene.sandbox.boxery(["hook", "run", "claude-code"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{").unwrap();
    let begin = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!(output.status.code(), Some(2));
    drop(stdin);
}

// A FIFO in place of a file: opening it waits for a writer that never comes.
#[test]
fn a_file_that_never_answers_is_denied_within_the_deadline() {
    let scene = Scene::guarded();
    let config = scene.home().join(".config/boxery/config.toml");
    std::fs::remove_file(&config).unwrap();
    let made = Command::new("mkfifo").arg(&config).status().unwrap();
    assert!(made.success());
    let begin = Instant::now();
    let answer = scene.bash("id");
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert!(reason(&answer).contains("in time"), "{answer}");
}

#[test]
fn redirect_rewrites_and_leaves_one_ticket() {
    let scene = Scene::redirected();
    let input = r#"{"command":"a 'b';\nc","timeout":600000,"run_in_background":true,"big":12345678901234567890}"#;
    let payload = scene
        .call("PreToolUse", "Bash", &json!({}))
        .replace("\"tool_input\":{}", &format!("\"tool_input\":{input}"));
    let output = scene.hook(&payload);
    let answer = answer(&output);
    assert_eq!(answer.get("permissionDecision"), None, "{answer}");
    let binary = Path::new(BOXERY).canonicalize().unwrap();
    let text = answer["updatedInput"]["command"].as_str().unwrap();
    let words = shlex::split(text).unwrap();
    assert_eq!(words[0], binary.to_str().unwrap());
    assert_eq!(
        (&words[1..4], &words[5..]),
        (
            &["run", "dev", "--cwd"].map(str::to_owned)[..],
            &["--", "bash", "-c", "a 'b';\nc"].map(str::to_owned)[..],
        )
    );
    assert!(
        String::from_utf8_lossy(&output.stdout)
            .contains("\"timeout\":600000,\"run_in_background\":true,\"big\":12345678901234567890")
    );
    let folder = words[4].parse().unwrap();
    let tickets = Tickets::new(scene.state("tickets"));
    let take = || {
        tickets
            .take(&"dev".parse().unwrap(), &folder, "a 'b';\nc", now())
            .unwrap()
    };
    let ticket: Ticket = take().unwrap();
    assert_eq!(ticket.session, Some(SessionId(SESSION.to_owned())));
    assert_eq!(ticket.call.as_deref(), Some("toolu_1"));
    assert_eq!(take(), None);
    assert_eq!(scene.last_entry()["decision"], "rewrite");
}

#[test]
fn redirect_without_a_proof_is_guard() {
    let scene = Scene::redirected();
    std::fs::remove_dir_all(scene.state("proofs")).unwrap();
    let answer = scene.bash("id");
    assert!(
        reason(&answer).contains("vm_bash") && reason(&answer).contains("hook prove"),
        "{answer}"
    );
}

#[test]
fn a_ticket_that_cannot_be_left_denies() {
    let scene = Scene::redirected();
    write(&scene.state("tickets"), "in the way");
    assert!(reason(&scene.bash("id")).contains("can't keep"));
}

#[test]
fn a_folder_outside_the_project_is_denied() {
    let scene = Scene::redirected();
    let mut payload: Value =
        serde_json::from_str(&scene.call("PreToolUse", "Bash", &json!({ "command": "id" })))
            .unwrap();
    payload["cwd"] = scene.home().into_string().into();
    let answer = answer(&scene.hook(&payload.to_string()));
    assert!(
        reason(&answer).contains("outside the pinned project"),
        "{answer}"
    );
}

#[rstest]
#[case::guard(Mode::Guard)]
#[case::redirect(Mode::Redirect)]
fn a_call_that_left_a_pinned_project_is_still_pinned(#[case] mode: Mode) {
    let scene = Scene::new();
    let root = scene.project();
    scene.pin(PinKey::Project { root }, mode);
    let payload = scene.call("PreToolUse", "Bash", &json!({ "command": "id" }));
    let mut payload: Value = serde_json::from_str(&payload).unwrap();
    payload["cwd"] = scene.home().into_string().into();
    let mut hook = scene.sandbox.boxery(["hook", "run", "claude-code"]);
    hook.env("CLAUDE_PROJECT_DIR", scene.sandbox.project())
        .current_dir(scene.sandbox.home());
    let answer = answer(&feed(hook, &payload.to_string()));
    assert!(reason(&answer).contains("pinned to VM dev"), "{answer}");
}

#[rstest]
#[case::unset(None)]
#[case::empty(Some(""))]
#[case::relative(Some("home"))]
fn a_home_that_nobody_names_does_not_open_a_pinned_session(#[case] home: Option<&str>) {
    let scene = Scene::guarded();
    let mut hook = scene.sandbox.boxery(["hook", "run", "claude-code"]);
    hook.env_remove("HOME");
    if let Some(home) = home {
        hook.env("HOME", home);
    }
    // The state folder is known all the same.
    hook.env("XDG_STATE_HOME", scene.home().join(".local/state"));
    let payload = scene.call("PreToolUse", "Bash", &json!({ "command": "id" }));
    let answer = answer(&feed(hook, &payload));
    reason(&answer);
}

#[test]
fn an_original_that_ran_raises_the_alarm_and_drops_the_session_to_guard() {
    let scene = Scene::redirected();
    let written = scene.bash("id")["updatedInput"]["command"]
        .as_str()
        .unwrap()
        .to_owned();
    let fine = scene.call("PostToolUse", "Bash", &json!({ "command": written }));
    assert!(is_silent(&scene.hook(&fine)));

    scene.bash("id");
    let escaped = scene.hook(&scene.call("PostToolUse", "Bash", &json!({ "command": "id" })));
    let context = answer(&escaped)["additionalContext"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(context.contains("ALARM"), "{context}");
    assert_eq!(scene.last_entry()["kind"], "escaped");
    assert_eq!(Alarms::new(scene.state("alarms")).list().unwrap().len(), 1);
    assert!(reason(&scene.bash("id")).contains("redirect is off for this session"));
}

#[test]
fn a_grep_without_a_match_is_explained() {
    let scene = Scene::redirected();
    let written = scene.bash("grep -q nothing f")["updatedInput"]["command"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut payload: Value = serde_json::from_str(&scene.call(
        "PostToolUseFailure",
        "Bash",
        &json!({ "command": written }),
    ))
    .unwrap();
    payload["error"] = "Exit code 1".into();
    let context = answer(&scene.hook(&payload.to_string()))["additionalContext"].clone();
    assert!(context.as_str().unwrap().contains("no match"), "{context}");
}

#[test]
fn a_session_is_told_of_its_pin_when_it_begins_and_inherits_it_when_it_goes_on() {
    let scene = Scene::guarded();
    let start = |session: &str, source: &str| {
        json!({ "session_id": session, "cwd": scene.project(), "hook_event_name": "SessionStart", "source": source })
            .to_string()
    };
    let context = answer(&scene.hook(&start(SESSION, "startup")))["additionalContext"].clone();
    assert!(
        context.as_str().unwrap().contains("pinned to VM dev"),
        "{context}"
    );
    let context = answer(&scene.hook(&start("new", "resume")))["additionalContext"].clone();
    assert!(context.as_str().unwrap().contains("inherits"), "{context}");
    let call = scene
        .call("PreToolUse", "Bash", &json!({ "command": "id" }))
        .replace(SESSION, "new");
    reason(&answer(&scene.hook(&call)));
}

#[test]
fn what_the_endpoint_writes_is_private() {
    let scene = Scene::redirected();
    scene.bash("export TOKEN=hunter2");
    let mut stack = vec![scene.state("")];
    while let Some(path) = stack.pop() {
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o077, 0, "{path}");
        if metadata.is_dir() {
            stack.extend(
                path.read_dir_utf8()
                    .unwrap()
                    .map(|entry| entry.unwrap().into_path()),
            );
        } else {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(!text.contains("hunter2"), "{path}");
        }
    }
}
