//! Pin files: private, whole, and in nobody's way.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use boxery_pin::{PinError, PinFile, PinKey, ProcessId};
use camino::Utf8Path;
use rstest::rstest;

use crate::support::{
    DAY, NOW, Scene, nobody, own_process, pin, process, project, session, session_id, write,
};

fn keys() -> [PinKey; 3] {
    [
        session("a b/../\n\"ü"),
        process(own_process()),
        project("/some where/ö".into()),
    ]
}

#[test]
fn what_is_written_is_read_back() {
    let scene = Scene::new();
    for key in keys() {
        assert_eq!(scene.store.read(&key).unwrap(), None);
        let written = scene.pin(key.clone(), "dev");
        let read = scene.store.read(&key).unwrap().unwrap();
        assert_eq!(read.file, written);
        assert_eq!(read.path.parent(), Some(scene.store.folder.as_path()));
    }
    let listed: Result<Vec<_>, _> = scene.store.list().unwrap().into_iter().collect();
    assert_eq!(listed.unwrap().len(), 3);
}

#[test]
fn files_and_folders_are_private_and_nothing_else_lies_among_the_pins() {
    let scene = Scene::new();
    scene.pin(session("a"), "dev");
    let mode = |path: &Utf8Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&scene.only_file()), 0o600);
    assert_eq!(mode(&scene.store.folder), 0o700);
    assert_eq!(mode(&scene.top.join("state")), 0o700);
    assert_eq!(mode(&scene.top.join("state/pins.lock")), 0o600);
}

#[test]
fn removing_says_whether_there_was_a_pin_and_leaves_the_folder_empty() {
    let scene = Scene::new();
    for key in keys() {
        assert!(!scene.store.remove(&key).unwrap());
        scene.pin(key.clone(), "dev");
        assert!(scene.store.remove(&key).unwrap());
        assert!(!scene.store.remove(&key).unwrap());
    }
    assert_eq!(scene.store.folder.read_dir_utf8().unwrap().count(), 0);
}

#[test]
fn a_damaged_pin_can_be_removed() {
    let scene = Scene::new();
    for key in keys() {
        scene.pin(key.clone(), "dev");
        write(&scene.only_file(), "{");
        assert!(scene.store.read(&key).is_err());
        assert!(scene.store.remove(&key).unwrap());
    }
}

#[test]
fn a_project_that_became_a_repository_has_one_pin() {
    let scene = Scene::new();
    let root = scene.folder("p");
    scene.pin_project(&root, "one");
    scene.repository("p");
    let written = scene.pin_project(&root, "two");
    let read = scene.store.read(&written.key).unwrap().unwrap();
    assert_eq!(read.file, written);
    scene.only_file();
}

#[derive(Debug, Clone, Copy)]
enum Damage {
    Empty,
    Cut,
    NotJson,
    NoVersion,
    NewerVersion,
    OtherKey,
    BadVm,
    TooLarge,
    Link,
    DanglingLink,
    Folder,
    Pipe,
    OthersCanWrite,
}

impl Damage {
    fn inflict(self, path: &Utf8Path) {
        let text = std::fs::read_to_string(path).unwrap();
        let replace = |from: &str, to: &str| {
            assert!(text.contains(from));
            write(path, &text.replace(from, to));
        };
        match self {
            Self::Empty => write(path, ""),
            Self::Cut => write(path, &text[..text.len() / 2]),
            Self::NotJson => write(path, "vm = dev\n"),
            Self::NoVersion => replace("\"version\": 1,", ""),
            // Whatever else a newer version may hold.
            Self::NewerVersion => write(path, r#"{"version": 2, "vms": ["dev"]}"#),
            Self::OtherKey => replace("\"here\"", "\"there\""),
            Self::BadVm => replace("\"dev\"", "\"De v\""),
            Self::TooLarge => {
                write(path, &format!("{text}{}", " ".repeat(70_000)));
            }
            Self::Link => {
                let real = path.with_extension("real");
                std::fs::rename(path, &real).unwrap();
                symlink(&real, path).unwrap();
            }
            Self::DanglingLink => {
                std::fs::remove_file(path).unwrap();
                symlink("nowhere", path).unwrap();
            }
            Self::Folder => {
                std::fs::remove_file(path).unwrap();
                std::fs::create_dir(path).unwrap();
            }
            Self::Pipe => {
                std::fs::remove_file(path).unwrap();
                let made = std::process::Command::new("mkfifo").arg(path).status();
                assert!(made.unwrap().success());
            }
            Self::OthersCanWrite => {
                std::fs::set_permissions(path, PermissionsExt::from_mode(0o620)).unwrap();
            }
        }
    }
}

#[rstest]
fn a_file_that_is_not_a_usable_pin_is_an_error_for_its_own_session_and_nobody_else(
    #[values(
        Damage::Empty,
        Damage::Cut,
        Damage::NotJson,
        Damage::NoVersion,
        Damage::NewerVersion,
        Damage::OtherKey,
        Damage::BadVm,
        Damage::TooLarge,
        Damage::Link,
        Damage::DanglingLink,
        Damage::Folder,
        Damage::Pipe,
        Damage::OthersCanWrite
    )]
    damage: Damage,
) {
    let scene = Scene::new();
    let key = session("here");
    scene.pin(key.clone(), "dev");
    damage.inflict(&scene.only_file_named_json());

    let error = scene.store.read(&key).unwrap_err();
    assert!(
        matches!(error, PinError::Malformed { .. } | PinError::Read { .. }),
        "{error:?}"
    );
    let agent = crate::support::claude();
    for (id, fails) in [("here", true), ("elsewhere", false)] {
        let id = session_id(id);
        let lookup = boxery_pin::Lookup {
            agent: Some(&agent),
            session: Some(&id),
            ..nobody()
        };
        assert_eq!(scene.resolve(&lookup).is_err(), fails);
    }
    assert!(scene.store.list().unwrap().iter().any(Result::is_err));
    // What can't be read isn't taken for ended.
    assert_eq!(scene.store.expire(NOW + 1000 * DAY).unwrap(), Vec::new());
}

impl Scene {
    fn only_file_named_json(&self) -> camino::Utf8PathBuf {
        let path = self.only_file();
        assert_eq!(path.extension(), Some("json"));
        path
    }
}

#[rstest]
#[case::session_in_use(session("a"), 0, false)]
#[case::session_on_its_last_day(session("a"), 30 * DAY, false)]
#[case::session_after_30_days(session("a"), 30 * DAY + 1, true)]
#[case::running_process(process(own_process()), 1000 * DAY, false)]
#[case::gone_process(process(ProcessId { pid: own_process().pid, start: 1 }), 0, true)]
#[case::number_never_given(process(ProcessId { pid: u32::MAX, start: 1 }), 0, true)]
#[case::project(project("/p".into()), 1000 * DAY, false)]
fn a_pin_ends_with_its_process_or_30_days_after_its_last_use(
    #[case] key: PinKey,
    #[case] later: u64,
    #[case] ends: bool,
) {
    let scene = Scene::new();
    let written = scene.pin(key.clone(), "dev");
    let removed = scene.store.expire(NOW + later).unwrap();
    let removed: Vec<PinFile> = removed.into_iter().map(|pin| pin.file).collect();
    assert_eq!(removed, if ends { vec![written] } else { vec![] });
    assert_eq!(scene.store.read(&key).unwrap().is_none(), ends);
}

#[test]
fn use_prolongs_a_pin_and_never_makes_or_rewinds_one() {
    let scene = Scene::new();
    let key = session("a");
    scene.store.touch(&key, NOW).unwrap();
    assert_eq!(scene.store.read(&key).unwrap(), None);
    let written = scene.pin(key.clone(), "dev");
    scene.store.touch(&key, NOW + 20 * DAY).unwrap();
    scene.store.touch(&key, NOW + 10 * DAY).unwrap();
    let read = scene.store.read(&key).unwrap().unwrap().file;
    let used_at = NOW + 20 * DAY;
    assert_eq!(read, PinFile { used_at, ..written });
    assert_eq!(scene.store.expire(NOW + 49 * DAY).unwrap(), Vec::new());
    assert_eq!(scene.store.expire(NOW + 51 * DAY).unwrap().len(), 1);
}

#[test]
fn expiring_nothing_makes_no_file() {
    let scene = Scene::new();
    assert_eq!(scene.store.expire(NOW).unwrap(), Vec::new());
    assert!(!scene.top.join("state").exists());
}

#[test]
fn what_a_killed_writer_left_lies_beside_the_pins_and_goes() {
    let scene = Scene::new();
    scene.pin(session("a"), "dev");
    let left = scene.top.join("state/.pin-Xy12Zw");
    write(&left, "{");
    assert_eq!(scene.store.list().unwrap().len(), 1);
    scene.store.expire(NOW).unwrap();
    assert!(!left.exists());
}

#[test]
fn a_pin_that_is_being_replaced_used_and_expired_is_never_missed() {
    let scene = Scene::new();
    let folder = scene.folder("p");
    let (a, b) = (project(&folder), session("a"));
    scene.pin(a.clone(), "dev");
    scene.pin(b.clone(), "dev");
    let agent = crate::support::claude();
    let id = session_id("a");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for key in [&a, &b] {
            scope.spawn(|| {
                for _ in 0..100 {
                    scene.store.write(&pin(key.clone(), "dev")).unwrap();
                    scene.store.touch(key, NOW + 1).unwrap();
                    assert_eq!(scene.store.expire(NOW + 2).unwrap(), Vec::new());
                }
                done.store(true, Ordering::Relaxed);
            });
        }
        let by_project = boxery_pin::Lookup {
            folder: Some(&folder),
            ..nobody()
        };
        let by_session = boxery_pin::Lookup {
            agent: Some(&agent),
            session: Some(&id),
            ..nobody()
        };
        while !done.load(Ordering::Relaxed) {
            for lookup in [&by_project, &by_session] {
                assert!(scene.resolve(lookup).unwrap().is_some());
            }
        }
    });
}

#[test]
fn a_pin_written_while_another_process_expires_it_survives() {
    let scene = Scene::new();
    let key = session("a");
    let old = pin(key.clone(), "dev");
    let later = NOW + 40 * DAY;
    let fresh = PinFile {
        used_at: later,
        ..old.clone()
    };
    for _ in 0..100 {
        scene.store.write(&old).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| scene.store.expire(later).unwrap());
            scope.spawn(|| scene.store.write(&fresh).unwrap());
        });
        assert!(scene.store.read(&key).unwrap().is_some());
    }
}
