//! `vm seed`, `drift` and the warning before a run, over a real SSH server.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::fs;
use std::path::Path;

use crate::sshd::Vm;
use crate::support::Sandbox;

/// A project of two files, and a VM.
fn scene() -> (Sandbox, Vm) {
    scene_behind("")
}

/// The same, with lines of shell before each command on the VM.
fn scene_behind(lines: &str) -> (Sandbox, Vm) {
    let sandbox = Sandbox::new();
    let vm = Vm::start(&sandbox, lines);
    write(
        &sandbox.project().join("main.c"),
        "int main(void) { return 0; }\n",
    );
    write(&sandbox.project().join("notes.txt"), "notes\n");
    (sandbox, vm)
}

fn write(path: &Path, text: &str) {
    use std::io::Write as _;
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::File::create(path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

/// What the binary says, with the random parts of the copy's path spelled `[COPY]`.
fn run(sandbox: &Sandbox, vm: &Vm, arguments: &[&str]) -> String {
    let text = sandbox.run(arguments);
    let dir = vm.dir().display().to_string();
    let mut shown = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once(&dir) {
        shown.push_str(before);
        shown.push_str("[COPY]");
        rest =
            after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '/' || c == '-');
    }
    shown.push_str(rest);
    shown
}

#[test]
fn a_seeded_project_is_the_same_and_an_edit_is_named() {
    let (sandbox, vm) = scene();
    insta::assert_snapshot!(run(&sandbox, &vm, &["drift", "dev"]), @r"
    exit: 2
    ----- stdout
    ----- stderr
    error: this project has no copy on dev
    hint: send the project: `boxery sync dev`
    ");
    insta::assert_snapshot!(run(&sandbox, &vm, &["vm", "seed", "dev"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    sent 2 files, 35 B to `[COPY]` on dev
    ");
    assert_eq!(
        fs::read_to_string(vm.copy().join("notes.txt")).unwrap(),
        "notes\n"
    );
    insta::assert_snapshot!(run(&sandbox, &vm, &["drift", "dev"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    the copy on dev is the same as the project (2 files)
    ");
    write(
        &sandbox.project().join("main.c"),
        "int main(void) { return 1; }\n",
    );
    write(&sandbox.project().join("new\nline"), "");
    write(&vm.copy().join("there"), "");
    insta::assert_snapshot!(run(&sandbox, &vm, &["drift", "dev"]), @r"
    exit: 1
    ----- stdout
    > M main.c
    > A new\nline
    < A there
    ----- stderr
    2 newer on the laptop, 1 newer on dev
    ");
    let json = sandbox.boxery(["drift", "dev", "--json"]).output().unwrap();
    assert_eq!(json.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["verdict"], "drift");
    assert_eq!(
        json["laptop_newer"],
        serde_json::json!(["main.c", "new\\nline"])
    );
    assert_eq!(json["vm_newer"], serde_json::json!(["there"]));
}

#[test]
fn a_copy_is_sent_once_and_over_only_when_asked() {
    let (sandbox, vm) = scene();
    sandbox.run(&["vm", "seed", "dev"]);
    write(&vm.copy().join("notes.txt"), "edited there\n");
    insta::assert_snapshot!(run(&sandbox, &vm, &["vm", "seed", "dev"]), @r"
    exit: 125
    ----- stdout
    ----- stderr
    error: this project has a copy on dev already
    hint: `boxery drift dev` tells what differs; `boxery sync dev` makes both the same
    ");
    assert_eq!(
        fs::read_to_string(vm.copy().join("notes.txt")).unwrap(),
        "edited there\n"
    );
    sandbox.run(&["vm", "seed", "dev", "--over"]);
    assert_eq!(
        fs::read_to_string(vm.copy().join("notes.txt")).unwrap(),
        "notes\n"
    );
}

#[test]
fn a_folder_that_is_not_ours_is_refused_and_left_alone() {
    let (sandbox, vm) = scene();
    sandbox.run(&["vm", "seed", "dev"]);
    let (copy, marker) = (vm.copy(), vm.copy().join(".boxery-copy"));
    write(&copy.join("notes.txt"), "not to be lost\n");
    for (content, complaint) in [
        (
            Some("boxery copy 1 of another project\n"),
            "is the copy of another project",
        ),
        (None, "is not empty and not a copy that boxery made"),
    ] {
        match content {
            Some(content) => write(&marker, content),
            None => fs::remove_file(&marker).unwrap(),
        }
        for arguments in [&["vm", "seed", "dev"][..], &["vm", "seed", "dev", "--over"]] {
            let said = run(&sandbox, &vm, arguments);
            assert!(
                said.starts_with("exit: 125") && said.contains(complaint),
                "{said}"
            );
        }
        let said = run(&sandbox, &vm, &["drift", "dev"]);
        assert!(said.starts_with("exit: 2"), "{said}");
        assert_eq!(
            fs::read_to_string(copy.join("notes.txt")).unwrap(),
            "not to be lost\n"
        );
    }
}

#[test]
fn links_on_the_vm_are_never_gone_through() {
    let (sandbox, vm) = scene();
    write(&sandbox.project().join("src/deep/a.c"), "a\n");
    sandbox.run(&["vm", "seed", "dev"]);
    let outside = tempfile::tempdir().unwrap();
    write(&outside.path().join("deep/a.c"), "somebody else's\n");
    fs::remove_dir_all(vm.copy().join("src")).unwrap();
    std::os::unix::fs::symlink(outside.path(), vm.copy().join("src")).unwrap();
    let said = run(&sandbox, &vm, &["drift", "dev"]);
    assert!(said.contains("< T src\n"), "{said}");
    sandbox.run(&["vm", "seed", "dev", "--over"]);
    assert_eq!(
        fs::read_to_string(outside.path().join("deep/a.c")).unwrap(),
        "somebody else's\n"
    );
    assert_eq!(
        fs::read_to_string(vm.copy().join("src/deep/a.c")).unwrap(),
        "a\n"
    );
    // The copy itself as a link.
    let copy = vm.copy();
    fs::remove_dir_all(&copy).unwrap();
    std::os::unix::fs::symlink(outside.path(), &copy).unwrap();
    let said = run(&sandbox, &vm, &["vm", "seed", "dev"]);
    assert!(
        said.starts_with("exit: 125") && said.contains("is a symbolic link"),
        "{said}"
    );
}

#[test]
fn a_copy_that_broke_off_is_unknown_and_can_be_completed() {
    let (sandbox, vm) = scene();
    sandbox.run(&["vm", "seed", "dev"]);
    let marker = vm.copy().join(".boxery-copy");
    let whole = fs::read_to_string(&marker).unwrap();
    write(&marker, &format!("{} unfinished\n", whole.trim_end()));
    fs::remove_file(vm.copy().join("notes.txt")).unwrap();
    let said = run(&sandbox, &vm, &["drift", "dev"]);
    assert!(
        said.starts_with("exit: 2") && said.contains("is not complete"),
        "{said}"
    );
    sandbox.run(&["vm", "seed", "dev"]);
    assert!(run(&sandbox, &vm, &["drift", "dev"]).starts_with("exit: 0"));
    assert_eq!(fs::read_to_string(&marker).unwrap(), whole);
}

#[test]
fn what_only_a_build_made_is_no_drift_and_is_not_read() {
    let (sandbox, vm) = scene();
    write(&sandbox.project().join(".gitignore"), "target/\n");
    sandbox.run(&["vm", "seed", "dev"]);
    write(&vm.copy().join("target/debug/app"), "binary");
    // Unreadable even to root, were it read.
    let socket = vm.copy().join("target/socket");
    let _socket = std::os::unix::net::UnixListener::bind(socket).unwrap();
    let said = run(&sandbox, &vm, &["drift", "dev"]);
    assert!(said.starts_with("exit: 0"), "{said}");
}

#[test]
fn a_run_under_a_pin_begins_with_what_is_stale() {
    let (sandbox, vm) = scene();
    sandbox.run(&["vm", "seed", "dev"]);
    sandbox.run(&["pin", "dev", "--guard"]);
    let command = ["run", "--", "sh", "-c", "echo out; echo err >&2"];
    insta::assert_snapshot!(run(&sandbox, &vm, &command), @r"
    exit: 0
    ----- stdout
    out
    ----- stderr
    err
    ");
    write(&sandbox.project().join("notes.txt"), "edited here\n");
    insta::assert_snapshot!(run(&sandbox, &vm, &command), @r"
    exit: 0
    ----- stdout
    out
    ----- stderr
    boxery: the copy on dev isn't the same as the project: notes.txt (1 newer on the laptop, 0 newer on dev)
    err
    ");
    sandbox.run(&["pin", "dev", "--drift", "deny"]);
    insta::assert_snapshot!(run(&sandbox, &vm, &command), @r"
    exit: 125
    ----- stdout
    ----- stderr
    boxery: the command was not run: the copy on dev isn't the same as the project: notes.txt (1 newer on the laptop, 0 newer on dev) (`boxery sync dev` makes both the same)
    ");
    sandbox.run(&["pin", "dev", "--drift", "off"]);
    insta::assert_snapshot!(run(&sandbox, &vm, &command), @r"
    exit: 0
    ----- stdout
    out
    ----- stderr
    err
    ");
    // What can't be told is told as that.
    sandbox.run(&["pin", "dev", "--drift", "warn"]);
    fs::remove_file(vm.copy().join(".boxery-copy")).unwrap();
    let said = run(&sandbox, &vm, &command);
    assert!(
        said.contains("boxery: can't tell whether the copy on dev is the project as it is now"),
        "{said}"
    );
}

#[test]
fn a_full_disk_has_its_own_message() {
    // A file system of 64 KiB for this connection alone.
    let (sandbox, vm) = scene_behind(
        r#"[ -n "$small" ] || {
            export small=1
            mkdir -p "$dir"
            exec unshare --mount --map-root-user sh -c 'mount -t tmpfs -o size=64k none "$1" && exec "$0"' "$0" "$dir"
        }"#,
    );
    fs::File::create(sandbox.project().join("big"))
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    insta::assert_snapshot!(run(&sandbox, &vm, &["vm", "seed", "dev"]), @r"
    exit: 125
    ----- stdout
    ----- stderr
    error: dev has no space left for the copy
    hint: free some there; then `boxery sync dev` goes on where it was
    ");
}

#[test]
fn a_vm_that_has_only_busybox_is_served_too() {
    let (sandbox, vm) = scene_behind(
        r#"mkdir -p "$dir.bin"
        for name in tar find; do ln -sf "$(command -v busybox)" "$dir.bin/$name"; done
        export PATH="$dir.bin:$PATH""#,
    );
    let project = sandbox.project();
    write(&project.join(".gitignore"), "target/\n");
    write(&project.join("a folder/a\nname"), "x");
    write(&project.join("n".repeat(150)), "x");
    std::os::unix::fs::symlink("/nowhere", project.join("link")).unwrap();
    let said = run(&sandbox, &vm, &["vm", "seed", "dev"]);
    assert!(said.starts_with("exit: 0"), "{said}");
    write(&vm.copy().join("target/app"), "built");
    let said = run(&sandbox, &vm, &["drift", "dev"]);
    assert!(said.starts_with("exit: 0"), "{said}");
    write(&vm.copy().join("a folder/a\nname"), "y");
    let said = run(&sandbox, &vm, &["drift", "dev"]);
    assert!(said.contains("< M a folder/a\\nname\n"), "{said}");
}
