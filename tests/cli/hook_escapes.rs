//! Ways out of a pin that are not a command's text: what the endpoint can't read,
//! can't find or can't write.

use boxery_pin::{Mode, PinKey, SessionId};
use camino::{Utf8Path, Utf8PathBuf};
use rstest::rstest;
use serde_json::{Value, json};

use crate::hook::{Damage, answer_or_block, is_silent, reason};
use crate::scene::{SESSION, Scene, agent, answer, feed, write};

#[rstest]
#[case::another_pin_is_damaged(|scene: &Scene| write(&damaged_pin(scene), "{"))]
#[case::pins_cannot_be_written(|scene: &Scene| {
    std::fs::remove_file(scene.state("pins.lock")).unwrap();
    std::fs::create_dir(scene.state("pins.lock")).unwrap();
})]
fn a_cleared_session_is_never_local_when_its_pin_cannot_follow(#[case] damage: Damage) {
    let scene = Scene::guarded();
    let start = |session: &str, source: &str| {
        json!({ "session_id": session, "cwd": scene.project(), "hook_event_name": "SessionStart", "source": source })
            .to_string()
    };
    answer(&scene.hook(&start(SESSION, "startup")));
    damage(&scene);
    let context = answer(&scene.hook(&start("new", "clear")))["additionalContext"].clone();
    assert!(
        context.as_str().unwrap().contains("could not follow"),
        "{context}"
    );
    let call = scene
        .call("PreToolUse", "Bash", &json!({ "command": "id" }))
        .replace(SESSION, "new");
    reason(&answer(&scene.hook(&call)));
}

/// The file that a pin of another session has.
fn damaged_pin(scene: &Scene) -> Utf8PathBuf {
    let before: Vec<_> = names(&scene.state("pins"));
    let key = PinKey::Session {
        agent: agent(),
        session: SessionId("other".to_owned()),
    };
    scene.pin(key, Mode::Guard);
    let mut after = names(&scene.state("pins"));
    after.retain(|path| !before.contains(path));
    after.remove(0)
}

fn names(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let entries = folder.read_dir_utf8().unwrap();
    entries.map(|entry| entry.unwrap().into_path()).collect()
}

#[test]
fn a_call_that_names_no_session_is_denied_while_a_session_is_pinned() {
    let scene = Scene::guarded();
    let mut call: Value =
        serde_json::from_str(&scene.call("PreToolUse", "Bash", &json!({ "command": "id" })))
            .unwrap();
    call.as_object_mut().unwrap().remove("session_id");
    reason(&answer(&scene.hook(&call.to_string())));
}

#[rstest]
#[case::a_call(true)]
#[case::unreadable(false)]
fn a_session_that_left_its_pinned_project_is_still_pinned(#[case] readable: bool) {
    let scene = Scene::new();
    scene.pin(
        PinKey::Project {
            root: scene.project(),
        },
        Mode::Guard,
    );
    let elsewhere = scene.home().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let mut call: Value =
        serde_json::from_str(&scene.call("PreToolUse", "Bash", &json!({ "command": "id" })))
            .unwrap();
    call["cwd"] = elsewhere.as_str().into();
    let payload = if readable {
        call.to_string()
    } else {
        "{".to_owned()
    };
    let mut command = scene.sandbox.boxery(["hook", "run", "claude-code"]);
    command
        .current_dir(&elsewhere)
        .env("CLAUDE_PROJECT_DIR", scene.project());
    reason(&answer_or_block(&feed(command, &payload)));
}

#[test]
fn pins_are_found_without_a_home() {
    let scene = Scene::guarded();
    let payload = scene.call("PreToolUse", "Bash", &json!({ "command": "id" }));
    let mut command = scene.sandbox.boxery(["hook", "run", "claude-code"]);
    command
        .env("HOME", "")
        .env("XDG_STATE_HOME", scene.home().join(".local/state"));
    reason(&answer_or_block(&feed(command, &payload)));
}

#[test]
fn a_payload_beyond_all_bounds_is_nothing_to_a_session_that_is_not_pinned() {
    let scene = Scene::new();
    let elsewhere = scene.home().join("elsewhere");
    scene.pin(PinKey::Project { root: elsewhere }, Mode::Guard);
    let input = json!({ "file_path": "x".repeat(17 << 20) });
    assert!(is_silent(&scene.hook(&scene.call(
        "PostToolUse",
        "Read",
        &input
    ))));
}
