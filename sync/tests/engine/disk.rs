//! Syncs to and from disks that fold names, are full, read-only or another one.

#![expect(
    clippy::unwrap_used,
    reason = "test support: a failure here is the test's failure"
)]
#![expect(clippy::disallowed_methods, reason = "test trees need no crash safety")]

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use boxery_sync::STAGE;
use boxery_sync::talk::DriveError;
use tempfile::TempDir;

use super::talk::{Scene, write};

/// A disk on which `a` and `A` are one file, names are told in lower case, files are
/// all executable and nothing can be exchanged: the project of a laptop with NTFS.
struct Ntfs {
    folder: TempDir,
}

impl Ntfs {
    fn mount() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        let file = fs::File::create(&image).unwrap();
        file.set_len(16 * 1024 * 1024).unwrap();
        fs::create_dir(folder.path().join("disk")).unwrap();
        let path = |name: &str| folder.path().join(name).into_os_string();
        run(
            "mkntfs",
            &["-F".into(), "-q".into(), "-Q".into(), path("image")],
        );
        let options = "ignore_case,streams_interface=none";
        run(
            "lowntfs-3g",
            &["-o".into(), options.into(), path("image"), path("disk")],
        );
        Self { folder }
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("disk/project")
    }
}

impl Drop for Ntfs {
    fn drop(&mut self) {
        run(
            "umount",
            &[self.folder.path().join("disk").into_os_string()],
        );
    }
}

fn run(program: &str, arguments: &[OsString]) {
    let path = "/usr/sbin:/usr/bin:/sbin:/bin";
    let output = std::process::Command::new("env")
        .arg(format!("PATH={path}"))
        .arg(program)
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let need = "this test needs root, /dev/fuse and the package ntfs-3g";
    assert!(output.status.success(), "{program}: {said}\n{need}");
}

/// A disk of one megabyte.
struct Small {
    folder: TempDir,
}

impl Small {
    fn mount() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().as_os_str().to_owned();
        let words = ["-t", "tmpfs", "-o", "size=1m", "boxery-test"];
        let words = words.into_iter().map(OsString::from);
        run("mount", &words.chain([path]).collect::<Vec<_>>());
        Self { folder }
    }

    fn remount(&self, how: &str) {
        let path = self.folder.path().as_os_str().to_owned();
        let how = format!("remount,{how}");
        run("mount", &["-o".into(), how.into(), path]);
    }

    fn top(&self) -> PathBuf {
        self.folder.path().join("top")
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        run("umount", &[self.folder.path().as_os_str().to_owned()]);
    }
}

const FULL: i32 = 28;
const READ_ONLY: i32 = 30;

#[test]
fn a_full_disk_on_the_vm_is_named_and_changes_no_file_there() {
    let small = Small::mount();
    let mut scene = Scene::new();
    scene.copy = Some(small.top());
    write(&scene.laptop, "a", "1");
    scene.sync().unwrap();
    write(&scene.laptop, "a", "2");
    write(&scene.laptop, "large", vec![7; 3 << 20]);
    match scene.sync() {
        Err(DriveError::Far { errno: FULL, .. }) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_to_string(small.top().join("a")).unwrap(), "1");
    fs::remove_file(scene.laptop.path().join("large")).unwrap();
    assert!(scene.sync().unwrap().is_same());
    assert_eq!(fs::read_to_string(small.top().join("a")).unwrap(), "2");
    assert!(!small.top().join(STAGE).exists());
}

#[test]
fn a_full_disk_on_the_laptop_is_named_and_changes_no_file_here() {
    let small = Small::mount();
    fs::create_dir(small.top()).unwrap();
    let mut scene = Scene::new();
    scene.project = Some(small.top());
    fs::write(small.top().join("a"), "1").unwrap();
    scene.sync().unwrap();
    write(&scene.vm, "a", "2");
    write(&scene.vm, "large", vec![7; 3 << 20]);
    match scene.sync() {
        Err(DriveError::Laptop(error)) => assert_eq!(error.raw_os_error(), Some(FULL)),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_to_string(small.top().join("a")).unwrap(), "1");
    fs::remove_file(scene.vm.path().join("large")).unwrap();
    assert!(scene.sync().unwrap().is_same());
    assert_eq!(fs::read_to_string(small.top().join("a")).unwrap(), "2");
}

#[test]
fn a_read_only_copy_is_named_and_the_next_sync_completes_it() {
    let small = Small::mount();
    let mut scene = Scene::new();
    scene.copy = Some(small.top());
    write(&scene.laptop, "a", "1");
    scene.sync().unwrap();
    write(&scene.laptop, "a", "2");
    small.remount("ro");
    match scene.sync() {
        Err(DriveError::Far {
            errno: READ_ONLY, ..
        }) => {}
        other => panic!("{other:?}"),
    }
    small.remount("rw");
    assert!(scene.sync().unwrap().is_same());
    assert_eq!(fs::read_to_string(small.top().join("a")).unwrap(), "2");
}

/// Another disk is mounted in the copy, so that nothing can be renamed into it.
#[test]
fn files_come_to_and_go_from_another_disk_within_the_copy() {
    let small = Small::mount();
    let scene = Scene::new();
    write(&scene.laptop, "data/a", "1");
    write(&scene.laptop, "data/gone", "1");
    scene.sync().unwrap();
    fs::create_dir_all(small.top()).unwrap();
    for name in ["a", "gone"] {
        fs::copy(
            scene.vm.path().join("data").join(name),
            small.top().join(name),
        )
        .unwrap();
    }
    let there = scene.vm.path().join("data");
    let bind = [
        OsString::from("--bind"),
        small.top().into(),
        there.clone().into(),
    ];
    run("mount", &bind);
    let synced = {
        write(&scene.laptop, "data/a", "2");
        write(&scene.laptop, "data/new", "2");
        fs::remove_file(scene.laptop.path().join("data/gone")).unwrap();
        scene.sync()
    };
    run("umount", &[there.into()]);
    assert!(synced.unwrap().is_same());
    let mut names: Vec<_> = fs::read_dir(small.top())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["a", "new"]);
    assert_eq!(fs::read_to_string(small.top().join("a")).unwrap(), "2");
}

#[test]
fn a_disk_that_folds_case_and_keeps_no_modes_neither_renames_nor_loses_anything() {
    let ntfs = Ntfs::mount();
    fs::create_dir(ntfs.project()).unwrap();
    let mut scene = Scene::new();
    scene.project = Some(ntfs.project());
    let here = |name: &str| fs::read_to_string(ntfs.project().join(name)).ok();
    let there = |name: &str| fs::read_to_string(scene.vm.path().join(name)).ok();
    write(&scene.vm, ".boxery-new", "");
    scene.sync().unwrap();
    write(&scene.vm, "README", "1");
    write(&scene.vm, "Lib/Deep/a.rs", "1");
    write(&scene.vm, "Foo", "upper");
    write(&scene.vm, "foo", "lower");
    let report = scene.sync().unwrap();
    let named: Vec<String> = report
        .plan
        .conflicts
        .iter()
        .map(|c| c.path.to_string())
        .collect();
    assert_eq!(named, ["foo"]);
    assert_eq!(here("Foo").as_deref(), Some("upper"));
    // Nothing changed, whatever the disk calls its files.
    let report = scene.sync().unwrap();
    assert!(!report.plan.has_changes(), "{report:?}");
    fs::write(ntfs.project().join("readme"), "2").unwrap();
    fs::write(ntfs.project().join("lib/deep/new"), "2").unwrap();
    write(&scene.vm, "Lib/Deep/a.rs", "3");
    let report = scene.sync().unwrap();
    assert_eq!((&report.laptop.left, &report.vm.left), (&vec![], &vec![]));
    assert_eq!(there("README").as_deref(), Some("2"));
    assert_eq!(there("Lib/Deep/new").as_deref(), Some("2"));
    assert_eq!(here("lib/deep/a.rs").as_deref(), Some("3"));
    assert_eq!(
        [there("Foo"), there("foo")].map(Option::unwrap),
        ["upper", "lower"]
    );
    let mode = fs::metadata(scene.vm.path().join("README")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&mode) & 0o777, 0o644);
    fs::remove_file(ntfs.project().join("foo")).unwrap();
    scene.sync().unwrap();
    assert_eq!(
        [there("Foo"), there("foo")],
        [None, Some("lower".to_owned())]
    );
    let report = scene.sync().unwrap();
    assert!(report.is_same(), "{report:?}");
    assert_eq!(here("foo").as_deref(), Some("lower"));
}
