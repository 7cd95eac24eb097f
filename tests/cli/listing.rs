//! `boxery copies`, `copies prune` and `env`, over a real SSH server.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::pty::Pty;
use crate::sshd::Vm;
use crate::support::Sandbox;

/// A laptop with two projects that have copies, the second of which is gone, and a copy of
/// somebody else's.
struct Scene {
    sandbox: Sandbox,
    vm: Vm,
}

impl Scene {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let vm = Vm::start(&sandbox, "");
        let scene = Self { sandbox, vm };
        scene.seed(&scene.sandbox.project());
        let other = scene.sandbox.home().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("file"), "text\n").unwrap();
        scene.seed(&other);
        fs::remove_dir_all(&other).unwrap();
        let foreign = scene.vm.dir().join("foreign");
        fs::create_dir(&foreign).unwrap();
        fs::write(
            foreign.join(".boxery-copy"),
            "boxery copy 1 of another laptop\n",
        )
        .unwrap();
        fs::create_dir(scene.vm.dir().join("no-copy")).unwrap();
        scene
    }

    fn seed(&self, project: &Path) {
        let mut command = self.sandbox.boxery(["vm", "seed", "dev"]);
        let output = command.current_dir(project).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    fn folders(&self) -> Vec<String> {
        let entries = fs::read_dir(self.vm.dir()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn copies(&self) -> Vec<(PathBuf, String)> {
        let output = self.sandbox.boxery(["copies", "--json"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        all.iter()
            .map(|copy| (text(&copy["folder"]).into(), text(&copy["state"])))
            .collect()
    }
}

#[test]
fn copies_are_listed_and_those_without_a_project_pruned() {
    let scene = Scene::new();
    let before = scene.folders();
    assert_eq!(before.len(), 4);
    let mut states: Vec<String> = scene.copies().into_iter().map(|(_, state)| state).collect();
    states.sort();
    assert_eq!(states, ["gone", "project", "unknown"]);
    let table = scene.sandbox.run(&["copies", "dev"]);
    assert!(table.contains("/home/other (gone)"), "{table}");
    assert!(table.contains("of another laptop, or unknown"), "{table}");

    let unasked = scene.sandbox.run(&["copies", "prune"]);
    assert!(unasked.starts_with("exit: 1\n"), "{unasked}");
    let agent = scene
        .sandbox
        .boxery(["copies", "prune", "--yes"])
        .env("CLAUDECODE", "1")
        .output();
    assert_eq!(agent.unwrap().status.code(), Some(1));
    let mut pty = Pty::start(&scene.sandbox.boxery(["copies", "prune"]));
    pty.until("[y/N] ");
    pty.say("n\n");
    assert_eq!(pty.end().0.code(), Some(1));
    assert_eq!(scene.folders(), before);

    // One whose marker isn't ours any more is left alone.
    let (gone, _) = scene
        .copies()
        .into_iter()
        .find(|(_, state)| state == "gone")
        .unwrap();
    let marker = fs::read_to_string(gone.join(".boxery-copy")).unwrap();
    fs::write(gone.join(".boxery-copy"), "boxery copy 1 of another\n").unwrap();
    let nothing = scene.sandbox.run(&["copies", "prune", "--yes"]);
    assert!(nothing.contains("there is nothing to remove"), "{nothing}");
    fs::write(gone.join(".boxery-copy"), marker).unwrap();

    let outside = scene.sandbox.home().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "").unwrap();
    std::os::unix::fs::symlink(&outside, gone.join("link")).unwrap();
    let pruned = scene.sandbox.run(&["copies", "prune", "--yes"]);
    assert!(pruned.starts_with("exit: 0\n"), "{pruned}");
    assert!(!gone.exists() && outside.join("kept").exists());
    assert_eq!(scene.folders().len(), 3);
    assert_eq!(scene.copies().len(), 2);
}

#[test]
fn the_environment_of_a_command_is_shown() {
    let scene = Scene::new();
    let home = scene.vm.dir().with_file_name("home");
    fs::write(
        home.join(".bash_profile"),
        "export FROM_PROFILE='yes\nno'\n",
    )
    .unwrap();
    let config = scene.sandbox.home().join(".config/boxery/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(config, format!("{text}\n[env]\npass = [\"TOKEN\"]\n")).unwrap();
    let mut command = scene.sandbox.boxery(["env", "dev"]);
    let shown = command.env("TOKEN", "a secret").output().unwrap();
    let shown = scene.sandbox.render(&shown);
    assert!(shown.starts_with("exit: 0\n"), "{shown}");
    assert!(
        shown.contains("passed by your configuration: TOKEN\n"),
        "{shown}"
    );
    assert!(!shown.contains("a secret"), "{shown}");
    for want in [
        "sent from this laptop:\n  LANG=C.UTF-8\n",
        "\n  GIT_PAGER=cat\n",
        "\nPATH    /",
    ] {
        assert!(shown.contains(want), "no {want:?} in {shown}");
    }
    let output = scene
        .sandbox
        .boxery(["env", "dev", "--login", "--json"])
        .output()
        .unwrap();
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(all["home"], home.to_str().unwrap());
    assert_eq!(all["login"]["HOME"], all["home"]);
    assert_eq!(all["set"]["PAGER"], "cat");
    let login = scene.sandbox.run(&["env", "dev", "--login"]);
    assert!(!login.contains("BOXERY_"), "{login}");
}
