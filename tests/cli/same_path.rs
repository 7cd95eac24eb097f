//! The copy at the same absolute path as the project, on VMs that have files of their own.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use rstest::rstest;

use crate::sshd::{Vm, ordinary_user};
use crate::support::Sandbox;

const PLAIN: &str = "boxery-plain";
const SUDOER: &str = "boxery-sudoer";

/// A project, and a VM on which nothing of it is. Its path is root's to make there.
struct Scene {
    sandbox: Sandbox,
    vm: Vm,
    target: String,
}

impl Scene {
    fn new(pipe: &str, user: &str) -> Self {
        Self::with(pipe, user, "", "")
    }

    /// The same with more lines of shell, and of its server's configuration.
    fn with(pipe: &str, user: &str, more: &str, config: &str) -> Self {
        if user != "root" {
            ordinary_user(user);
        }
        let sandbox = Sandbox::new_in("/srv");
        let lines = format!(
            "mount -t tmpfs -o mode=755 tmpfs /srv\n\
             mount -t tmpfs -o mode=750 tmpfs /etc/sudoers.d\n\
             (umask 337; echo '{SUDOER} ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/test)\n\
             {more}"
        );
        let vm = Vm::start_as(&sandbox, pipe, user, &lines, config);
        let config = sandbox.home().join(".config/boxery/config.toml");
        let text = fs::read_to_string(&config).unwrap();
        let target = text.lines().find_map(|line| line.strip_prefix("target = "));
        let target = target.unwrap().trim_matches('"').to_owned();
        fs::remove_file(&config).unwrap();
        fs::write(sandbox.project().join("main.c"), "int main;\n").unwrap();
        Self {
            sandbox,
            vm,
            target,
        }
    }

    fn boxery(&self, words: &[&str]) -> Command {
        let mut command = self.sandbox.boxery(words);
        command.env("SSH_AUTH_SOCK", self.vm.agent());
        command
    }

    fn run(&self, words: &[&str]) -> String {
        self.sandbox.render(&self.boxery(words).output().unwrap())
    }

    fn add(&self, pipe: &str, more: &[&str]) -> String {
        let (dir, key) = (self.vm.dir(), self.vm.fingerprint());
        let words = ["vm", "add", "dev", &self.target, "--pipe", pipe, "--dir"];
        let words = [&words[..], &[dir.to_str().unwrap()]].concat();
        let accept = ["--accept-fingerprint", &key];
        self.run(&[&words[..], &accept, more].concat())
    }

    fn pin(&self) {
        let pinned = self.run(&["pin", "dev", "--drift", "off"]);
        assert!(pinned.starts_with("exit: 0\n"), "{pinned}");
    }

    fn config(&self) -> String {
        let path = self.sandbox.home().join(".config/boxery/config.toml");
        fs::read_to_string(path).unwrap_or_default()
    }

    /// Say in the configuration where copies are seen.
    fn set_paths(&self, paths: &str) {
        let path = self.sandbox.home().join(".config/boxery/config.toml");
        let text = self.config();
        let line = format!("paths = \"{paths}\"");
        let lines = text.lines().filter(|line| !line.starts_with("paths = "));
        let text = lines
            .chain([line.as_str(), ""])
            .collect::<Vec<_>>()
            .join("\n");
        fs::write(path, text).unwrap();
    }

    /// What a shell on the VM says, as its root.
    fn there(&self, text: &str) -> String {
        let output = self.vm.beside("sh").args(["-c", text]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn project(&self) -> String {
        self.sandbox.project().display().to_string()
    }
}

/// What a run prints when it is well.
fn printed(text: &str) -> String {
    format!("exit: 0\n----- stdout\n{text}\n----- stderr\n")
}

#[rstest]
fn a_copy_really_lies_at_the_same_path(
    #[values("native", "system")] pipe: &str,
    #[values("root", SUDOER)] user: &str,
) {
    let scene = Scene::new(pipe, user);
    let added = scene.add(pipe, &["--same-path", "yes"]);
    assert!(added.starts_with("exit: 0\n"), "{added}");
    assert!(added.contains("at the same absolute paths"), "{added}");
    assert!(scene.config().contains("paths = \"real\"\n"));
    scene.pin();
    let seeded = scene.run(&["vm", "seed", "dev"]);
    let want = "sent 1 file, 10 B to `[SCRATCH]/project` on dev";
    assert!(seeded.contains(want), "{seeded}");
    let project = scene.project();
    let owner = scene.there(&format!("stat -c %U {project} {project}/main.c"));
    assert_eq!(owner, format!("{user}\n{user}\n"));
    assert_eq!(
        scene.there(&format!("ls -A {}", scene.vm.dir().display())),
        ""
    );
    let same = scene.run(&["drift", "dev"]);
    assert!(same.starts_with("exit: 0\n"), "{same}");
    // Names in commands and in what they print are the laptop's.
    let text = format!("pwd; cat {project}/main.c; ls $PWD/*.c");
    assert_eq!(
        scene.run(&["run", "dev", "--", "bash", "-c", &text]),
        printed("[SCRATCH]/project\nint main;\n[SCRATCH]/project/main.c")
    );
    fs::create_dir(scene.sandbox.project().join("sub")).unwrap();
    fs::write(scene.sandbox.project().join("sub/x"), "").unwrap();
    let drift = scene.run(&["drift", "dev"]);
    assert!(
        drift.starts_with("exit: 1\n----- stdout\n> A sub/x\n"),
        "{drift}"
    );
    let pinned = scene.run(&["pin"]);
    assert!(
        pinned.contains("path    [SCRATCH]/project, the same there\n"),
        "{pinned}"
    );
    let doctor = scene.run(&["vm", "doctor", "dev"]);
    assert!(doctor.contains("paths          real: "), "{doctor}");
}

#[test]
fn who_can_not_make_it_is_told_and_gets_the_mapped_folder() {
    let scene = Scene::new("native", PLAIN);
    let refused = scene.add("native", &["--same-path", "yes"]);
    assert!(refused.starts_with("exit: 125\n"), "{refused}");
    assert!(refused.contains("can make no folders in"), "{refused}");
    assert!(!scene.config().contains("[vm.dev]"));
    let added = scene.add("native", &[]);
    assert!(added.contains("nobody was asked"), "{added}");
    assert!(!scene.config().contains("paths"));
    let doctor = scene.run(&["vm", "doctor", "dev"]);
    let want = "of the same path, the VM's user can't make it, and has no `sudo -n`";
    assert!(
        doctor.contains("paths          auto: ") && doctor.contains(want),
        "{doctor}"
    );
    assert!(scene.run(&["vm", "seed", "dev"]).starts_with("exit: 0\n"));
    assert_eq!(
        scene
            .there(&format!("ls -d {} 2>&1 >&-", scene.project()))
            .lines()
            .count(),
        1
    );
    // Wanted all the same: said, and nothing is made anywhere else.
    scene.set_paths("real");
    let doctor = scene.run(&["vm", "doctor", "dev"]);
    assert!(doctor.contains("note  paths"), "{doctor}");
    fs::rename(scene.vm.copy(), scene.vm.dir().join("away")).unwrap();
    let seeded = scene.run(&["vm", "seed", "dev"]);
    assert!(
        seeded.contains("dev cannot make `[SCRATCH]/project`"),
        "{seeded}"
    );
}

#[rstest]
#[case::no_terminal(None, "")]
#[case::no(Some("n\n"), "paths = \"mapped\"\n")]
#[case::yes(Some("y\n"), "paths = \"real\"\n")]
fn nobody_gets_folders_made_without_consent(#[case] answer: Option<&str>, #[case] want: &str) {
    let scene = Scene::new("native", SUDOER);
    let said = match answer {
        None => scene.add("native", &[]),
        Some(answer) => {
            let (dir, key) = (scene.vm.dir(), scene.vm.fingerprint());
            let line = format!(
                "{} vm add dev {} --dir {} --pipe native --accept-fingerprint {key}",
                crate::support::BOXERY,
                scene.target,
                dir.display()
            );
            let mut child = scene
                .sandbox
                .command("script")
                .args(["-qec", &line, "/dev/null"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("this test needs script: install bsdutils");
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(answer.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            drop(stdin);
            String::from_utf8(output.stdout).unwrap()
        }
    };
    assert!(said.contains("added VM dev"), "{said}");
    assert_eq!(
        said.contains("made once with sudo"),
        answer.is_some(),
        "{said}"
    );
    let config = scene.config();
    let found = config.lines().find(|line| line.starts_with("paths"));
    assert_eq!(
        found.map(|line| format!("{line}\n")).unwrap_or_default(),
        want
    );
}

#[test]
fn a_folder_of_the_vms_own_is_left_alone() {
    let scene = Scene::new("native", "root");
    scene.add("native", &["--same-path", "yes"]);
    let project = scene.project();
    scene.there(&format!(
        "mkdir -p {project}; echo theirs >{project}/main.c"
    ));
    let seeded = scene.run(&["vm", "seed", "dev"]);
    assert!(seeded.contains("is not empty and not a copy"), "{seeded}");
    assert!(seeded.contains("`paths = \"mapped\"`"), "{seeded}");
    assert_eq!(
        scene.there(&format!("cat {project}/main.c; ls -A {project}")),
        "theirs\nmain.c\n"
    );
}

#[rstest]
fn a_copy_that_lies_elsewhere_is_moved_and_never_doubled(#[values("root", SUDOER)] user: &str) {
    let scene = Scene::new("native", user);
    scene.add("native", &["--same-path", "no"]);
    scene.pin();
    assert!(scene.run(&["vm", "seed", "dev"]).starts_with("exit: 0\n"));
    let mapped = scene.vm.copy();
    // What only the VM has: a build's output, and hidden files.
    let text = "mkdir -p out/.x && echo built >out/.x/a && echo kept >.kept";
    assert_eq!(
        scene.run(&["run", "dev", "--", "bash", "-c", text]),
        printed("").replace("\n\n", "\n")
    );
    let project = scene.project();
    for (paths, there) in [
        ("real", project.clone()),
        ("mapped", mapped.display().to_string()),
    ] {
        scene.set_paths(paths);
        let run = scene.run(&["run", "dev", "--", "true"]);
        assert!(run.starts_with("exit: 125\n"), "{paths}: {run}");
        for more in [&[][..], &["--over"]] {
            let refused = scene.run(&[&["vm", "seed", "dev"], more].concat());
            assert!(refused.starts_with("exit: 125\n"), "{refused}");
            assert!(refused.contains("`boxery vm seed dev --move`"), "{refused}");
        }
        let moved = scene.run(&["vm", "seed", "dev", "--move"]);
        assert!(moved.starts_with("exit: 0\n"), "{moved}");
        let text = "pwd; cat out/.x/a .kept main.c";
        let want = format!(
            "{}\nbuilt\nkept\nint main;",
            there.replace(&scene.scratch(), "[SCRATCH]")
        );
        assert_eq!(
            scene.run(&["run", "dev", "--", "bash", "-c", text]),
            printed(&want)
        );
        let again = scene.run(&["vm", "seed", "dev", "--move"]);
        assert!(again.contains("is no copy of this project"), "{again}");
        let copies = scene.there(&format!("ls -d {project} {} 2>&-", mapped.display()));
        assert_eq!(copies, format!("{there}\n"));
    }
}

impl Scene {
    fn scratch(&self) -> String {
        let project = self.project();
        project.trim_end_matches("/project").to_owned()
    }
}

#[rstest]
fn a_namespace_shows_the_copy_at_the_same_path(
    #[values("native", "system")] pipe: &str,
    #[values("root", PLAIN, SUDOER)] user: &str,
) {
    let scene = Scene::new(pipe, user);
    scene.add(pipe, &["--same-path", "no"]);
    scene.pin();
    assert!(scene.run(&["vm", "seed", "dev"]).starts_with("exit: 0\n"));
    // The very same copy, seen at another path.
    scene.set_paths("namespace");
    let project = scene.project();
    let doctor = scene.run(&["vm", "doctor", "dev"]);
    assert!(
        doctor.contains("ok    paths          namespace: "),
        "{doctor}"
    );
    assert!(scene.run(&["drift", "dev"]).starts_with("exit: 0\n"));
    let text = format!("pwd; cat {project}/main.c; echo new >made; id -un; ls -d /srv/.tmp*");
    let top = scene.scratch();
    assert_eq!(
        scene.run(&["run", "dev", "--", "bash", "-c", &text]),
        printed(&format!("{project}\nint main;\n{user}\n{top}")).replace(&top, "[SCRATCH]")
    );
    assert_eq!(
        fs::read_to_string(scene.vm.copy().join("made")).unwrap(),
        "new\n"
    );
    // A program of the project, by a relative and by its absolute path.
    let script = "printf '#!/bin/sh\\necho $0\\n' >x.sh; chmod +x x.sh";
    scene.run(&["run", "dev", "--", "bash", "-c", script]);
    for program in ["./x.sh", &format!("{project}/x.sh")] {
        let ran = scene.run(&["run", "dev", "--", program]);
        assert_eq!(
            ran,
            printed("[SCRATCH]/project/./x.sh").replace(
                "./x.sh",
                program
                    .strip_prefix(&format!("{project}/"))
                    .unwrap_or("./x.sh"),
            )
        );
    }
    // The rest of the VM is as it is: what is written there is there.
    let text = "echo a >/var/tmp/boxery-$$ && ls /var/tmp/boxery-$$ && rm /var/tmp/boxery-$$; ls -d /etc/passwd /proc/self/fd >/dev/null; echo $?";
    let ran = scene.run(&["run", "dev", "--", "bash", "-c", text]);
    assert!(ran.contains("\n0\n"), "{ran}");
    // Only root's namespace has users to become.
    let sudo = scene.run(&["run", "dev", "--", "sudo", "-n", "id", "-un"]);
    assert_eq!(sudo == printed("root"), user == "root", "{sudo}");
    // Jobs see it too.
    let job = scene
        .boxery(&["jobs", "start", "dev", "--", "pwd"])
        .output()
        .unwrap();
    let job = String::from_utf8(job.stdout).unwrap();
    let tail = scene.run(&["jobs", "tail", "-f", job.trim(), "dev"]);
    assert_eq!(tail, printed("[SCRATCH]/project"));
    // So do ports, whose owner is looked up from outside.
    let words = ["jobs", "start", "dev", "--", "python3", "-m", "http.server"];
    let words = [&words[..], &["--bind", "127.0.0.1", "3000"]].concat();
    assert!(scene.boxery(&words).output().unwrap().status.success());
    let start = std::time::Instant::now();
    while !scene.run(&["jobs", "list", "dev"]).contains("  3000") {
        assert!(start.elapsed().as_secs() < 30, "its port is never listed");
    }
    // Outside of the runs nothing is there, but for root, who could make the folder.
    let there = scene.there(&format!("ls -A {project} 2>&1 >&-; ls -A {project} 2>&-"));
    assert_eq!(there.is_empty(), user == "root", "{there}");
    // What a run leaves behind is found and ended as ever.
    let left = scene.run(&["run", "dev", "--", "bash", "-c", "(sleep 1000 &)"]);
    assert!(left.starts_with("exit: 0\n"), "{left}");
    let list = scene.run(&["jobs", "list", "dev"]);
    let job = list
        .lines()
        .find(|line| line.contains("background"))
        .unwrap();
    assert!(
        scene
            .run(&["jobs", "stop", &job[..8], "dev"])
            .starts_with("exit: 0\n")
    );
}

#[test]
fn a_namespace_hides_nothing_of_the_vms_own() {
    let scene = Scene::new("native", PLAIN);
    scene.add("native", &["--same-path", "no"]);
    scene.pin();
    assert!(scene.run(&["vm", "seed", "dev"]).starts_with("exit: 0\n"));
    scene.set_paths("namespace");
    let project = scene.project();
    scene.there(&format!(
        "mkdir -p {project}; echo theirs >{project}/theirs"
    ));
    let refused = scene.run(&["run", "dev", "--", "true"]);
    assert!(refused.starts_with("exit: 125\n"), "{refused}");
    assert!(refused.contains("which the copy would hide"), "{refused}");
    assert!(refused.contains("`paths = \"mapped\"`"), "{refused}");
    let doctor = scene.run(&["vm", "doctor", "dev"]);
    assert!(doctor.contains("note  paths"), "{doctor}");
}

#[test]
fn a_vm_without_user_namespaces_says_so() {
    // The kernel makes none for whoever is in a changed root (user_namespaces(7)).
    let lines =
        "mount -t tmpfs -o mode=755 tmpfs /mnt; mkdir -m 755 /mnt/root; mount --rbind / /mnt/root";
    let scene = Scene::with("native", PLAIN, lines, "ChrootDirectory /mnt/root");
    let doctor = {
        scene.add("native", &["--same-path", "no"]);
        scene.run(&["vm", "doctor", "dev"])
    };
    assert!(
        doctor.contains("in a namespace it can't be seen there: the VM makes no namespace"),
        "{doctor}"
    );
    scene.pin();
    assert!(scene.run(&["vm", "seed", "dev"]).starts_with("exit: 0\n"));
    scene.set_paths("namespace");
    let refused = scene.run(&["run", "dev", "--", "true"]);
    assert!(refused.starts_with("exit: 125\n"), "{refused}");
    assert!(refused.contains("the VM makes no namespace"), "{refused}");
}
