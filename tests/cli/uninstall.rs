//! `boxery uninstall`, on a laptop with a hook, a pin, a VM that can be reached and one
//! that can't.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pty::Pty;
use crate::sshd::Vm;
use crate::support::Sandbox;

const SETTINGS: &str = "{\r\n  // mine\r\n  \"model\": \"x\",\r\n}";

struct Scene {
    sandbox: Sandbox,
    vm: Vm,
    user: PathBuf,
    shared: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let vm = Vm::start(&sandbox, "");
        let user = sandbox.home().join(".claude/settings.json");
        let shared = sandbox.project().join(".claude/settings.json");
        for path in [&user, &shared] {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(&user, "{\n\t\"model\": \"x\"\n}").unwrap();
        let scene = Self {
            sandbox,
            vm,
            user,
            shared,
        };
        for words in [
            &["hook", "install", "claude-code"][..],
            &["hook", "install", "claude-code", "--scope", "project"],
            &["vm", "seed", "dev"],
            &["pin", "dev", "--guard"],
            &["run", "--", "true"],
        ] {
            let said = scene.sandbox.run(words);
            assert!(said.starts_with("exit: 0\n"), "{words:?}: {said}");
        }
        assert!(scene.shared.exists());
        scene
    }

    fn state(&self) -> PathBuf {
        self.sandbox.home().join(".local/state/boxery")
    }

    fn config(&self) -> PathBuf {
        self.sandbox.home().join(".config/boxery")
    }

    /// Files of boxery's on the VM, copies apart.
    fn there(&self) -> Vec<PathBuf> {
        let home = self.vm.dir().with_file_name("home");
        [".cache/boxery", ".local/state/boxery", ".boxery"]
            .into_iter()
            .map(|name| home.join(name))
            .filter(|path| path.exists())
            .collect()
    }

    /// The verb, started elsewhere than in the project.
    fn elsewhere(&self, words: &[&str]) -> Command {
        let mut command = self.sandbox.boxery(words);
        command.current_dir(self.sandbox.home());
        command
    }

    fn run(&self, words: &[&str]) -> String {
        self.sandbox
            .render(&self.elsewhere(words).output().unwrap())
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn nothing_is_left_but_the_configuration_and_the_copies() {
    let scene = Scene::new();
    let installed = read(&scene.user);
    let there = scene.there();
    assert!(!there.is_empty());

    let dry = scene.run(&["uninstall", "--dry-run"]);
    assert!(dry.starts_with("exit: 0\n"), "{dry}");
    assert!(
        dry.contains("would go: the hook of Claude Code in"),
        "{dry}"
    );
    assert!(dry.contains("would go: 1 pin"), "{dry}");
    assert_eq!(read(&scene.user), installed);
    assert_eq!(scene.there(), there);

    let unasked = scene.run(&["uninstall"]);
    assert!(unasked.starts_with("exit: 1\n"), "{unasked}");
    let agent = scene
        .elsewhere(&["uninstall", "--yes"])
        .env("CLAUDECODE", "1")
        .output();
    assert_eq!(agent.unwrap().status.code(), Some(1));
    assert_eq!(read(&scene.user), installed);

    let mut pty = Pty::start(&scene.elsewhere(&["uninstall"]));
    pty.until("[y/N] ");
    pty.say("y\n");
    let (status, said) = pty.end();
    assert_eq!(status.code(), Some(0), "{said}");
    assert_eq!(read(&scene.user), "{\n\t\"model\": \"x\"\n}");
    assert!(!scene.shared.exists(), "the install made it");
    assert!(!scene.state().exists());
    assert_eq!(scene.there(), Vec::<PathBuf>::new());
    assert!(scene.vm.copy().join(".boxery-copy").exists());
    assert!(scene.config().join("config.toml").exists());

    let again = scene.run(&["uninstall", "--yes", "--purge"]);
    assert!(again.starts_with("exit: 0\n"), "{again}");
    assert!(!scene.config().exists());
}

#[test]
fn what_could_not_be_removed_is_listed_with_what_to_do() {
    let scene = Scene::new();
    let mut config = read(&scene.config().join("config.toml"));
    config.push_str("\n[vm.away]\ntarget = \"me@127.0.0.1:1\"\ndir = \"/vm\"\npipe = \"native\"\n");
    fs::write(scene.config().join("config.toml"), config).unwrap();
    fs::write(&scene.user, SETTINGS).unwrap();
    let job = scene.run(&["jobs", "start", "dev", "--", "sleep", "1000"]);
    assert!(job.starts_with("exit: 0\n"), "{job}");

    let said = scene.run(&["uninstall", "--yes"]);
    assert!(said.starts_with("exit: 1\n"), "{said}");
    for want in [
        "left: boxery's helper on away: connection to 127.0.0.1:1 refused",
        "by hand: on away: rm -rf",
        "left: boxery's helper on dev: 1 runs or jobs go on there",
        "settings.json, which may hold a hook",
    ] {
        assert!(said.contains(want), "no {want:?} in {said}");
    }
    assert_eq!(read(&scene.user), SETTINGS);
    assert!(!scene.there().is_empty());
    assert!(!scene.state().exists());
    let stopped = scene.run(&["jobs", "list", "dev", "--json"]);
    let job = stopped.split('"').find(|word| word.len() == 32).unwrap();
    assert!(
        scene
            .run(&["jobs", "stop", job, "dev"])
            .starts_with("exit: 0\n")
    );
}

#[test]
fn a_purge_keeps_what_says_how_an_unreached_vm_is_reached_and_says_how_to_clean_it() {
    let scene = Scene::new();
    let config = scene.config().join("config.toml");
    let known = read(&config);
    // Its server listens no more under this number.
    let (before, rest) = known.split_once("@127.0.0.1:").unwrap();
    let (_, after) = rest.split_once('"').unwrap();
    fs::write(&config, format!("{before}@127.0.0.1:1\"{after}")).unwrap();
    let said = scene.run(&["uninstall", "--yes", "--purge"]);
    assert!(said.starts_with("exit: 1\n"), "{said}");
    assert!(said.contains("which says how to reach dev"), "{said}");
    assert!(config.exists() && !scene.state().exists(), "{said}");
    assert!(!scene.there().is_empty());

    let line = said
        .lines()
        .find_map(|line| line.split_once("by hand: on dev: "));
    let (_, by_hand) = line.unwrap();
    let cleaned = Command::new("sh")
        .args(["-c", by_hand])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", scene.vm.dir().with_file_name("home"))
        .status();
    assert!(cleaned.unwrap().success(), "{by_hand}");
    assert_eq!(scene.there(), Vec::<PathBuf>::new());

    fs::write(&config, known).unwrap();
    let again = scene.run(&["uninstall", "--yes", "--purge"]);
    assert!(again.starts_with("exit: 0\n"), "{again}");
    assert!(!scene.config().exists());
}
