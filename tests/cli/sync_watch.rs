//! `sync --watch`: both sides are kept the same, and told of.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rstest::rstest;

use crate::sync::Scene;

/// A change has to be there within this time: far less than the time after which both
/// sides are compared whatever happens.
const SOON: Duration = Duration::from_secs(20);

/// `boxery sync --watch --json` while it runs.
struct Watching {
    child: Child,
    lines: Receiver<serde_json::Value>,
}

impl Watching {
    fn start(scene: &Scene) -> Self {
        Self::with(scene.command(&["sync", "dev", "--watch", "--json"]))
    }

    fn with(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (tell, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                drop(tell.send(serde_json::from_str(&line).unwrap()));
            }
        });
        let watching = Self { child, lines };
        watching.next("done");
        watching
    }

    /// The next line about `event`.
    fn next(&self, event: &str) -> serde_json::Value {
        loop {
            let line = self.lines.recv_timeout(SOON).unwrap();
            if line["event"] == event {
                return line;
            }
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}

#[rstest]
fn every_change_on_either_side_is_soon_on_the_other(#[values("native", "system")] pipe: &str) {
    let scene = Scene::new(pipe);
    scene.here("main.c", "1\n");
    let watching = Watching::start(&scene);
    let copy = scene.vm.copy();
    let is = |path: &str, text: &str| {
        fs::read_to_string(copy.join(path)).is_ok_and(|found| found == text)
    };
    for round in 0..5 {
        let text = format!("{round}\n");
        scene.here("main.c", &text);
        wait_until("an edit arrives", || is("main.c", &text));
        scene.there("made", &text);
        wait_until("what the VM wrote comes", || {
            scene.is_here("made").is_some_and(|found| found == text)
        });
        // In folders that weren't there when it began, and were there before.
        scene.here("new/deep/er/file", &text);
        wait_until("a new folder arrives", || is("new/deep/er/file", &text));
        scene.there("new/deep/back", &text);
        wait_until("a file in a new folder comes back", || {
            scene
                .is_here("new/deep/back")
                .is_some_and(|found| found == text)
        });
        fs::remove_dir_all(scene.sandbox.project().join("new")).unwrap();
        wait_until("a deletion arrives", || !copy.join("new").exists());
    }
    drop(watching);
    let said = scene.run(&["drift", "dev"]);
    assert!(said.starts_with("exit: 0\n"), "{said}");
}

#[test]
fn a_conflict_is_told_once_and_nothing_else_waits_for_it() {
    let scene = Scene::new("native");
    scene.here("notes", "1\n");
    let watching = Watching::start(&scene);
    // At the same moment, as far as the watch is concerned: it is stopped.
    let signal = |name: &str| {
        let pid = watching.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([name, &pid])
                .status()
                .unwrap()
                .success()
        );
    };
    signal("-STOP");
    scene.here("notes", "mine\n");
    scene.there("notes", "theirs\n");
    signal("-CONT");
    assert_eq!(watching.next("open")["path"], "notes");
    scene.here("other", "2\n");
    let change = watching.next("change");
    assert_eq!(
        (change["path"].as_str(), change["to"].as_str()),
        (Some("other"), Some("vm"))
    );
    assert_eq!(scene.is_here("notes").unwrap(), "mine\n");
    assert_eq!(
        fs::read_to_string(scene.vm.copy().join("notes")).unwrap(),
        "theirs\n"
    );
}

#[test]
fn ignored_folders_are_neither_watched_nor_read_again() {
    let scene = Scene::new("native");
    scene.here(".gitignore", "target/\n");
    scene.here("main.c", "1\n");
    let watching = Watching::start(&scene);
    let watches = |pid: u32| -> usize {
        let files = fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap();
        let text = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap_or_default());
        text.map(|text| text.matches("inotify wd:").count()).sum()
    };
    wait_until("the project is watched", || {
        watches(watching.child.id()) > 0
    });
    for number in 0..300 {
        scene.here(&format!("target/{number}/object"), "x");
    }
    scene.here("main.c", "2\n");
    wait_until("an edit arrives", || {
        fs::read_to_string(scene.vm.copy().join("main.c")).unwrap() == "2\n"
    });
    // The top, and a repository's own folder.
    assert!(watches(watching.child.id()) <= 2);
    assert!(!scene.vm.copy().join("target").exists());
}

/// A user namespace of its own has limits of its own (`user_namespaces(7)`,
/// `/proc/sys/user/max_inotify_watches`).
#[test]
fn with_too_few_watches_both_sides_are_compared_and_the_setting_is_named() {
    let scene = Scene::new("native");
    scene.here("a/b/c/d", "1\n");
    let plain = scene.command(&["sync", "dev", "--watch", "--json"]);
    let mut limited = Command::new("unshare");
    limited
        .args(["--user", "--map-current-user", "--keep-caps", "sh", "-c"])
        .arg("echo 2 >/proc/sys/user/max_inotify_watches && exec \"$0\" \"$@\"")
        .arg(plain.get_program())
        .args(plain.get_args())
        .env_clear()
        .envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    if let Some(folder) = plain.get_current_dir() {
        limited.current_dir(folder as &Path);
    }
    let watching = Watching::with(limited);
    let note = watching.next("note")["text"].as_str().unwrap().to_owned();
    assert!(note.contains("fs.inotify.max_user_watches"), "{note}");
    scene.here("a/b/c/d", "2\n");
    wait_until("an edit arrives all the same", || {
        fs::read_to_string(scene.vm.copy().join("a/b/c/d")).unwrap() == "2\n"
    });
}
