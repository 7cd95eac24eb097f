//! `boxery cp` through the command line, over a real SSH server.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

use rstest::rstest;
use serde_json::{Value, json};

use crate::sshd::Vm;
use crate::support::{BOXERY, Sandbox};

fn write(path: &Path, text: &str) {
    use std::io::Write as _;
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::File::create(path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

/// A project with a copy on the VM `dev`.
fn scene(pipe: &str) -> (Sandbox, Vm) {
    let sandbox = Sandbox::new();
    let vm = Vm::start_over(&sandbox, "", pipe);
    write(&sandbox.project().join("src/main.c"), "main\n");
    let seeded = run(&sandbox, &vm, &["vm", "seed", "dev"]);
    assert!(seeded.starts_with("exit: 0\n"), "{seeded}");
    (sandbox, vm)
}

fn boxery(sandbox: &Sandbox, vm: &Vm, words: &[&str]) -> Command {
    let mut command = sandbox.boxery(words);
    command.env("SSH_AUTH_SOCK", vm.agent());
    command
}

fn run(sandbox: &Sandbox, vm: &Vm, words: &[&str]) -> String {
    sandbox.render(&boxery(sandbox, vm, words).output().unwrap())
}

#[rstest]
fn files_go_to_the_copy_and_come_back(#[values("native", "system")] pipe: &str) {
    let (sandbox, vm) = scene(pipe);
    let (project, copy) = (sandbox.project(), vm.copy());
    write(&project.join("out/a.txt"), "up\n");
    let said = run(&sandbox, &vm, &["cp", "out", "dev:"]);
    let copy_name = copy.display().to_string();
    assert_eq!(
        said.replace(&copy_name, "[COPY]"),
        "exit: 0\n----- stdout\n----- stderr\ncopied 1 file, 3 B to dev:[COPY]/out\n"
    );
    assert_eq!(fs::read_to_string(copy.join("out/a.txt")).unwrap(), "up\n");

    write(&copy.join("made/b.txt"), "down\n");
    let said = run(&sandbox, &vm, &["cp", "dev:made/b.txt", "src"]);
    assert!(said.starts_with("exit: 0\n"), "{said}");
    let came = fs::read_to_string(project.join("src/b.txt")).unwrap();
    assert_eq!(came, "down\n");
    // The home, absolute paths, and what is in a folder.
    let said = run(&sandbox, &vm, &["cp", "src/.", "dev:~/sources"]);
    assert!(said.starts_with("exit: 0\n"), "{said}");
    let absolute = format!(
        "dev:{}",
        copy.with_file_name("../home/sources/b.txt").display()
    );
    let said = run(&sandbox, &vm, &["cp", &absolute, "./c:d"]);
    assert!(said.starts_with("exit: 0\n"), "{said}");
    assert_eq!(fs::read_to_string(project.join("c:d")).unwrap(), "down\n");

    let output = boxery(&sandbox, &vm, &["cp", "--json", "dev:made", "."])
        .output()
        .unwrap();
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    let target = project.join("made");
    assert_eq!(
        line,
        json!({
            "event": "done", "target": format!("./{}", target.file_name().unwrap().display()),
            "files": 1, "bytes": 5, "travelled": 5, "reconnected": 0, "left": [], "changed": [],
        })
    );
    assert!(output.stderr.is_empty());
}

#[test]
fn a_copy_that_makes_no_sense_says_what_would() {
    let sandbox = Sandbox::new();
    sandbox.configure("[vm.dev]\ntarget = \"embedded\"\ndir = \"/root\"\n");
    insta::assert_snapshot!(sandbox.run(&["cp", "a", "b"]), @r"
    exit: 64
    ----- stdout
    ----- stderr
    error: both sides are on this laptop
    hint: write one of them as NAME:PATH; `cp` copies on the laptop
    ");
    insta::assert_snapshot!(sandbox.run(&["cp", "dev:a", "dev:b"]), @r"
    exit: 64
    ----- stdout
    ----- stderr
    error: both sides are on VMs
    hint: `boxery run dev -- cp -r SRC DST` copies there
    ");
    insta::assert_snapshot!(sandbox.run(&["cp", "C:a", "b"]), @r"
    exit: 64
    ----- stdout
    ----- stderr
    error: `C` is not a VM name
    hint: write a file of this laptop with a `:` in its name as `./C:a`
    ");
    insta::assert_snapshot!(sandbox.run(&["cp", "nothing", "dev:"]), @r"
    exit: 125
    ----- stdout
    ----- stderr
    error: there is no `nothing`
    hint: check its name, and which side it is on
    ");
    insta::assert_snapshot!(sandbox.run(&["cp", "dev:nothing", "."]), @r"
    exit: 125
    ----- stdout
    ----- stderr
    error: there is no `nothing`
    hint: check its name, and which side it is on
    ");
    write(&sandbox.project().join("a"), "");
    insta::assert_snapshot!(sandbox.run(&["cp", "a", "dev:no/such"]), @r"
    exit: 125
    ----- stdout
    ----- stderr
    error: the folder that `no/such` would lie in isn't there
    hint: make it first (`mkdir -p`), or name another
    ");
}

/// A file system of 64 KiB at `$1`, for the shell text behind it alone.
const SMALL: &str = "exec unshare --mount --map-root-user sh -c \
    'mount -t tmpfs -o size=64k none \"$1\" && shift && exec \"$@\"' sh";

#[test]
fn a_full_disk_on_either_side_ends_the_copy_in_words() {
    let sandbox = Sandbox::new();
    let lines = format!(
        r#"[ -n "$small" ] || {{ export small=1; mkdir -p "$dir"; {SMALL} "$dir" "$0"; }}"#
    );
    let vm = Vm::start(&sandbox, &lines);
    let project = sandbox.project();
    write(&project.join("big"), &"text ".repeat(1 << 19));
    let target = format!("dev:{}/big", vm.dir().display());
    let said = run(&sandbox, &vm, &["cp", "big", &target]);
    let want = "error: the copy ended at its top, on the VM: No space left on device";
    assert!(
        said.starts_with("exit: 125\n") && said.contains(want),
        "{said}"
    );

    let home = run(&sandbox, &vm, &["cp", "big", "dev:~/big"]);
    assert!(home.starts_with("exit: 0\n"), "{home}");
    fs::create_dir(project.join("small")).unwrap();
    let text = format!("{SMALL} small {BOXERY} cp dev:~/big small");
    let output = sandbox.command("sh").args(["-c", &text]).output().unwrap();
    let said = sandbox.render(&output);
    let want = "error: the copy ended at its top, on this laptop: No space left on device";
    assert!(
        said.starts_with("exit: 125\n") && said.contains(want),
        "{said}"
    );
}

#[test]
fn an_agent_that_is_pinned_copies_inside_the_project_only() {
    let (sandbox, vm) = scene("native");
    let pinned = run(&sandbox, &vm, &["pin", "dev", "--guard"]);
    assert!(pinned.starts_with("exit: 0\n"), "{pinned}");
    let (project, copy) = (sandbox.project(), vm.copy());
    write(&copy.join("tree/.claude/settings.json"), "{\"hooks\": {}}");
    write(&copy.join("tree/.claude/notes.md"), "n\n");
    write(&copy.join("tree/a"), "a\n");
    write(&copy.join("tree/base.json"), "{}");
    let policy = "{\"extends\": \"./tree/base.json\"}";
    write(&project.join("fence.json"), policy);
    write(&sandbox.home().join("secret"), "secret\n");
    let agent = |words: &[&str]| {
        let output = boxery(&sandbox, &vm, words).env("CLAUDECODE", "1").output();
        sandbox.render(&output.unwrap())
    };
    for words in [
        ["cp", "../home/secret", "dev:"],
        ["cp", "dev:tree/a", "../home"],
        ["cp", "src/main.c", "dev:/tmp/x"],
        ["cp", "src/main.c", "dev:~/x"],
        ["cp", "src/main.c", "dev:../x"],
    ] {
        let said = agent(&words);
        assert!(said.starts_with("exit: 1\n"), "{words:?}: {said}");
        assert!(said.contains("is not inside"), "{words:?}: {said}");
    }
    let said = agent(&["cp", "dev:tree", "."]);
    assert!(said.starts_with("exit: 1\n"), "{said}");
    assert!(
        said.contains("left out: .claude/settings.json: it is"),
        "{said}"
    );
    for here in ["tree/a", "tree/.claude/notes.md"] {
        assert!(project.join(here).exists(), "{here}: {said}");
    }
    for kept_out in ["tree/.claude/settings.json", "tree/base.json"] {
        assert!(!project.join(kept_out).exists(), "{kept_out}: {said}");
    }
    assert!(agent(&["cp", "src/main.c", "dev:"]).starts_with("exit: 0\n"));
}
