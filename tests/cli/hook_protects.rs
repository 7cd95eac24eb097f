//! What the endpoint keeps the model from writing or choosing while pinned.

use rstest::rstest;
use serde_json::{Value, json};

use crate::hook::{is_silent, reason};
use crate::scene::{Scene, answer, feed, write};
use crate::support::BOXERY;

#[rstest]
#[case::this_program(BOXERY, json!(["mcp"]), true)]
#[case::another("/bin/sh", json!(["mcp"]), false)]
#[case::another_verb(BOXERY, json!(["run", "x"]), false)]
fn a_server_named_boxery_passes_when_it_is_this_program(
    #[case] command: &str,
    #[case] args: Value,
    #[case] passes: bool,
) {
    let scene = Scene::guarded();
    let call = scene.call(
        "PreToolUse",
        "mcp__boxery__vm_bash",
        &json!({ "command": "id" }),
    );
    assert!(reason(&answer(&scene.hook(&call))).contains("isn't this program"));
    let user = json!({ "mcpServers": { "boxery": { "command": command, "args": args } } });
    write(&scene.home().join(".claude.json"), &user.to_string());
    assert_eq!(is_silent(&scene.hook(&call)), passes);
    let project = json!({ "mcpServers": { "boxery": { "command": "sh" } } });
    write(&scene.project().join(".mcp.json"), &project.to_string());
    assert!(!is_silent(&scene.hook(&call)));
}

#[rstest]
#[case::boxerys_own("mcp__files__write", json!({ "path": "~/.config/boxery/config.toml", "content": "x" }))]
#[case::moved_there("mcp__files__move_file", json!({ "source": "x", "destination": "../home/.bashrc" }))]
#[case::a_folder_put_in_its_place("mcp__files__move_file", json!({ "source": "scripts", "destination": "sub/.claude" }))]
#[case::a_folder_taken_away("mcp__files__move_file", json!({ "source": "sub/.github/copilot", "destination": "x" }))]
#[case::a_link_in_the_project("Write", json!({ "file_path": "tools/claude/settings.json", "content": "x" }))]
#[case::read_by_a_start_up_file("Write", json!({ "file_path": "../home/env/setup.sh", "content": "x" }))]
#[case::a_hooks_script("Write", json!({ "file_path": "scripts/fmt.sh", "content": "x" }))]
#[case::a_status_line("Edit", json!({ "file_path": "scripts/status" }))]
#[case::on_the_path("Write", json!({ "file_path": "../home/bin/git", "content": "x" }))]
#[case::of_a_variable("Write", json!({ "file_path": "notes.txt", "content": "x" }))]
#[case::the_repositorys_own("Write", json!({ "file_path": ".bare/config", "content": "x" }))]
#[case::hidden_in_the_home("Write", json!({ "file_path": "~/.cargo/env", "content": "x" }))]
#[case::an_ordinary_file("Write", json!({ "file_path": "scripts/other.sh", "content": "x" }))]
#[case::the_models_notes("Write", json!({ "file_path": "~/.claude/plans/a.md", "content": "x" }))]
fn what_runs_on_this_machine_is_not_written(#[case] tool: &str, #[case] input: Value) {
    let scene = Scene::guarded();
    let (home, project) = (scene.home(), scene.project());
    write(&home.join(".bashrc"), ". \"$HOME/env/setup.sh\"\n");
    write(&project.join("tools/claude/settings.json"), &json!({
        "hooks": { "PostToolUse": [{ "hooks": [{ "type": "command", "command": "sh \"$CLAUDE_PROJECT_DIR\"/scripts/fmt.sh" }] }] },
        "statusLine": { "type": "command", "command": "scripts/status -x" },
    }).to_string());
    std::os::unix::fs::symlink("tools/claude", project.join(".claude")).unwrap();
    for file in ["scripts/fmt.sh", "scripts/status", "scripts/other.sh"] {
        write(&project.join(file), "");
    }
    std::fs::create_dir_all(home.join("bin")).unwrap();
    let git = |arguments: &[&str]| {
        let mut git = scene.sandbox.command("git");
        assert!(
            git.args(arguments)
                .current_dir(&project)
                .output()
                .unwrap()
                .status
                .success()
        );
    };
    git(&["init", "-q", "--bare", ".bare"]);
    write(&project.join(".git"), "gitdir: .bare\n");
    let mut command = scene.sandbox.boxery(["hook", "run", "claude-code"]);
    command
        .env("CLAUDE_PROJECT_DIR", &project)
        .env("CLAUDE_ENV_FILE", project.join("notes.txt"))
        .env("PATH", format!("{home}/bin:/usr/bin:/bin"));
    let output = feed(command, &scene.call("PreToolUse", tool, &input));
    let text = input.to_string();
    if text.contains("other.sh") || text.contains("plans") {
        assert!(is_silent(&output), "{output:?}");
    } else {
        let said = answer(&output);
        assert!(reason(&said).contains("can't change it"), "{said}");
    }
}

#[test]
fn a_project_brought_variable_changes_neither_vm_nor_mode_of_a_pin() {
    let scene = Scene::guarded();
    let by_settings = |value: &str| {
        let mut agent = scene.sandbox.command("sh");
        agent
            .arg("-c")
            .arg(r#"env CLAUDE_PID=$$ BOXERY_VM="$1" "$0" hook run claude-code; exit"#)
            .args([BOXERY, value]);
        let call = scene.call("PreToolUse", "Bash", &json!({ "command": "id" }));
        answer(&feed(agent, &call))
    };
    let config = scene.home().join(".config/boxery/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let text =
        format!("mode = \"redirect\"\n{text}\n[vm.here]\ntarget = \"embedded\"\ndir = \"/root\"\n");
    write(&config, &text);
    assert!(reason(&by_settings("here")).contains("name different VMs"));
    assert!(reason(&by_settings("dev")).starts_with("this session is pinned to VM dev; run it"));
}
