//! `boxery sync`, over a real SSH server and both pipes.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use rstest::rstest;

use crate::pty::Pty;
use crate::sshd::Vm;
use crate::support::Sandbox;

/// A project, its VM, and what both hold.
pub(crate) struct Scene {
    pub(crate) sandbox: Sandbox,
    pub(crate) vm: Vm,
}

impl Scene {
    pub(crate) fn new(pipe: &str) -> Self {
        Self::behind(pipe, "")
    }

    /// The same with lines of shell before each command on the VM.
    pub(crate) fn behind(pipe: &str, lines: &str) -> Self {
        let sandbox = Sandbox::new();
        let vm = Vm::start_over(&sandbox, lines, pipe);
        let scene = Self { sandbox, vm };
        scene.here("main.c", "int main(void) { return 0; }\n");
        scene.here("notes.txt", "notes\n");
        scene
    }

    /// Write a file of the project.
    pub(crate) fn here(&self, path: &str, text: &str) {
        write(&self.sandbox.project().join(path), text);
    }

    /// Write a file of the copy.
    pub(crate) fn there(&self, path: &str, text: &str) {
        write(&self.vm.copy().join(path), text);
    }

    pub(crate) fn is_here(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.sandbox.project().join(path)).ok()
    }

    pub(crate) fn is_there(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.vm.copy().join(path)).ok()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.boxery(arguments);
        command.env("SSH_AUTH_SOCK", self.vm.agent());
        command
    }

    /// What the binary says, with the copy's path spelled `[COPY]`.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        self.shown(&self.sandbox.render(&output))
    }

    fn shown(&self, text: &str) -> String {
        let dir = self.vm.dir().display().to_string();
        let mut parts = text.split(&dir);
        let mut shown = parts.next().unwrap().to_owned();
        for rest in parts {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '/' || c == '-';
            shown.push_str("[COPY]");
            shown.push_str(rest.trim_start_matches(word));
        }
        shown
    }

    /// What it says to a person at a terminal.
    pub(crate) fn at_terminal(&self, arguments: &[&str]) -> (i32, String) {
        let mut pty = Pty::start(&self.command(arguments));
        let (status, said) = pty.end();
        (status.code().unwrap(), self.shown(&said))
    }
}

pub(crate) fn write(path: &Path, text: &str) {
    use std::io::Write as _;
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = fs::File::create(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[rstest]
fn changes_go_both_ways_and_are_listed_as_git_does(#[values("native", "system")] pipe: &str) {
    let scene = Scene::new(pipe);
    insta::allow_duplicates! {
    insta::assert_snapshot!(scene.run(&["sync", "dev"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    sent 2 files, 35 B to `[COPY]` on dev
    ");
    insta::assert_snapshot!(scene.run(&["sync", "dev"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    the copy on dev is the same as the project (2 files)
    ");
    scene.here("main.c", "int main(void) { return 1; }\n");
    scene.here("src/new\nline", "x");
    fs::rename(scene.sandbox.project().join("notes.txt"), scene.sandbox.project().join("read.me")).unwrap();
    scene.there("out/report.txt", "made there\n");
    insta::assert_snapshot!(scene.run(&["sync", "dev", "--dry-run"]), @r"
    exit: 0
    ----- stdout
    > M main.c
    > R notes.txt -> read.me
    > A src/new\nline
    < A out/report.txt
    ----- stderr
    nothing was changed
    ");
    insta::assert_snapshot!(scene.run(&["sync", "dev"]), @r"
    exit: 0
    ----- stdout
    > M main.c
    > R notes.txt -> read.me
    > A src/new\nline
    < A out/report.txt
    ----- stderr
    sent 3 files, 36 B, 1 deleted to `[COPY]` on dev, took 1 file, 11 B
    ");
    }
    assert_eq!(scene.is_here("out/report.txt").unwrap(), "made there\n");
    assert_eq!(scene.is_there("read.me").unwrap(), "notes\n");
    assert_eq!(scene.is_there("notes.txt"), None);
    fs::remove_file(scene.vm.copy().join("read.me")).unwrap();
    scene.run(&["sync", "dev"]);
    assert_eq!(scene.is_here("read.me"), None);
}

#[test]
fn what_changed_on_both_sides_is_kept_on_both_until_a_person_takes_one() {
    let scene = Scene::new("native");
    scene.run(&["sync", "dev"]);
    scene.here("notes.txt", "mine\n");
    scene.there("notes.txt", "theirs\n");
    scene.here("main.c", "my code\n");
    scene.there("main.c", "their code\n");
    insta::assert_snapshot!(scene.run(&["sync", "dev"]), @r"
    exit: 1
    ----- stdout
    ! main.c: changed on both sides
    ! notes.txt: changed on both sides
    ----- stderr
    2 paths stay different; `boxery sync dev --take laptop PATH` or `--take vm PATH` ends it
    nothing was moved
    ");
    assert_eq!(scene.is_here("notes.txt").unwrap(), "mine\n");
    assert_eq!(scene.is_there("notes.txt").unwrap(), "theirs\n");
    // Nobody is at a terminal, or an agent asks.
    let mut command = Command::new("setsid");
    let alone = scene.command(&["sync", "dev", "--take", "vm", "notes.txt"]);
    command
        .arg("--wait")
        .arg(alone.get_program())
        .args(alone.get_args())
        .env_clear();
    command.envs(
        alone
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command
        .current_dir(scene.sandbox.project())
        .stdin(Stdio::null());
    let said = scene.sandbox.render(&command.output().unwrap());
    assert!(
        said.starts_with("exit: 1\n") && said.contains("nobody is at a terminal"),
        "{said}"
    );
    let mut agent = scene.command(&["sync", "dev", "--take", "vm", "notes.txt"]);
    agent.env("CLAUDECODE", "1");
    let (status, said) = {
        let (status, said) = Pty::start(&agent).end();
        (status.code().unwrap(), said)
    };
    assert!(
        status == 1 && said.contains("an agent can't give `--take`"),
        "{said}"
    );
    assert_eq!(scene.is_here("notes.txt").unwrap(), "mine\n");

    let takes = [
        "sync",
        "dev",
        "--take",
        "vm",
        "notes.txt",
        "--take",
        "laptop",
        "main.c",
    ];
    let (status, said) = scene.at_terminal(&takes);
    assert_eq!(status, 0, "{said}");
    assert_eq!(scene.is_here("notes.txt").unwrap(), "theirs\n");
    assert_eq!(scene.is_there("main.c").unwrap(), "my code\n");
}

#[test]
fn a_pin_at_a_terminal_sends_the_first_copy_and_names_what_stays_here() {
    let scene = Scene::new("native");
    scene.here(".gitignore", "*.env\n.env*\n");
    scene.here(".env", "SECRET=1\n");
    scene.here("deep/prod.env", "SECRET=2\n");
    let (status, said) = scene.at_terminal(&["pin", "dev"]);
    assert_eq!(status, 0, "{said}");
    for line in [
        "to dev go 3 files, ",
        "stays here: .env\r\n",
        "stays here: deep/prod.env\r\n",
        "sent 3 files, ",
        "mode    guard\r\n",
    ] {
        assert!(said.contains(line), "{line:?} in {said}");
    }
    assert_eq!(scene.is_there("notes.txt").unwrap(), "notes\n");
    assert!(!scene.vm.copy().join(".env").exists() && !scene.vm.copy().join("deep").exists());
    // Without a person it is only said.
    let other = Scene::new("native");
    let said = other.run(&["pin", "dev"]);
    assert!(
        said.contains("next: `boxery sync dev` sends the project there\n"),
        "{said}"
    );
}

#[test]
fn a_mirror_takes_nothing_and_names_what_stays_there() {
    let scene = Scene::new("native");
    scene.run(&["sync", "dev"]);
    scene.here("main.c", "new\n");
    scene.there("notes.txt", "edited there\n");
    scene.there("made", "x");
    insta::assert_snapshot!(scene.run(&["sync", "dev", "--mirror"]), @r"
    exit: 1
    ----- stdout
    > M main.c
    ! made: changed on dev, and stays there
    ! notes.txt: changed on dev, and stays there
    ----- stderr
    2 paths stay different; `boxery sync dev --take laptop PATH` or `--take vm PATH` ends it
    sent 1 file, 4 B to `[COPY]` on dev
    ");
    assert_eq!(scene.is_here("notes.txt").unwrap(), "notes\n");
    assert_eq!(scene.is_there("notes.txt").unwrap(), "edited there\n");
}

#[test]
fn json_lines_say_the_same() {
    let scene = Scene::new("native");
    scene.run(&["sync", "dev"]);
    scene.here("main.c", "new\n");
    scene.there("made", "x");
    let output = scene.command(&["sync", "dev", "--json"]).output().unwrap();
    assert!(output.status.success());
    let lines: Vec<serde_json::Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let told: Vec<_> = lines
        .iter()
        .map(|line| (&line["event"], &line["to"], &line["kind"], &line["path"]))
        .collect();
    let none = serde_json::Value::Null;
    let word = |text: &str| serde_json::Value::from(text);
    assert_eq!(
        told,
        [
            (&word("change"), &word("vm"), &word("M"), &word("main.c")),
            (&word("change"), &word("laptop"), &word("A"), &word("made")),
            (&word("done"), &none, &none, &none),
        ]
    );
    assert_eq!(lines[2]["same"], true);
    assert_eq!(lines[2]["sent"]["bytes"], 4);
}

#[test]
fn a_file_that_can_run_is_one_there_and_links_are_data() {
    let scene = Scene::new("native");
    let project = scene.sandbox.project();
    scene.here("run.sh", "#!/bin/sh\necho hi\n");
    fs::set_permissions(project.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("/nowhere", project.join("link")).unwrap();
    fs::create_dir(project.join("empty")).unwrap();
    scene.here(&"n".repeat(255), "long");
    scene.run(&["sync", "dev"]);
    let copy = scene.vm.copy();
    assert_eq!(
        fs::metadata(copy.join("run.sh"))
            .unwrap()
            .permissions()
            .mode()
            & 0o111,
        0o111
    );
    assert_eq!(
        fs::read_link(copy.join("link")).unwrap(),
        Path::new("/nowhere")
    );
    assert!(copy.join("empty").is_dir());
    fs::remove_file(project.join("link")).unwrap();
    fs::remove_dir(project.join("empty")).unwrap();
    scene.run(&["sync", "dev"]);
    assert!(!copy.join("link").is_symlink() && !copy.join("empty").exists());
    assert!(scene.run(&["drift", "dev"]).starts_with("exit: 0\n"));
}

#[test]
fn a_full_disk_has_its_own_message_and_the_next_sync_completes() {
    let scene = Scene::behind(
        "native",
        r#"[ -n "$small" ] || {
            export small=1
            mkdir -p "$dir"
            exec unshare --mount --map-root-user sh -c 'mount -t tmpfs -o size=256k none "$1" && exec "$0"' "$0" "$dir"
        }"#,
    );
    let big = scene.sandbox.project().join("big");
    fs::File::create(&big).unwrap().set_len(1 << 20).unwrap();
    insta::assert_snapshot!(scene.run(&["sync", "dev"]), @r"
    exit: 125
    ----- stdout
    ----- stderr
    error: dev has no space left for the copy
    hint: free some there; then `boxery sync dev` goes on where it was
    ");
    fs::remove_file(big).unwrap();
    let said = scene.run(&["sync", "dev"]);
    assert!(said.starts_with("exit: 0\n"), "{said}");
}

#[rstest]
fn a_sync_that_is_killed_is_completed_by_the_next_one(
    #[values("native", "system")] pipe: &str,
    #[values("laptop", "helper")] end: &str,
) {
    let scene = Scene::new(pipe);
    scene.run(&["sync", "dev"]);
    // Large enough to be on its way for a while.
    let big = scene.sandbox.project().join("big");
    let mut seed = 7_u64;
    let mut content = Vec::new();
    while content.len() < 16 << 20 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        content.extend_from_slice(&seed.to_le_bytes());
    }
    {
        use std::io::Write as _;
        fs::File::create(&big).unwrap().write_all(&content).unwrap();
    }
    scene.there("made", "made there\n");
    let mut sync = scene
        .command(&["sync", "dev"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stage = scene.vm.copy().join(".boxery-stage");
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    let is_on_its_way = || {
        let files = fs::read_dir(&stage).into_iter().flatten().flatten();
        let mut sizes = files.filter_map(|file| Some(file.metadata().ok()?.len()));
        sizes.any(|size| size > 1 << 20)
    };
    while !is_on_its_way() {
        assert!(std::time::Instant::now() < deadline && sync.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    if end == "laptop" {
        sync.kill().unwrap();
    } else {
        for pid in working_in(&scene.vm.copy()) {
            drop(Command::new("kill").args(["-9", &pid]).status());
        }
    }
    let ended = sync.wait_with_output().unwrap();
    assert!(!ended.status.success());
    let said = scene.run(&["sync", "dev"]);
    assert!(said.starts_with("exit: 0\n"), "{said}");
    assert!(fs::read(scene.vm.copy().join("big")).unwrap() == content);
    assert_eq!(scene.is_here("made").unwrap(), "made there\n");
    assert!(!stage.exists());
    let said = scene.run(&["sync", "dev"]);
    assert!(said.contains("the same as the project (4 files)"), "{said}");
}

/// The processes that have a file below `folder` open.
fn working_in(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if !name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let open = fs::read_dir(entry.path().join("fd"))
            .into_iter()
            .flatten()
            .flatten();
        let mut open = open.filter_map(|fd| fs::read_link(fd.path()).ok());
        if open.any(|path| path.starts_with(folder)) {
            found.push(name);
        }
    }
    found
}
