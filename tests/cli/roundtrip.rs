//! A command's text from the model to the VM's bash, and its result back: the
//! endpoint, the agent's own shell, `boxery run` and an embedded VM, all real.

use std::path::Path;
use std::process::Output;

use boxery_pin::Mode;
use camino::Utf8PathBuf;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use crate::scene::{Scene, session_key, write};

/// A session redirected to an embedded VM that has a folder for the project.
pub(crate) struct Round {
    pub(crate) scene: Scene,
    /// The project's copy, as the VM sees it.
    pub(crate) copy: String,
}

impl Round {
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    /// The same with these lines first in the user's configuration.
    pub(crate) fn with(lines: &str) -> Self {
        let scene = Scene::redirected();
        let vm = "drift = \"off\"\n[vm.dev]\ntarget = \"embedded\"\ndir = \"/root/boxery\"\n";
        write(
            &scene.home().join(".config/boxery/config.toml"),
            &format!("{lines}{vm}"),
        );
        let words = shlex::split(&rewritten(&scene, "true")).unwrap();
        let copy = words[4].clone();
        let made = scene
            .sandbox
            .boxery(["run", "dev", "--cwd", "/root", "--", "mkdir", "-p", &copy])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", scene.sandbox.render(&made));
        Self { scene, copy }
    }

    /// What the VM's `path` is on this machine.
    fn in_vm(&self, path: &str) -> Utf8PathBuf {
        let root = self.scene.state("embedded/dev/root");
        root.join(path.trim_start_matches('/'))
    }

    /// Ask the hook about `command`, then run what it wrote as Claude Code does.
    pub(crate) fn run(&self, command: &str) -> Output {
        self.run_text(&rewritten(&self.scene, command))
    }

    /// The same for a call with other words in its payload.
    pub(crate) fn run_as(&self, command: &str, words: &Value) -> Output {
        let input = serde_json::json!({ "command": command });
        let mut payload: Value =
            serde_json::from_str(&self.scene.call("PreToolUse", "Bash", &input)).unwrap();
        for (key, value) in words.as_object().unwrap() {
            payload[key] = value.clone();
        }
        let said = crate::scene::answer(&self.scene.hook(&payload.to_string()));
        match &said["updatedInput"]["command"] {
            Value::String(text) => self.run_text(text),
            other => panic!("not rewritten: {said} {other}"),
        }
    }

    fn run_text(&self, text: &str) -> Output {
        let eval = format!("eval {} < /dev/null", shlex::try_quote(text).unwrap());
        self.scene
            .sandbox
            .command("/bin/bash")
            .args(["-c", &eval])
            .output()
            .unwrap()
    }

    /// Standard output of a command that succeeds.
    fn output(&self, command: &str) -> Vec<u8> {
        let output = self.run(command);
        assert!(
            output.status.success(),
            "{}",
            self.scene.sandbox.render(&output)
        );
        output.stdout
    }
}

fn rewritten(scene: &Scene, command: &str) -> String {
    let answer = scene.bash(command);
    match &answer["updatedInput"]["command"] {
        Value::String(text) => text.clone(),
        other => panic!("not rewritten: {answer} {other}"),
    }
}

/// The commands of the payloads that were recorded for being awkward.
fn awkward() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/tests/golden/claude-code");
    let mut commands = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.contains("fidelity") && name.ends_with(".in.json") {
            let payload: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            commands.push(
                payload["tool_input"]["command"]
                    .as_str()
                    .unwrap()
                    .to_owned(),
            );
        }
    }
    assert!(
        commands.len() >= 8,
        "only {} recorded commands",
        commands.len()
    );
    commands
}

#[test]
fn a_command_with_quotes_separators_substitutions_and_newlines_runs_only_in_the_vm() {
    let round = Round::new();
    let project = round.scene.project();
    let command = "touch \"it's $(printf 'a b');\" ; cat <<'EOF' > 'x\ny' && pwd\n$(touch evil) `touch evil`\nEOF";
    let output = round.run(command);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        round.scene.sandbox.render(&output)
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("{}\n", round.copy)
    );
    let there = round.in_vm(&round.copy);
    let mut names: Vec<String> = there
        .read_dir_utf8()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["it's a b;", "x\ny"]);
    let text = std::fs::read_to_string(there.join("x\ny")).unwrap();
    assert_eq!(text, "$(touch evil) `touch evil`\n");
    assert_eq!(
        project.read_dir_utf8().unwrap().count(),
        0,
        "nothing ran on the host"
    );
}

#[test]
fn recorded_commands_give_what_bash_gives_and_leave_the_host_alone() {
    let round = Round::new();
    for command in awkward() {
        let scratch = tempfile::tempdir().unwrap();
        let mut bash = round.scene.sandbox.command("/bin/bash");
        let local = bash
            .args(["-c", "--", &command])
            .env("HOME", "/root")
            .current_dir(scratch.path())
            .output()
            .unwrap();
        let remote = round.run(&command);
        let said = round.scene.sandbox.render(&remote);
        assert_eq!(
            remote.status.code(),
            local.status.code(),
            "{command:?}: {said}"
        );
        // A run ends with its shell: what a command left in the background writes may
        // come too late.
        if command.trim_end().ends_with('&') {
            assert!(
                local.stdout.starts_with(&remote.stdout),
                "{command:?}: {said}"
            );
        } else {
            let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(text(&remote), text(&local), "{command:?}: {said}");
        }
        let left = round.scene.project().read_dir_utf8().unwrap().count();
        assert_eq!(left, 0, "{command:?} left something on the host");
    }
}

#[test]
fn any_text_that_json_carries_reaches_the_vms_bash_unchanged() {
    let round = Round::new();
    let config = Config {
        cases: 24,
        failure_persistence: None,
        ..Config::default()
    };
    let text = proptest::string::string_regex("(?s)[^\0]{0,300}").unwrap();
    TestRunner::new(config)
        .run(&text, |tail| {
            // bash reads line by line and leaves before it reads the tail.
            let command = format!("printf %s \"$BASH_EXECUTION_STRING\"; exit\n{tail}");
            let got = round.output(&command);
            prop_assert_eq!(String::from_utf8_lossy(&got), command);
            Ok(())
        })
        .unwrap();
}

#[test]
fn texts_up_to_a_mebibyte_arrive_whole_and_longer_ones_are_denied() {
    let round = Round::new();
    for length in [90_000, 98_304, 131_071, 131_072, 200_000, 1 << 20] {
        let (head, end) = ("cat <<'END'\n", "\nEND\n");
        let line = "0123456789 'quoted' \"twice\" $HOME `x` \\\n";
        let body = &line.repeat(1 + length / line.len())[..length - head.len() - end.len()];
        let got = round.output(&format!("{head}{body}{end}"));
        assert!(
            got == format!("{body}\n").as_bytes(),
            "{length} bytes did not arrive whole"
        );
    }
    let answer = round.scene.bash(&"x".repeat((1 << 20) + 1));
    assert_eq!(answer["permissionDecision"], "deny");
}

#[test]
fn the_status_is_the_commands_own_and_a_ticket_works_once() {
    let round = Round::new();
    for (command, status) in [
        ("exit 7", 7),
        ("kill -9 $$", 137),
        ("exit 255", 255),
        ("true", 0),
    ] {
        assert_eq!(round.run(command).status.code(), Some(status), "{command}");
    }
    let tickets = round.scene.state("tickets");
    let waiting = tickets
        .read_dir_utf8()
        .unwrap()
        .flatten()
        .filter(|e| e.path().is_file())
        .count();
    assert_eq!(
        waiting, 1,
        "only the first call, which never ran, has its ticket left"
    );
}

#[test]
fn guard_gives_a_route_that_works_as_it_stands() {
    let round = Round::new();
    round.scene.pin(session_key(), Mode::Guard);
    let answer = round.scene.bash("echo \"it's\"; uname");
    let reason = answer["permissionDecisionReason"].as_str().unwrap();
    let start = reason.find('`').unwrap() + 1;
    let route = &reason[start..start + reason[start..].find('`').unwrap()];
    assert!(
        round
            .scene
            .hook(&round.scene.call(
                "PreToolUse",
                "Bash",
                &serde_json::json!({ "command": route })
            ))
            .stdout
            .is_empty()
    );
    let mut shell = round.scene.sandbox.command("/bin/bash");
    let output = shell.args(["-c", route]).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "it's\nLinux\n",
        "{route}"
    );
}
