//! Which pin applies.

use boxery_pin::{
    AgentId, Lookup, Mode, PinError, PinFile, PinKey, PinOrigin, ProcessId, Suspension,
    any_may_apply, explain,
};
use camino::{Utf8Path, Utf8PathBuf};
use rstest::rstest;

use crate::support::{
    NOW, Scene, claude, nobody, own_process, pin, process, project, session, session_id, write,
};

/// Which levels hold a pin, and which VM is found.
#[rstest]
#[case::nothing(&[], None)]
#[case::only_project(&["project"], Some("project"))]
#[case::only_process(&["process"], Some("process"))]
#[case::only_session(&["session"], Some("session"))]
#[case::only_environment(&["env"], Some("env"))]
#[case::process_over_project(&["process", "project"], Some("process"))]
#[case::session_over_process(&["session", "process", "project"], Some("session"))]
#[case::environment_over_all(&["env", "session", "process", "project"], Some("env"))]
fn levels_are_consulted_in_order(#[case] levels: &[&str], #[case] want: Option<&str>) {
    let scene = Scene::new();
    let folder = scene.folder("p/sub");
    let ancestors = [ProcessId { pid: 4, start: 2 }, own_process()];
    for level in levels {
        match *level {
            "session" => drop(scene.pin(session("s"), "session")),
            "process" => drop(scene.pin(process(own_process()), "process")),
            "project" => drop(scene.pin_project(&scene.top.join("p"), "project")),
            _ => {}
        }
    }
    let (agent, id) = (claude(), session_id("s"));
    let lookup = Lookup {
        environment: levels.contains(&"env").then_some("env"),
        agent: Some(&agent),
        session: Some(&id),
        ancestors: &ancestors,
        folder: Some(&folder),
        now: NOW,
    };
    let found = scene.resolve(&lookup).unwrap();
    assert_eq!(found.map(|found| found.vm.to_string()).as_deref(), want);
}

#[test]
fn another_agents_or_sessions_pin_does_not_apply() {
    let scene = Scene::new();
    scene.pin(session("s"), "dev");
    scene.pin(process(own_process()), "dev");
    let ancestors = [own_process()];
    let other = [ProcessId {
        start: 1,
        ..own_process()
    }];
    for (agent, id, ancestors, want) in [
        ("claude-code", "s", &other, true),
        ("claude-code", "t", &ancestors, true),
        ("claude-code", "t", &other, false),
        ("codex", "s", &ancestors, false),
        ("claude-cod", "es", &other, false),
    ] {
        let (agent, id) = (AgentId(agent.to_owned()), session_id(id));
        let lookup = Lookup {
            agent: Some(&agent),
            session: Some(&id),
            ancestors,
            ..nobody()
        };
        assert_eq!(
            scene.resolve(&lookup).unwrap().is_some(),
            want,
            "{agent} {id}"
        );
    }
}

/// A session without a pin, in a process in which another session was pinned.
#[rstest]
#[case::that_process(Some(own_process()), true)]
#[case::another_process(Some(ProcessId { pid: 2, start: 1 }), false)]
#[case::nobody_noted_it(None, false)]
fn the_pin_of_an_earlier_session_of_the_process_holds_until_it_is_rekeyed(
    #[case] noted: Option<ProcessId>,
    #[case] want: bool,
) {
    let scene = Scene::new();
    let earlier = PinFile {
        process: noted,
        ..pin(session("earlier"), "dev")
    };
    scene.store.write(&earlier).unwrap();
    let (agent, id) = (claude(), session_id("now"));
    let lookup = Lookup {
        agent: Some(&agent),
        session: Some(&id),
        ancestors: &[own_process()],
        ..nobody()
    };
    assert_eq!(scene.resolve(&lookup).unwrap().is_some(), want);
}

#[test]
fn a_shell_that_some_agent_started_has_that_agents_process_pin() {
    let scene = Scene::new();
    scene.pin(process(own_process()), "dev");
    let ancestors = [own_process()];
    let lookup = Lookup {
        ancestors: &ancestors,
        ..nobody()
    };
    let found = scene.resolve(&lookup).unwrap().unwrap();
    assert_eq!(found.origin, PinOrigin::File(process(own_process())));
}

#[test]
fn two_agents_above_one_shell_with_different_vms_are_ambiguous() {
    let scene = Scene::new();
    let outer = ProcessId { pid: 2, start: 1 };
    scene.pin(process(own_process()), "inner");
    let key = PinKey::Process {
        agent: AgentId("codex".to_owned()),
        process: outer,
    };
    scene.pin(key, "outer");
    let ancestors = [own_process(), outer];
    let lookup = Lookup {
        ancestors: &ancestors,
        ..nobody()
    };
    let error = scene.resolve(&lookup).unwrap_err();
    assert_eq!(
        error.to_string(),
        "two pins apply and name different VMs: `inner` and `outer`"
    );
}

#[rstest]
#[case::upper_case("Dev")]
#[case::space("dev ")]
#[case::option("-dev")]
#[case::not_utf8("d\u{fffd}v")]
fn a_malformed_boxery_vm_is_an_error_whatever_is_pinned(#[case] value: &str) {
    let lookup = Lookup {
        environment: Some(value),
        ..nobody()
    };
    let error = Scene::new().resolve(&lookup).unwrap_err();
    assert!(matches!(error, PinError::Environment(_)));
    assert!(error.hint().is_some());
}

#[test]
fn an_empty_boxery_vm_is_none() {
    let lookup = Lookup {
        environment: Some(""),
        ..nobody()
    };
    assert_eq!(Scene::new().resolve(&lookup).unwrap(), None);
}

#[test]
fn the_nearest_pinned_folder_wins_and_names_need_not_only_begin_alike() {
    let scene = Scene::new();
    let deep = scene.folder("p/inner/deep");
    let beside = scene.folder("pp");
    scene.pin_project(&scene.top.join("p"), "outer");
    scene.pin_project(&scene.top.join("p/inner"), "inner");
    assert_eq!(scene.vm_in(&deep).unwrap().as_deref(), Some("inner"));
    assert_eq!(
        scene.vm_in(&scene.top.join("p")).unwrap().as_deref(),
        Some("outer")
    );
    assert_eq!(scene.vm_in(&beside).unwrap(), None);
    assert_eq!(scene.vm_in(&scene.top).unwrap(), None);
}

#[test]
fn links_on_the_way_to_a_pinned_folder_are_resolved() {
    let scene = Scene::new();
    let inside = scene.folder("p/sub");
    let outside = scene.folder("other");
    scene.pin_project(&scene.top.join("p"), "dev");
    let link = scene.top.join("link");
    std::os::unix::fs::symlink(&inside, &link).unwrap();
    let out = scene.top.join("p/out");
    std::os::unix::fs::symlink(&outside, &out).unwrap();
    assert_eq!(scene.vm_in(&link).unwrap().as_deref(), Some("dev"));
    // A link inside that leads outside is outside.
    assert_eq!(scene.vm_in(&out).unwrap(), None);
    assert_eq!(
        scene
            .vm_in(&scene.top.join("p/out/../p/sub"))
            .unwrap()
            .as_deref(),
        Some("dev")
    );
}

#[test]
fn a_pin_on_the_root_folder_covers_everything() {
    let scene = Scene::new();
    scene.pin_project("/".into(), "dev");
    assert_eq!(scene.vm_in(&scene.top).unwrap().as_deref(), Some("dev"));
    assert_eq!(scene.vm_in("/".into()).unwrap().as_deref(), Some("dev"));
}

/// The folder of a call that can't be placed: harmless while no project is
/// pinned, an error as soon as one is.
#[rstest]
#[case::gone(Some("/no/such/folder"))]
#[case::relative(Some("p"))]
#[case::empty(Some(""))]
#[case::none(None)]
fn a_folder_that_cannot_be_placed_is_an_error_only_while_a_project_is_pinned(
    #[case] folder: Option<&str>,
) {
    let scene = Scene::new();
    let lookup = Lookup {
        folder: folder.map(Utf8Path::new),
        ..nobody()
    };
    assert_eq!(scene.resolve(&lookup).unwrap(), None);
    scene.pin(session("somebody's"), "dev");
    assert_eq!(scene.resolve(&lookup).unwrap(), None);
    scene.pin_project(&scene.folder("p"), "dev");
    let error = scene.resolve(&lookup).unwrap_err();
    assert!(
        matches!(error, PinError::Folder { .. } | PinError::NoFolder),
        "{error:?}"
    );
}

#[test]
fn a_git_file_that_cannot_be_followed_is_an_error_while_a_project_is_pinned() {
    let scene = Scene::new();
    let folder = scene.folder("q");
    write(&folder.join(".git"), "gitdir: /no/such/folder\n");
    assert_eq!(scene.vm_in(&folder).unwrap(), None);
    scene.pin_project(&scene.folder("p"), "dev");
    assert!(matches!(scene.vm_in(&folder), Err(PinError::Folder { .. })));
}

#[rstest]
#[case::not_a_folder("file")]
#[case::loop_of_links("loop")]
fn a_store_that_cannot_be_read_is_an_error(#[case] what: &str) {
    let scene = Scene::new();
    scene.folder("state");
    match what {
        "file" => write(&scene.store.folder, ""),
        _ => std::os::unix::fs::symlink("pins", &scene.store.folder).unwrap(),
    }
    let error = scene.resolve(&nobody()).unwrap_err();
    assert!(matches!(error, PinError::Read { .. }));
    assert!(any_may_apply(&scene.store, None, &claude(), None));
}

#[test]
fn a_damaged_pin_of_another_project_does_not_concern_this_one() {
    let scene = Scene::new();
    let (p, q) = (scene.repository("p"), scene.repository("q"));
    scene.pin_project(&q, "dev");
    write(&scene.only_file(), "{");
    assert_eq!(scene.vm_in(&p).unwrap(), None);
    assert!(scene.vm_in(&q).is_err());
}

#[test]
fn an_unknown_file_in_the_store_is_nobodys_pin() {
    let scene = Scene::new();
    scene.folder("state/pins");
    write(&scene.store.folder.join("notes.txt"), "");
    assert_eq!(scene.resolve(&nobody()).unwrap(), None);
    assert!(scene.store.list().unwrap()[0].is_err());
}

#[test]
fn mode_drift_and_project_of_the_pin_are_handed_on() {
    let scene = Scene::new();
    let root = scene.repository("p");
    let written = scene.pin_project(&root, "dev");
    let lookup = Lookup {
        folder: Some(&root),
        ..nobody()
    };
    let found = scene.resolve(&lookup).unwrap().unwrap();
    assert_eq!(found.mode, Some(Mode::Redirect));
    assert_eq!(found.drift, None);
    assert_eq!(found.project.as_ref(), Some(&root));
    assert_eq!(found.origin, PinOrigin::File(written.key));
    assert!(!found.steps.is_empty());
    assert_eq!(found.steps, explain(&scene.store, &lookup));
}

#[test]
fn a_pin_with_a_rival_is_ambiguous() {
    let scene = Scene::new();
    let rival = Some("other".parse().unwrap());
    scene
        .store
        .write(&PinFile {
            rival,
            ..pin(session("s"), "dev")
        })
        .unwrap();
    let (agent, id) = (claude(), session_id("s"));
    let lookup = Lookup {
        agent: Some(&agent),
        session: Some(&id),
        ..nobody()
    };
    let error = scene.resolve(&lookup).unwrap_err();
    assert!(matches!(error, PinError::Ambiguous { .. }));
}

/// A pin that is suspended from one moment to another.
#[rstest]
#[case::before(NOW - 1, true)]
#[case::first_moment(NOW, false)]
#[case::last_moment(NOW + 99, false)]
#[case::over(NOW + 100, true)]
fn a_suspended_pin_does_not_apply_for_a_while(#[case] now: u64, #[case] applies: bool) {
    let scene = Scene::new();
    let root = scene.folder("p");
    let written = scene.pin_project(&root, "dev");
    let suspended = Some(Suspension {
        from: NOW,
        until: NOW + 100,
    });
    scene
        .store
        .write(&PinFile {
            suspended,
            ..written
        })
        .unwrap();
    let lookup = Lookup {
        folder: Some(&root),
        now,
        ..nobody()
    };
    assert_eq!(scene.resolve(&lookup).unwrap().is_some(), applies);
    // What can't be read isn't waited out.
    assert!(any_may_apply(&scene.store, None, &claude(), Some(&root)));
}

/// For a payload that can't be read: which pins count.
#[rstest]
#[case::nothing(None, None, false)]
#[case::environment(Some("anything"), None, true)]
#[case::empty_environment(Some(""), None, false)]
#[case::session_of_this_agent(None, Some(session("s")), true)]
#[case::session_of_another(
    None,
    Some(PinKey::Session { agent: AgentId("codex".to_owned()), session: session_id("s") }),
    false
)]
#[case::living_process(None, Some(process(own_process())), true)]
#[case::gone_process(None, Some(process(ProcessId { pid: 1, start: u64::MAX })), false)]
#[case::project_above(None, Some(project("/".into())), true)]
#[case::project_elsewhere(None, Some(project("/no/such/folder".into())), false)]
fn any_pin_that_may_apply_counts_when_the_payload_is_unreadable(
    #[case] environment: Option<&str>,
    #[case] key: Option<PinKey>,
    #[case] want: bool,
) {
    let scene = Scene::new();
    if let Some(key) = key {
        scene.pin(key, "dev");
        // Its content doesn't matter.
        write(&scene.only_file(), "{");
    }
    let folder: Utf8PathBuf = scene.folder("p");
    let got = any_may_apply(&scene.store, environment, &claude(), Some(&folder));
    assert_eq!(got, want);
}

#[test]
fn a_hook_without_a_folder_may_be_in_a_pinned_project() {
    let scene = Scene::new();
    assert!(!any_may_apply(&scene.store, None, &claude(), None));
    scene.pin(project("/no/such/folder".into()), "dev");
    assert!(any_may_apply(&scene.store, None, &claude(), None));
}
