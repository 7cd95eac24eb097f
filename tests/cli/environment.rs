//! The environment that a command on the VM is given: what travels, what the user's
//! configuration names, who the user is to git; and the script that sets a VM up.

use std::process::Output;

use camino::{Utf8Path, Utf8PathBuf};

use crate::scene::{Scene, write};

/// A home with an embedded VM `dev`.
fn scene(top: &str, vm: &str) -> Scene {
    let scene = Scene::new();
    let text = format!("{top}\n[vm.dev]\ntarget = \"embedded\"\ndir = \"/root/boxery\"\n{vm}\n");
    write(&scene.home().join(".config/boxery/config.toml"), &text);
    scene
}

fn run(scene: &Scene, words: &[&str], command: &str) -> Output {
    let mut boxery = scene.sandbox.boxery(["run", "dev", "--cwd", "/root"]);
    boxery.args(words).args(["--", "bash", "-c", command]);
    boxery
        .env("NPM_TOKEN", "from here")
        .env("OTHER", "stays here");
    boxery.output().unwrap()
}

/// Standard output of a command that succeeds.
fn said(scene: &Scene, words: &[&str], command: &str) -> String {
    let output = run(scene, words, command);
    assert!(output.status.success(), "{}", scene.sandbox.render(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_the_configuration_names_is_passed_and_the_calls_own_wins() {
    let rules = "[env]\npass = [\"NPM_TOKEN\", \"NOT_SET_HERE\"]\ncommand = { GH_TOKEN = \"printf 'a secret\\\\n\\\\n'; pwd >&2\", OWN = \"exit 1\" }";
    let scene = scene(rules, "");
    let show = "echo \"${NPM_TOKEN-none} ${OTHER-none} ${NOT_SET_HERE-none} ${GH_TOKEN-none} $OWN $PAGER\"";
    assert_eq!(
        said(&scene, &["--env", "OWN=call's"], show),
        "from here none none a secret call's cat\n"
    );
    assert_eq!(
        said(
            &scene,
            &[
                "--env",
                "OWN=",
                "--env",
                "GH_TOKEN=x=y",
                "--env",
                "PAGER=less"
            ],
            show
        ),
        "from here none none x=y  less\n"
    );
    // No secret is on any command line or in the record.
    let look = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'a[ ]secret'";
    let output = run(&scene, &["--env", "OWN="], look);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n");
    for folder in ["log", "embedded/dev/root/root/.local"] {
        for entry in walk(&scene.state(folder)) {
            let bytes = std::fs::read(&entry).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(
                !text.contains("a secret") && !text.contains("from here"),
                "{entry}"
            );
        }
    }
}

fn walk(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut files = Vec::new();
    for entry in folder.read_dir_utf8().into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            files.extend(walk(entry.path()));
        } else if entry.file_type().unwrap().is_file() {
            files.push(entry.into_path());
        }
    }
    files
}

#[test]
fn a_command_that_tells_no_value_stops_the_call_and_says_why() {
    let scene = scene(
        "[env]\ncommand = { GH_TOKEN = \"echo not logged in >&2; exit 4\" }",
        "",
    );
    let output = run(&scene, &[], "touch /root/ran");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{text}");
    assert!(
        text.contains("the command that tells `GH_TOKEN` ended with exit status: 4: not logged in"),
        "{text}"
    );
    assert!(!scene.state("embedded/dev/root/root/ran").exists());
}

#[test]
fn the_users_name_travels_to_git_and_gives_way_to_all_that_the_vm_says() {
    let scene = scene("", "");
    let ask = "git config user.name; git config user.email; git config --show-scope user.name";
    write(
        &scene.home().join(".gitconfig"),
        "[user]\n\tname = \"A \\\"quoted\\\" \\\\ Näme\"\n\temail = me@laptop\n",
    );
    assert_eq!(
        said(&scene, &[], ask),
        "A \"quoted\" \\ Näme\nme@laptop\nsystem\tA \"quoted\" \\ Näme\n"
    );
    let commit = "git init -q x && cd x && git commit -q --allow-empty -m x && git log --format='%an %ae %cn %ce'";
    assert_eq!(
        said(&scene, &[], commit),
        "A \"quoted\" \\ Näme me@laptop A \"quoted\" \\ Näme me@laptop\n"
    );
    let own =
        "cd x && git config user.name Repository && git config user.name && git config user.email";
    assert_eq!(said(&scene, &[], own), "Repository\nme@laptop\n");
    let global = "git config --global user.email vm@vm && git config user.email; rm ~/.gitconfig";
    assert_eq!(said(&scene, &[], global), "vm@vm\n");
    // The VM's own word on where its configuration lies.
    let words = ["--env", "GIT_CONFIG_SYSTEM=/dev/null"];
    assert_eq!(
        said(&scene, &words, "git config user.name || echo none"),
        "none\n"
    );
}

#[test]
fn a_vm_is_set_up_once_before_its_first_command() {
    let script = "setup = \"\"\"\necho to be seen; echo once >> /root/setup\n\"\"\"";
    let scene = scene("", script);
    let first = run(&scene, &[], "cat /root/setup");
    let text = String::from_utf8_lossy(&first.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&first.stdout), "once\n", "{text}");
    assert!(text.contains("boxery: setting up dev, once\n") && text.contains("to be seen\n"));
    let second = run(&scene, &[], "cat /root/setup");
    assert_eq!(String::from_utf8_lossy(&second.stdout), "once\n");
    assert!(!String::from_utf8_lossy(&second.stderr).contains("set"));
    // Another text is another setup.
    let other = scene.home().join(".config/boxery/config.toml");
    let text = std::fs::read_to_string(&other).unwrap();
    write(&other, &text.replace("once >>", "twice >>"));
    assert_eq!(said(&scene, &[], "cat /root/setup"), "once\ntwice\n");
}

#[test]
fn commands_that_come_at_once_wait_for_one_setup() {
    let script = "setup = \"mkdir /root/ready && mkfifo /root/go && read -t 60 x <> /root/go; echo ran >> /root/setup\"";
    let scene = scene("", script);
    let start = || {
        let mut boxery = scene.sandbox.boxery(["run", "dev", "--cwd", "/root"]);
        boxery.args(["--", "cat", "/root/setup"]);
        boxery.stdout(std::process::Stdio::piped());
        boxery.stderr(std::process::Stdio::piped());
        boxery.spawn().unwrap()
    };
    let mut first = start();
    wait_for(&mut first, "setting up");
    let mut others = [start(), start()];
    for other in &mut others {
        wait_for(other, "waiting for it");
    }
    let go = scene.state("embedded/dev/root/root/go");
    // The script makes it in its own time.
    let mut go = loop {
        match std::fs::File::options().write(true).read(true).open(&go) {
            Ok(go) => break go,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    };
    std::io::Write::write_all(&mut go, b"\n").unwrap();
    for child in [first].into_iter().chain(others) {
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ran\n");
        assert_eq!(output.status.code(), Some(0));
    }
}

/// Read a child's stderr up to a line that holds `text`.
fn wait_for(child: &mut std::process::Child, text: &str) {
    let stderr = child.stderr.take().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stderr));
    assert!(
        lines.any(|line| line.unwrap().contains(text)),
        "no `{text}`"
    );
    // What still comes has somewhere to go.
    std::thread::spawn(move || lines.count());
}

#[test]
fn a_setup_that_fails_is_told_and_tried_again() {
    let scene = scene(
        "",
        "setup = \"test -e /root/mended || { echo not yet; exit 3; }\"",
    );
    let output = run(&scene, &[], "touch /root/ran");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{text}");
    assert!(
        text.contains("not yet\n")
            && text.contains("boxery: the setup of dev ended with 3, so the command was not run"),
        "{text}"
    );
    let root = scene.state("embedded/dev/root/root");
    assert!(!root.join("ran").exists());
    write(&root.join("mended"), "");
    assert_eq!(said(&scene, &[], "echo ran"), "ran\n");
}
