//! What a sync never does by itself: each guard, and what would run on the laptop.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use crate::sync::{Scene, write};

/// A VM whose machine id is in a file of the test's own.
fn with_machine_id() -> (Scene, PathBuf) {
    let folder = tempfile::tempdir().unwrap().keep();
    let id = folder.join("machine-id");
    write(&id, "11111111111111111111111111111111\n");
    let lines = format!(
        "[ -n \"$own_id\" ] || {{ export own_id=1; exec unshare --mount sh -c 'mount --bind {} /etc/machine-id && exec \"$0\"' \"$0\"; }}",
        id.display()
    );
    let scene = Scene::behind("native", &lines);
    (scene, id)
}

#[test]
fn another_machine_under_the_old_name_is_never_taken_as_truth() {
    let (scene, id) = with_machine_id();
    scene.run(&["sync", "dev"]);
    fs::remove_file(scene.vm.copy().join("notes.txt")).unwrap();
    write(&id, "22222222222222222222222222222222\n");
    scene.run(&["daemon", "stop"]);
    let said = scene.run(&["sync", "dev"]);
    assert!(
        said.starts_with("exit: 125\n")
            && said.contains("isn't the machine that this project was last synced with")
            && said.contains("boxery vm renew dev"),
        "{said}"
    );
    assert_eq!(scene.is_here("notes.txt").unwrap(), "notes\n");
    assert!(scene.run(&["drift", "dev"]).starts_with("exit: 2\n"));
    fs::remove_dir_all(id.parent().unwrap()).unwrap();
}

#[test]
fn many_deletions_and_an_empty_copy_wait_for_a_person() {
    let scene = Scene::new("native");
    for number in 0..80 {
        scene.here(&format!("src/{number}.c"), &number.to_string());
    }
    scene.run(&["sync", "dev"]);
    for number in 0..60 {
        fs::remove_file(scene.vm.copy().join(format!("src/{number}.c"))).unwrap();
    }
    insta::assert_snapshot!(scene.run(&["sync", "dev"]), @r"
    exit: 1
    ----- stdout
    ----- stderr
    error: 60 of 82 files of the project would be deleted because they are gone on the VM
    hint: nothing was changed; if that is meant, the user can say so in a terminal: `boxery sync dev --allow-deletes 60`
    ");
    assert_eq!(
        fs::read_dir(scene.sandbox.project().join("src"))
            .unwrap()
            .count(),
        80
    );
    let (status, said) = scene.at_terminal(&["sync", "dev", "--allow-deletes", "60"]);
    assert_eq!(status, 0, "{said}");
    assert_eq!(
        fs::read_dir(scene.sandbox.project().join("src"))
            .unwrap()
            .count(),
        20
    );
    // All that counts is gone there.
    for entry in fs::read_dir(scene.vm.copy()).unwrap() {
        let path = entry.unwrap().path();
        if !path
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with(".boxery-")
        {
            fs::remove_dir_all(&path)
                .or_else(|_| fs::remove_file(&path))
                .unwrap();
        }
    }
    let said = scene.run(&["sync", "dev"]);
    assert!(
        said.starts_with("exit: 1\n") && said.contains("the copy is empty now"),
        "{said}"
    );
    assert!(scene.is_here("src/70.c").is_some());
    // The whole copy is gone: it is made again, and nothing is deleted here.
    fs::remove_dir_all(scene.vm.copy()).unwrap();
    let said = scene.run(&["sync", "dev"]);
    assert!(said.starts_with("exit: 0\n"), "{said}");
    assert!(scene.is_here("src/70.c").is_some() && scene.is_there("src/70.c").is_some());
}

#[test]
fn a_folder_that_is_not_ours_or_a_link_is_left_alone() {
    let scene = Scene::new("native");
    scene.run(&["sync", "dev"]);
    let (copy, marker) = (scene.vm.copy(), scene.vm.copy().join(".boxery-copy"));
    scene.there("notes.txt", "not to be lost\n");
    for (content, complaint) in [
        (
            Some("boxery copy 1 of another project\n"),
            "is the copy of another project",
        ),
        (None, "is not a copy that boxery made"),
    ] {
        match content {
            Some(content) => write(&marker, content),
            None => fs::remove_file(&marker).unwrap(),
        }
        let said = scene.run(&["sync", "dev"]);
        assert!(
            said.starts_with("exit: 125\n") && said.contains(complaint),
            "{said}"
        );
        assert_eq!(scene.is_there("notes.txt").unwrap(), "not to be lost\n");
    }
    let outside = tempfile::tempdir().unwrap();
    write(&outside.path().join("theirs"), "somebody else's\n");
    fs::remove_dir_all(&copy).unwrap();
    symlink(outside.path(), &copy).unwrap();
    let said = scene.run(&["sync", "dev"]);
    assert!(said.starts_with("exit: 125\n"), "{said}");
    let names: Vec<_> = fs::read_dir(outside.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn a_folder_that_became_a_link_on_the_vm_is_never_gone_through() {
    let scene = Scene::new("native");
    scene.here("src/deep/a.c", "a\n");
    scene.here("src/deep/b.c", "b\n");
    scene.run(&["sync", "dev"]);
    let outside = tempfile::tempdir().unwrap();
    write(&outside.path().join("a.c"), "somebody else's\n");
    fs::remove_dir_all(scene.vm.copy().join("src/deep")).unwrap();
    symlink(outside.path(), scene.vm.copy().join("src/deep")).unwrap();
    scene.here("src/deep/a.c", "edited here\n");
    let said = scene.run(&["sync", "dev"]);
    assert!(
        said.starts_with("exit: 1\n") && said.contains("! src/deep"),
        "{said}"
    );
    assert_eq!(
        fs::read_to_string(outside.path().join("a.c")).unwrap(),
        "somebody else's\n"
    );
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    assert_eq!(scene.is_here("src/deep/a.c").unwrap(), "edited here\n");
}

#[test]
fn what_would_run_here_never_comes_back_by_itself() {
    let scene = Scene::new("native");
    let git = |words: &[&str]| {
        let done = scene.sandbox.command("git").args(words).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    git(&["config", "core.hooksPath", "tools/hooks"]);
    git(&["config", "include.path", "../team.gitconfig"]);
    scene.here(".envrc", "true\n");
    scene.here("tools/hooks/pre-commit", "true\n");
    write(
        &scene.sandbox.project().join("fence.json"),
        r#"{"filesystem": {"denyRead": ["secrets"], "denyWrite": ["locked"]}}"#,
    );
    scene.here("secrets/key", "secret\n");
    scene.here("locked/file", "locked\n");
    scene.run(&["sync", "dev"]);
    // What the policy keeps from reading never left.
    assert!(!scene.vm.copy().join("secrets").exists());
    let planted = [
        ".git/hooks/post-checkout",
        ".claude/settings.json",
        "packages/a/.claude/settings.local.json",
        ".envrc",
        ".mcp.json",
        ".husky/pre-push",
        ".vscode/tasks.json",
        ".gitattributes",
        "tools/hooks/pre-commit",
        "team.gitconfig",
        "fence.json",
        "locked/file",
        "sub/.bashrc",
    ];
    for path in planted {
        scene.there(path, "touch /tmp/owned\n");
        let file = scene.vm.copy().join(path);
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    scene.there("src/fine.c", "fine\n");
    let before: Vec<_> = planted.iter().map(|path| scene.is_here(path)).collect();
    let said = scene.run(&["sync", "dev"]);
    assert!(
        said.starts_with("exit: 1\n") && said.contains("< A src/fine.c\n"),
        "{said}"
    );
    let after: Vec<_> = planted.iter().map(|path| scene.is_here(path)).collect();
    assert_eq!(before, after, "{said}");
    for path in planted.iter().filter(|path| !path.starts_with(".git/")) {
        assert!(
            said.contains(&format!("! {path}: changed on dev; ")),
            "{path}: {said}"
        );
    }
    // A person who names it has it.
    let (status, said) = scene.at_terminal(&["sync", "dev", "--take", "vm", ".envrc"]);
    assert_eq!(status, 1, "{said}");
    assert_eq!(scene.is_here(".envrc").unwrap(), "touch /tmp/owned\n");
    let (_, said) = scene.at_terminal(&["sync", "dev", "--take", "vm", "."]);
    assert_eq!(scene.is_here(".mcp.json"), None, "{said}");
}
