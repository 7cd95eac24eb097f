//! What a session inherits under its new id.

use boxery_pin::{
    Lookup, Mode, PinError, PinFile, PinKey, ProcessId, Rekey, SessionStart, StartKind, rekey,
};
use camino::Utf8Path;
use rstest::rstest;

use crate::support::{
    DAY, NOW, Scene, claude, git, nobody, own_process, pin, process, session, session_id,
};

const OTHER: ProcessId = ProcessId { pid: 77, start: 7 };

/// A pin of the session `id`, made in `folder`, used at `used_at`.
fn pin_session(scene: &Scene, id: &str, vm: &str, folder: &Utf8Path, used_at: u64) -> PinFile {
    let project = boxery_pin::Project::of(folder).unwrap();
    let pin = PinFile {
        project: Some(project.root),
        git_common: project.git_common,
        used_at,
        ..pin(session(id), vm)
    };
    scene.store.write(&pin).unwrap();
    pin
}

fn start(scene: &Scene, kind: StartKind, id: &str, folder: &Utf8Path) -> Rekey {
    start_in(scene, kind, id, folder, Some(own_process()), None)
}

fn start_in(
    scene: &Scene,
    kind: StartKind,
    id: &str,
    folder: &Utf8Path,
    process: Option<ProcessId>,
    previous: Option<&str>,
) -> Rekey {
    let previous = previous.map(session_id);
    let (agent, id) = (claude(), session_id(id));
    let start = SessionStart {
        agent: &agent,
        session: &id,
        kind,
        previous: previous.as_ref(),
        process,
        ancestors: &[own_process()],
        folder,
        now: NOW,
    };
    rekey(&scene.store, &start).unwrap()
}

/// The VM that calls of session `id` go to, outside every project.
fn vm_of(scene: &Scene, id: &str) -> Result<Option<String>, PinError> {
    let (agent, id) = (claude(), session_id(id));
    let lookup = Lookup {
        agent: Some(&agent),
        session: Some(&id),
        ..nobody()
    };
    Ok(scene.resolve(&lookup)?.map(|found| found.vm.to_string()))
}

#[rstest]
#[case::just_used(0, true)]
#[case::a_day_ago(DAY, true)]
#[case::longer_ago(DAY + 1, false)]
fn a_resumed_session_inherits_the_one_pin_used_in_the_last_day(
    #[case] ago: u64,
    #[case] inherits: bool,
) {
    let scene = Scene::new();
    let folder = scene.repository("p");
    pin_session(&scene, "old", "dev", &folder, NOW - ago);
    let got = start(&scene, StartKind::Continued, "new", &folder);
    assert_eq!(vm_of(&scene, "new").unwrap().is_some(), inherits);
    assert_eq!(got.note().is_some(), inherits);
    if inherits {
        let pin = scene.store.read(&session("new")).unwrap().unwrap().file;
        assert_eq!(pin.mode, Some(Mode::Redirect));
        assert_eq!(pin.process, Some(own_process()));
        assert_eq!(pin.reason, "inherited from session old of claude-code");
        assert_eq!(pin.used_at, NOW);
        assert_eq!(
            got.note().unwrap(),
            "This session is pinned to VM dev: it inherits the pin of session old of claude-code."
        );
    } else {
        assert_eq!(got, Rekey::Nothing);
    }
}

#[test]
fn only_sessions_of_the_same_project_are_inherited_from() {
    let scene = Scene::new();
    let p = scene.repository("p");
    let q = scene.repository("q");
    let far = scene.top.join("far");
    git(&p, &["worktree", "add", "-q", far.as_str(), "-b", "far"]);
    let plain = scene.folder("plain/sub");
    pin_session(&scene, "p", "vm-p", &p, NOW);
    pin_session(&scene, "plain", "vm-plain", &scene.top.join("plain"), NOW);
    for (id, folder, want) in [
        ("1", scene.folder("p/src"), Some("vm-p")),
        ("2", far, Some("vm-p")),
        ("3", plain, Some("vm-plain")),
        ("4", q, None),
        ("5", scene.top.clone(), None),
    ] {
        start(&scene, StartKind::Continued, id, &folder);
        assert_eq!(vm_of(&scene, id).unwrap().as_deref(), want, "{folder}");
    }
}

#[test]
fn two_pins_of_different_vms_make_the_session_ambiguous_until_the_user_decides() {
    let scene = Scene::new();
    let folder = scene.repository("p");
    pin_session(&scene, "one", "vm1", &folder, NOW);
    pin_session(&scene, "two", "vm2", &folder, NOW - 1);
    let got = start(&scene, StartKind::Continued, "new", &folder);
    assert!(matches!(got, Rekey::Ambiguous { .. }), "{got:?}");
    assert!(got.note().unwrap().contains("vm1"));
    assert!(matches!(
        vm_of(&scene, "new"),
        Err(PinError::Ambiguous { .. })
    ));
    // It stays so when it is resumed once more.
    assert_eq!(
        start(&scene, StartKind::Continued, "new", &folder),
        Rekey::Kept
    );
    assert!(vm_of(&scene, "new").is_err());
    scene.pin(session("new"), "vm2");
    assert_eq!(vm_of(&scene, "new").unwrap().as_deref(), Some("vm2"));
}

#[test]
fn two_pins_of_one_vm_agree_and_the_stricter_mode_holds() {
    let scene = Scene::new();
    let folder = scene.repository("p");
    pin_session(&scene, "one", "dev", &folder, NOW);
    let two = pin_session(&scene, "two", "dev", &folder, NOW);
    scene
        .store
        .write(&PinFile {
            mode: Some(Mode::Guard),
            ..two
        })
        .unwrap();
    start(&scene, StartKind::Continued, "new", &folder);
    let pin = scene.store.read(&session("new")).unwrap().unwrap().file;
    assert_eq!((pin.vm.as_str(), pin.mode), ("dev", Some(Mode::Guard)));
}

#[test]
fn a_new_session_inherits_nothing() {
    let scene = Scene::new();
    let folder = scene.repository("p");
    pin_session(&scene, "old", "dev", &folder, NOW);
    assert_eq!(
        start(&scene, StartKind::New, "new", &folder),
        Rekey::Nothing
    );
    assert_eq!(vm_of(&scene, "new").unwrap(), None);
}

#[test]
fn a_session_with_a_pin_keeps_it_and_is_tied_to_its_new_process() {
    let scene = Scene::new();
    let folder = scene.repository("p");
    let old = pin_session(&scene, "old", "dev", &folder, NOW - 10);
    pin_session(&scene, "other", "vm2", &folder, NOW);
    assert_eq!(
        start(&scene, StartKind::Continued, "old", &folder),
        Rekey::Kept
    );
    let pin = scene.store.read(&session("old")).unwrap().unwrap().file;
    let process = Some(own_process());
    assert_eq!(pin, PinFile { process, ..old });
}

/// `/clear` in a process: whose pin goes on.
#[rstest]
#[case::previous_is_known(Some(own_process()), Some("old"), Some(OTHER), Some("dev"))]
#[case::same_process(Some(own_process()), None, Some(own_process()), Some("dev"))]
#[case::another_process(Some(own_process()), None, Some(OTHER), None)]
#[case::nobody_noted_the_process(Some(own_process()), None, None, Some("dev"))]
#[case::own_process_unknown(None, None, Some(OTHER), Some("dev"))]
#[case::previous_was_not_pinned(Some(own_process()), Some("unpinned"), None, None)]
fn a_cleared_session_inherits_from_the_session_before_it_in_its_process(
    #[case] own: Option<ProcessId>,
    #[case] previous: Option<&str>,
    #[case] noted: Option<ProcessId>,
    #[case] want: Option<&str>,
) {
    let scene = Scene::new();
    let folder = scene.repository("p");
    let old = pin_session(&scene, "old", "dev", &folder, NOW);
    scene
        .store
        .write(&PinFile {
            process: noted,
            ..old
        })
        .unwrap();
    start_in(
        &scene,
        StartKind::SameProcess,
        "new",
        &folder,
        own,
        previous,
    );
    assert_eq!(vm_of(&scene, "new").unwrap().as_deref(), want);
}

#[test]
fn the_session_before_gives_its_process_up_so_that_the_new_one_can_be_unpinned() {
    let scene = Scene::new();
    let folder = scene.repository("p");
    let old = pin_session(&scene, "old", "dev", &folder, NOW);
    let process = Some(own_process());
    scene
        .store
        .write(&PinFile {
            process,
            ..old.clone()
        })
        .unwrap();
    start(&scene, StartKind::SameProcess, "new", &folder);
    let left = scene.store.read(&session("old")).unwrap().unwrap().file;
    assert_eq!(left, old);
    scene.store.remove(&session("new")).unwrap();
    assert_eq!(vm_of(&scene, "new").unwrap(), None);
}

#[test]
fn a_cleared_session_inherits_its_processes_pin() {
    let scene = Scene::new();
    scene.pin(process(own_process()), "dev");
    let got = start(&scene, StartKind::SameProcess, "new", &scene.folder("p"));
    assert_eq!(
        got.note().unwrap(),
        format!(
            "This session is pinned to VM dev: it inherits the pin of process {} of claude-code.",
            own_process().pid
        )
    );
    assert_eq!(vm_of(&scene, "new").unwrap().as_deref(), Some("dev"));
}

#[test]
fn the_latest_of_two_sessions_of_one_process_is_the_one_that_was_cleared() {
    let scene = Scene::new();
    let folder = scene.repository("p");
    for (id, vm, used_at) in [("first", "vm1", NOW - 5), ("second", "vm2", NOW - 1)] {
        let pin = pin_session(&scene, id, vm, &folder, used_at);
        let process = Some(own_process());
        scene.store.write(&PinFile { process, ..pin }).unwrap();
    }
    start(&scene, StartKind::SameProcess, "new", &folder);
    assert_eq!(vm_of(&scene, "new").unwrap().as_deref(), Some("vm2"));
}

#[test]
fn another_agents_sessions_are_not_inherited_from() {
    let scene = Scene::new();
    let folder = scene.repository("p");
    let pin = pin_session(&scene, "old", "dev", &folder, NOW);
    scene.store.remove(&pin.key).unwrap();
    let key = PinKey::Session {
        agent: boxery_pin::AgentId("codex".to_owned()),
        session: session_id("old"),
    };
    scene.store.write(&PinFile { key, ..pin }).unwrap();
    assert_eq!(
        start(&scene, StartKind::Continued, "new", &folder),
        Rekey::Nothing
    );
}

#[test]
fn with_nothing_pinned_not_even_a_lock_file_is_made() {
    let scene = Scene::new();
    assert_eq!(
        start(&scene, StartKind::Continued, "new", &scene.top),
        Rekey::Nothing
    );
    assert!(!scene.top.join("state").exists());
}
