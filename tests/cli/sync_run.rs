//! What is done with the copy before and after a command: each drift rule, over both pipes.

use std::fs;
use std::time::{Duration, SystemTime};

use rstest::rstest;

use crate::sync::Scene;

#[rstest]
fn a_run_has_every_edit_and_what_it_wrote_comes_back(#[values("native", "system")] pipe: &str) {
    let scene = Scene::new(pipe);
    scene.run(&["pin", "dev", "--drift", "sync"]);
    // The copy is made by the first run.
    for round in 0..20_u64 {
        // The same size within the same second, and every other time older than before.
        scene.here("main.c", &format!("{round:05}\n"));
        if round % 2 == 1 {
            let file = fs::File::options()
                .append(true)
                .open(scene.sandbox.project().join("main.c"));
            let old = SystemTime::now() - Duration::from_secs(100_000 + round);
            file.unwrap().set_modified(old).unwrap();
        }
        let command = format!("cat main.c; echo {round:05} >made; exit 7");
        let said = scene.run(&["run", "--", "sh", "-c", &command]);
        assert_eq!(
            said,
            format!("exit: 7\n----- stdout\n{round:05}\n----- stderr\n"),
            "round {round}"
        );
        assert_eq!(scene.is_here("made").unwrap(), format!("{round:05}\n"));
    }
}

#[test]
fn boxerys_own_lines_stand_before_the_commands_first_byte_and_after_its_last() {
    let scene = Scene::new("native");
    scene.run(&["pin", "dev", "--drift", "sync"]);
    scene.run(&["sync", "dev"]);
    scene.here("notes.txt", "mine\n");
    scene.there("notes.txt", "theirs\n");
    let command = "cat notes.txt; echo x >.envrc; echo err >&2; exit 3";
    insta::assert_snapshot!(scene.run(&["run", "--", "sh", "-c", command]), @r"
    exit: 3
    ----- stdout
    theirs
    ----- stderr
    boxery: not the same on dev and here: notes.txt (changed on both sides); `boxery sync dev` tells more
    err
    boxery: not the same on dev and here: .envrc (changed on dev; what would run or decide something here is never taken by itself); `boxery sync dev` tells more
    ");
    let output = scene
        .command(&["run", "--json", "--", "true"])
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["exit"], 0);
    assert_eq!(json["notes"].as_array().unwrap().len(), 1, "{json}");
    assert_eq!(scene.is_here(".envrc"), None);
}

#[test]
fn a_change_here_while_the_command_runs_is_told() {
    let scene = Scene::new("native");
    for (rule, back) in [("sync", true), ("warn", false)] {
        scene.run(&["sync", "dev"]);
        scene.run(&["pin", "dev", "--drift", rule]);
        let edit = format!(
            "echo while >{}/notes.txt",
            scene.sandbox.project().display()
        );
        let said = scene.run(&["run", "--", "sh", "-c", &edit]);
        assert_eq!(
            said,
            "exit: 0\n----- stdout\n----- stderr\nboxery: the project changed here while the command ran: notes.txt\n",
            "{rule}"
        );
        assert_eq!(
            scene.is_there("notes.txt").unwrap() == "while\n",
            back,
            "{rule}"
        );
        scene.here("notes.txt", "again\n");
    }
}

#[test]
fn a_sync_that_fails_never_loses_the_runs_own_status() {
    let scene = Scene::new("native");
    scene.run(&["pin", "dev", "--drift", "sync"]);
    scene.run(&["sync", "dev"]);
    let said = scene.run(&["run", "--", "sh", "-c", "rm .boxery-copy; exit 9"]);
    assert!(said.starts_with("exit: 9\n"), "{said}");
    assert!(
        said.contains("boxery: what the command wrote may not be here yet: "),
        "{said}"
    );
    let said = scene.run(&["run", "--", "sh", "-c", "exit 8"]);
    assert!(said.starts_with("exit: 8\n"), "{said}");
    assert!(
        said.contains("boxery: the copy on dev isn't up to date: "),
        "{said}"
    );
    scene.run(&["pin", "dev", "--drift", "deny"]);
    let said = scene.run(&["run", "--", "sh", "-c", "echo ran"]);
    assert!(
        said.starts_with("exit: 125\n----- stdout\n----- stderr\n"),
        "{said}"
    );
}

#[test]
fn a_job_has_every_edit_too() {
    let scene = Scene::new("native");
    scene.run(&["pin", "dev", "--redirect"]);
    scene.run(&["sync", "dev"]);
    scene.here("notes.txt", "for the job\n");
    let output = scene
        .command(&["jobs", "start", "--", "cat", "notes.txt"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let job = String::from_utf8(output.stdout).unwrap();
    let said = scene.run(&["jobs", "wait", job.trim()]);
    assert!(said.starts_with("exit: 0\n"), "{said}");
    assert_eq!(scene.is_there("notes.txt").unwrap(), "for the job\n");
    scene.run(&["pin", "dev", "--drift", "deny"]);
    scene.here("notes.txt", "newer\n");
    let said = scene.run(&["jobs", "start", "--", "true"]);
    assert!(said.starts_with("exit: 125\n"), "{said}");
}

#[test]
fn parallel_runs_of_one_project_take_turns() {
    let scene = Scene::new("native");
    scene.run(&["pin", "dev", "--drift", "sync"]);
    scene.run(&["sync", "dev"]);
    for number in 0..300 {
        scene.here(&format!("src/{number}"), &number.to_string());
    }
    let runs: Vec<_> = (0..6)
        .map(|number| {
            let command = format!("ls src | wc -l; echo {number} >made-{number}");
            let mut run = scene.command(&["run", "--", "sh", "-c", &command]);
            run.stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped());
            run.spawn().unwrap()
        })
        .collect();
    for run in runs {
        let output = run.wait_with_output().unwrap();
        let said = scene.sandbox.render(&output);
        assert!(
            output.status.success() && said.contains("\n300\n"),
            "{said}"
        );
        assert!(!said.contains("boxery: "), "{said}");
    }
    for number in 0..6 {
        assert_eq!(
            scene.is_here(&format!("made-{number}")).unwrap(),
            format!("{number}\n")
        );
    }
}

#[test]
fn make_builds_the_new_code_and_then_nothing() {
    let scene = Scene::new("native");
    scene.here(
        "Makefile",
        "app: main.c\n\tcc -o app main.c && echo built\n",
    );
    scene.here(".gitignore", "/app\n");
    scene.run(&["pin", "dev", "--drift", "sync"]);
    for status in 1..6 {
        scene.here(
            "main.c",
            &format!("int main(void) {{ return {status}; }}\n"),
        );
        let file = fs::File::options()
            .append(true)
            .open(scene.sandbox.project().join("main.c"));
        let old = SystemTime::now() - Duration::from_secs(1_000_000 - status);
        file.unwrap().set_modified(old).unwrap();
        let said = scene.run(&["run", "--", "sh", "-c", "make -s && ./app"]);
        assert!(
            said.starts_with(&format!("exit: {status}\n")) && said.contains("built"),
            "{said}"
        );
        let said = scene.run(&["run", "--", "make", "-s"]);
        assert!(!said.contains("built"), "{said}");
    }
    assert_eq!(scene.is_here("app"), None);
}
