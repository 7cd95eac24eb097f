//! `boxery hook install|uninstall|print|status`.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use boxery_router::{AgentId, Alarm, Alarms, SessionId};
use insta::assert_snapshot;
use rstest::rstest;
use serde_json::{Value, json};

use crate::scene::Scene;
use crate::support::{BOXERY, Sandbox};

fn put(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(content.as_bytes()).unwrap();
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn user_settings(sandbox: &Sandbox) -> PathBuf {
    sandbox.home().join(".claude/settings.json")
}

/// The binary's own folder is another one on each machine.
fn run(sandbox: &Sandbox, arguments: &[&str]) -> String {
    sandbox.run(arguments).replace(BOXERY, "[BOXERY]")
}

#[test]
fn install_twice_and_uninstall_leave_the_settings_as_they_were() {
    let sandbox = Sandbox::new();
    let original = "{\r\n\t\"model\": \"opus\"\r\n}";
    put(&user_settings(&sandbox), original);
    assert_snapshot!(run(&sandbox, &["hook", "install", "claude-code"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    installed boxery's hook for Claude Code in [SCRATCH]/home/.claude/settings.json
    ");
    let installed = text(&user_settings(&sandbox));
    assert_snapshot!(run(&sandbox, &["hook", "install", "claude-code"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    boxery's hook for Claude Code is already in [SCRATCH]/home/.claude/settings.json
    ");
    assert_eq!(text(&user_settings(&sandbox)), installed);
    assert_snapshot!(run(&sandbox, &["hook", "uninstall", "claude-code"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    removed boxery's hook for Claude Code from [SCRATCH]/home/.claude/settings.json
    ");
    assert_eq!(text(&user_settings(&sandbox)), original);
    assert_snapshot!(run(&sandbox, &["hook", "uninstall", "claude-code"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    boxery's hook for Claude Code is not installed here
    ");
}

#[rstest]
#[case::user("user", "home/.claude/settings.json")]
#[case::project("project", "project/.claude/settings.json")]
#[case::local("local", "project/.claude/settings.local.json")]
fn a_scope_is_a_file_that_goes_with_the_entry(#[case] scope: &str, #[case] file: &str) {
    let sandbox = Sandbox::new();
    let path = sandbox.home().parent().unwrap().join(file);
    sandbox.run(&["hook", "install", "claude-code", "--scope", scope]);
    assert!(text(&path).contains("hook run claude-code"));
    sandbox.run(&["hook", "uninstall", "claude-code", "--scope", scope]);
    assert!(!path.parent().unwrap().exists());
}

#[test]
fn claudes_own_variable_moves_the_users_settings() {
    let sandbox = Sandbox::new();
    let config = sandbox.home().join("config of claude");
    let status = sandbox
        .boxery(["hook", "install", "--all"])
        .env("CLAUDE_CONFIG_DIR", &config)
        .status()
        .unwrap();
    assert!(status.success());
    assert!(config.join("settings.json").exists());
    assert!(!user_settings(&sandbox).exists());
}

#[test]
fn another_file_can_be_named() {
    let sandbox = Sandbox::new();
    assert_snapshot!(run(&sandbox, &["hook", "install", "claude-code", "--file", "mine.json"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    installed boxery's hook for Claude Code in [SCRATCH]/project/mine.json
    ");
    assert!(sandbox.project().join("mine.json").exists());
    assert_snapshot!(run(&sandbox, &["hook", "uninstall", "claude-code", "--file", "mine.json"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    removed boxery's hook for Claude Code from [SCRATCH]/project/mine.json
    ");
    assert!(!sandbox.project().join("mine.json").exists());
}

#[test]
fn a_dry_run_shows_the_change_and_makes_none() {
    let sandbox = Sandbox::new();
    let original = "{\n  \"model\": \"opus\"\n}\n";
    put(&user_settings(&sandbox), original);
    let shown = run(
        &sandbox,
        &[
            "hook",
            "install",
            "claude-code",
            "--dry-run",
            "--mode",
            "redirect",
        ],
    );
    assert!(shown.contains("\n+  \"hooks\": {\n"), "{shown}");
    assert!(shown.contains("would set `mode = \"redirect\"`"), "{shown}");
    assert_eq!(text(&user_settings(&sandbox)), original);
    assert!(!sandbox.home().join(".config").exists());

    sandbox.run(&["hook", "install", "claude-code"]);
    let installed = text(&user_settings(&sandbox));
    let shown = run(&sandbox, &["hook", "uninstall", "claude-code", "--dry-run"]);
    assert!(shown.contains("\n-  \"hooks\": {\n"), "{shown}");
    assert_eq!(text(&user_settings(&sandbox)), installed);
}

#[rstest]
#[case::a_comment("{\n  // mine\n  \"a\": 1\n}\n")]
#[case::half("{")]
#[case::twice("{\"a\":1,\"a\":2}")]
fn settings_that_claude_would_drop_are_refused(#[case] original: &str) {
    let sandbox = Sandbox::new();
    put(&user_settings(&sandbox), original);
    let said = run(
        &sandbox,
        &["hook", "install", "claude-code", "--mode", "redirect"],
    );
    assert!(said.starts_with("exit: 125\n"), "{said}");
    assert!(
        said.contains("error: `[SCRATCH]/home/.claude/settings.json` is not what the agent reads"),
        "{said}"
    );
    assert!(said.contains("\nhint: "), "{said}");
    assert_eq!(text(&user_settings(&sandbox)), original);
    // Nothing else was done either.
    assert!(!sandbox.home().join(".config").exists());
}

#[test]
fn the_mode_is_set_in_boxerys_own_configuration_and_not_in_the_entry() {
    let sandbox = Sandbox::new();
    let config = sandbox.home().join(".config/boxery/config.toml");
    put(&config, "# mine\nallow = [\"git status\"]\n");
    sandbox.run(&["hook", "install", "claude-code"]);
    let entry = text(&user_settings(&sandbox));
    sandbox.run(&[
        "hook",
        "install",
        "claude-code",
        "--mode",
        "guard",
        "--auto-approve",
        "--no-mcp",
    ]);
    assert_eq!(
        text(&config),
        "# mine\nallow = [\"git status\"]\nmode = \"guard\"\nauto_approve = true\n"
    );
    assert_eq!(text(&user_settings(&sandbox)), entry);
}

#[test]
fn a_broken_configuration_stops_an_install_before_anything_is_written() {
    let sandbox = Sandbox::new();
    put(
        &sandbox.home().join(".config/boxery/config.toml"),
        "mod = \"guard\"\n",
    );
    let said = run(&sandbox, &["hook", "install", "claude-code"]);
    assert!(said.starts_with("exit: 125\n"), "{said}");
    assert!(!user_settings(&sandbox).exists());
}

#[test]
fn what_keeps_the_hook_from_the_last_word_is_named() {
    let sandbox = Sandbox::new();
    put(
        &sandbox.project().join(".claude/settings.json"),
        r#"{"disableAllHooks": true, "hooks": {"PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "rtk hook claude"}]},
            {"matcher": "Write|Edit", "hooks": [{"type": "command", "command": "prettier"}]}
        ]}}"#,
    );
    put(
        &sandbox.project().join(".claude/settings.local.json"),
        "{ // x\n}",
    );
    assert_snapshot!(run(&sandbox, &["hook", "install", "claude-code"]), @r#"
    exit: 0
    ----- stdout
    ----- stderr
    installed boxery's hook for Claude Code in [SCRATCH]/home/.claude/settings.json
    careful: Claude Code does not start this hook here, because of `disableAllHooks` in [SCRATCH]/project/.claude/settings.json
    careful: another hook may rewrite the same call, so redirect stays guard: rtk hook claude ([SCRATCH]/project/.claude/settings.json)
    careful: Claude Code drops settings that it can't read, and they may hold hooks: [SCRATCH]/project/.claude/settings.local.json: key must be a string at line 1 column 3
    "#);
    assert_snapshot!(run(&sandbox, &["hook", "status"]), @r"
    exit: 1
    ----- stdout
    Claude Code: not installed, or not called
      user     in [SCRATCH]/home/.claude/settings.json
      project  not in [SCRATCH]/project/.claude/settings.json
      local    can't be read: [SCRATCH]/project/.claude/settings.local.json: key must be a string at line 1 column 3
      mode     guard, unless a pin says otherwise
      proven   no; redirect stays guard
      seen     no session yet
      off      `disableAllHooks` in [SCRATCH]/project/.claude/settings.json
      rewriter rtk hook claude ([SCRATCH]/project/.claude/settings.json)
      broken   [SCRATCH]/project/.claude/settings.local.json: key must be a string at line 1 column 3
    ----- stderr
    ");
}

#[test]
fn two_entries_of_different_binaries_are_named() {
    let sandbox = Sandbox::new();
    sandbox.run(&["hook", "install", "claude-code", "--scope", "project"]);
    let path = sandbox.project().join(".claude/settings.json");
    put(&path, &text(&path).replace(BOXERY, "/old/boxery"));
    let said = run(&sandbox, &["hook", "install", "claude-code"]);
    assert!(
        said.contains("careful: different entries of boxery's"),
        "{said}"
    );
}

#[test]
fn a_policy_stands_in_the_configuration_and_the_entry_stays_the_same() {
    let sandbox = Sandbox::new();
    put(
        &sandbox.project().join("my fence.json"),
        r#"{"command": {"denny": []}}"#,
    );
    let install = |more: &[&str]| {
        run(
            &sandbox,
            &[&["hook", "install", "claude-code"], more].concat(),
        )
    };
    install(&[]);
    let plain = text(&user_settings(&sandbox));
    let said = install(&["--settings", "my fence.json"]);
    assert!(said.contains("did you mean `command.deny`?"), "{said}");
    let config = sandbox.home().join(".config/boxery/config.toml");
    let policy = sandbox.project().join("my fence.json");
    let want = format!("[hook.claude-code]\npolicy = \"{}\"\n", policy.display());
    assert_eq!(text(&config), want);
    install(&["--template", "code"]);
    let want = "[hook.claude-code]\npolicy = \"code\"\n";
    assert_eq!(text(&config), want);
    install(&[]);
    assert_eq!(text(&config), want, "an install that names none leaves it");
    assert_eq!(text(&user_settings(&sandbox)), plain);
    sandbox.run(&["hook", "uninstall", "claude-code"]);
    assert!(!text(&config).contains("policy"), "{}", text(&config));
}

#[rstest]
#[case::missing(&["--settings", "nowhere.json"], 2)]
#[case::broken(&["--settings", "broken.json"], 125)]
#[case::no_template(&["--template", "coed"], 125)]
fn a_policy_that_cannot_be_used_is_not_installed(#[case] more: &[&str], #[case] exit: u8) {
    let sandbox = Sandbox::new();
    put(&sandbox.project().join("broken.json"), "{");
    let said = run(
        &sandbox,
        &[&["hook", "install", "claude-code"], more].concat(),
    );
    assert!(said.starts_with(&format!("exit: {exit}\n")), "{said}");
    assert!(!user_settings(&sandbox).exists());
}

#[rstest]
#[case::no_agent(&["hook", "install"])]
#[case::unknown_agent(&["hook", "install", "claud-code"])]
#[case::two_policies(&["hook", "install", "--all", "--settings", "x", "--template", "y"])]
#[case::a_file_as_a_template(&["hook", "install", "claude-code", "--template", "./x"])]
#[case::scope_and_file(&["hook", "install", "--all", "--scope", "user", "--file", "x"])]
#[case::a_mode_that_is_none(&["hook", "install", "--all", "--mode", "off"])]
fn a_mistake_on_the_command_line_changes_nothing(#[case] arguments: &[&str]) {
    let sandbox = Sandbox::new();
    let said = run(&sandbox, arguments);
    assert!(said.starts_with("exit: 64\n"), "{said}");
    assert!(!user_settings(&sandbox).exists());
}

#[rstest]
fn an_agent_cannot_change_its_own_hook(#[values("install", "uninstall")] verb: &str) {
    let sandbox = Sandbox::new();
    sandbox.run(&["hook", "install", "claude-code"]);
    let before = text(&user_settings(&sandbox));
    let output = sandbox
        .boxery(
            ["hook", verb, "claude-code", "--mode", "guard"]
                .iter()
                .take(if verb == "install" { 5 } else { 3 }),
        )
        .env("CLAUDECODE", "1")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&user_settings(&sandbox)), before);
}

#[test]
fn what_is_printed_is_what_is_installed() {
    let sandbox = Sandbox::new();
    let printed = sandbox
        .boxery(["hook", "print", "claude-code"])
        .output()
        .unwrap();
    std::fs::create_dir(sandbox.home().join(".claude")).unwrap();
    sandbox.run(&["hook", "install", "claude-code"]);
    assert_eq!(
        String::from_utf8(printed.stdout).unwrap(),
        text(&user_settings(&sandbox))
    );
}

#[test]
fn status_says_what_is_installed_and_whether_it_works() {
    let sandbox = Sandbox::new();
    assert_snapshot!(run(&sandbox, &["hook", "status"]), @r"
    exit: 1
    ----- stdout
    Claude Code: not installed, or not called
      user     not in [SCRATCH]/home/.claude/settings.json
      project  not in [SCRATCH]/project/.claude/settings.json
      local    not in [SCRATCH]/project/.claude/settings.local.json
      mode     guard, unless a pin says otherwise
      proven   no; redirect stays guard
      seen     no session yet
    ----- stderr
    ");
    sandbox.run(&["hook", "install", "claude-code"]);
    assert_snapshot!(run(&sandbox, &["hook", "status", "claude-code"]), @r"
    exit: 0
    ----- stdout
    Claude Code: installed
      user     in [SCRATCH]/home/.claude/settings.json
      project  not in [SCRATCH]/project/.claude/settings.json
      local    not in [SCRATCH]/project/.claude/settings.local.json
      mode     guard, unless a pin says otherwise
      proven   no; redirect stays guard
      seen     no session yet
    ----- stderr
    ");
    let json = sandbox
        .boxery(["hook", "status", "--json"])
        .output()
        .unwrap();
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json[0]["live"], Value::Bool(true));
    assert_eq!(json[0]["scopes"][0]["binary"], Value::from(BOXERY));

    let path = user_settings(&sandbox);
    put(&path, &text(&path).replace(BOXERY, "/gone/boxery"));
    assert_snapshot!(run(&sandbox, &["hook", "status"]), @r"
    exit: 1
    ----- stdout
    Claude Code: not installed, or not called
      user     in [SCRATCH]/home/.claude/settings.json, but /gone/boxery can't be started; reinstall
      project  not in [SCRATCH]/project/.claude/settings.json
      local    not in [SCRATCH]/project/.claude/settings.local.json
      mode     guard, unless a pin says otherwise
      proven   no; redirect stays guard
      seen     no session yet
    ----- stderr
    ");
    put(&path, "{ // x\n}");
    assert_snapshot!(run(&sandbox, &["hook", "status"]), @r"
    exit: 2
    ----- stdout
    Claude Code: not installed, or not called
      user     can't be read: [SCRATCH]/home/.claude/settings.json: key must be a string at line 1 column 3
      project  not in [SCRATCH]/project/.claude/settings.json
      local    not in [SCRATCH]/project/.claude/settings.local.json
      mode     guard, unless a pin says otherwise
      proven   no; redirect stays guard
      seen     no session yet
      broken   [SCRATCH]/home/.claude/settings.json: key must be a string at line 1 column 3
    ----- stderr
    ");
}

#[test]
fn status_tells_the_last_session_and_every_escape() {
    let scene = Scene::new();
    scene.sandbox.run(&["hook", "install", "claude-code"]);
    let start = json!({
        "session_id": "s1", "cwd": scene.project(), "hook_event_name": "SessionStart",
        "source": "startup",
    });
    scene.hook(&start.to_string());
    let alarm = Alarm {
        version: 1,
        agent: AgentId("claude-code".to_owned()),
        session: Some(SessionId("s1".to_owned())),
        reason: "a call ran on this machine".to_owned(),
        raised_at: 7,
    };
    Alarms::new(scene.state("alarms")).raise(&alarm).unwrap();
    let said = scene.sandbox.run(&["hook", "status"]);
    assert!(said.starts_with("exit: 1\n"), "{said}");
    assert!(said.contains("  seen     a session began at 20"), "{said}");
    assert!(
        said.contains(
            "  alarm    session s1 is in guard: a call ran on this machine; \
             `boxery hook prove claude-code` ends that\n"
        ),
        "{said}"
    );
    let kinds = scene.sandbox.run(&["log"]);
    assert!(kinds.contains("install"), "{kinds}");
}

#[test]
fn an_installed_entry_says_nothing_while_nothing_is_pinned() {
    let sandbox = Sandbox::new();
    sandbox.run(&["hook", "install", "claude-code"]);
    let settings: Value = serde_json::from_str(&text(&user_settings(&sandbox))).unwrap();
    let command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
        .as_str()
        .unwrap();
    let mut child = sandbox
        .command("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let payload = r#"{"session_id":"s","cwd":"/","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"id"}}"#;
    // The hook may end before it has read everything.
    drop(child.stdin.take().unwrap().write_all(payload.as_bytes()));
    assert_snapshot!(sandbox.render(&child.wait_with_output().unwrap()), @r"
    exit: 0
    ----- stdout
    ----- stderr
    ");
}
