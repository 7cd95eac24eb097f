//! `boxery demo` and `boxery hook prove`, with agents that obey and that don't.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rstest::rstest;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{BOXERY, Sandbox};

/// A folder for the binary's temporary files.
fn temporary(sandbox: &Sandbox) -> PathBuf {
    let folder = sandbox.home().parent().unwrap().join("tmp");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The processes that still have to do with `folder`.
fn processes_of(folder: &Path) -> Vec<String> {
    let wanted = folder.to_str().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(line) = fs::read(entry.path().join("cmdline")) else {
            continue;
        };
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(wanted) {
            found.push(line);
        }
    }
    found
}

/// Nothing in the home, nothing in the folder for temporary files, nobody running.
fn assert_nothing_is_left(sandbox: &Sandbox, temporary: &Path) {
    let left: Vec<_> = fs::read_dir(temporary)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(left, Vec::<PathBuf>::new());
    assert_eq!(fs::read_dir(sandbox.home()).unwrap().count(), 0);
    assert_eq!(fs::read_dir(sandbox.project()).unwrap().count(), 0);
    assert_eq!(processes_of(temporary), Vec::<String>::new());
}

#[test]
fn the_demo_shows_all_it_promises_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    let temporary = temporary(&sandbox);
    let output = sandbox
        .boxery(["demo"])
        .env("TMPDIR", &temporary)
        .output()
        .unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{stdout}{stderr}");
    for promised in [
        "ok the hook: exit 0, no output",
        "deny: this session is pinned to VM demo; run it with vm_bash, or vm_jobs",
        "8 calls denied in guard, 8 run in a VM in redirect, none here",
        "boxery run demo --cwd ",
        "HELLO FROM THE PROJECT",
        "it's \"done\"; & that is all",
        "ok `made-by-the-agent.txt` is in the VM",
        "ok `made-by-the-agent.txt` is not on this machine",
        "ok its ticket was taken; the hook after the call raises no alarm",
        "boxery: the copy on demo isn't the same as the project: greeting.txt",
        "> M greeting.txt",
        "Everything held, and nothing is left.",
    ] {
        assert!(
            stdout.contains(promised),
            "{promised:?} is missing in: {stdout}"
        );
    }
    assert_eq!(stderr, "");
    assert_nothing_is_left(&sandbox, &temporary);
}

/// At whatever step it is asked to end.
#[rstest]
#[case::before_the_vm("A sample project", Signal::INT, 130)]
#[case::in_guard("Pinned, in guard", Signal::TERM, 143)]
#[case::during_the_proof("Redirect needs a proof", Signal::INT, 130)]
#[case::in_redirect("Pinned, in redirect", Signal::HUP, 129)]
fn an_interrupted_demo_leaves_nothing(
    #[case] step: &str,
    #[case] signal: Signal,
    #[case] exit: i32,
) {
    let sandbox = Sandbox::new();
    let temporary = temporary(&sandbox);
    let mut child = sandbox
        .boxery(["demo"])
        .env("TMPDIR", &temporary)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with(step)));
    kill_process(Pid::from_child(&child), signal).unwrap();
    lines.for_each(drop);
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    let status = child.wait().unwrap();
    assert_eq!(
        (status.code(), status.signal()),
        (Some(exit), None),
        "{said}"
    );
    assert_eq!(said, "error: interrupted; everything is removed\n");
    assert_nothing_is_left(&sandbox, &temporary);
}

/// An agent whose program is a shell script; `before` stands before the demo's agent.
fn agent(sandbox: &Sandbox, before: &str) -> String {
    let path = sandbox.home().join("agent");
    let script = format!("#!/bin/sh\n{before}\nexec {BOXERY} demo-agent \"$@\"\n");
    std::io::Write::write_all(&mut fs::File::create(&path).unwrap(), script.as_bytes()).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The report of a proof and its exit status.
fn prove(sandbox: &Sandbox, program: &str) -> (Value, Option<i32>) {
    let arguments = [
        "hook",
        "prove",
        "claude-code",
        "--json",
        "--executable",
        program,
    ];
    let output = sandbox
        .boxery(arguments)
        .env("TMPDIR", temporary(sandbox))
        .output()
        .unwrap();
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (report, output.status.code())
}

fn proofs(sandbox: &Sandbox) -> usize {
    fs::read_dir(sandbox.home().join(".local/state/boxery/proofs")).map_or(0, Iterator::count)
}

#[test]
fn an_agent_that_obeys_is_proven_as_the_program_that_calls_the_hook() {
    let sandbox = Sandbox::new();
    let program = agent(&sandbox, ":");
    let (report, exit) = prove(&sandbox, &program);
    assert_eq!(exit, Some(0), "{report:#}");
    assert_eq!(
        report["proven"],
        serde_json::json!(["default", "bypassPermissions"])
    );
    let binary = Path::new(BOXERY).canonicalize().unwrap();
    assert_eq!(report["executable"], serde_json::json!(binary));
    assert_eq!(report["checks"].as_array().unwrap().len(), 16);
    assert_eq!(proofs(&sandbox), 2);
    assert_eq!(fs::read_dir(temporary(&sandbox)).unwrap().count(), 0);
}

#[rstest]
// It has no hooks: everything runs here.
#[case::without_hooks(
    r#"mkdir -p none; export CLAUDE_CONFIG_DIR=$PWD/none
    echo '{"permissions": {"allow": ["Bash", "Monitor"]}}' >none/settings.json"#,
    "it ran on this machine"
)]
// It obeys denials and drops rewrites, as agents have done.
#[case::drops_rewrites(
    r#"mkdir -p bin; export PATH=$PWD/bin:$PATH
    printf '#!/bin/bash\nexec /bin/sh "$@" > >(sed s,updatedInput,ignored,)\n' >bin/sh; chmod +x bin/sh"#,
    "it ran on this machine"
)]
// It never calls its tools.
#[case::silent("exec true", "")]
fn an_agent_that_does_not_obey_is_not_proven(#[case] before: &str, #[case] problem: &str) {
    let sandbox = Sandbox::new();
    let program = agent(&sandbox, before);
    if problem.is_empty() {
        let said = sandbox.run(&["hook", "prove", "--executable", &program]);
        assert!(
            said.starts_with("exit: 125") && said.contains("it asked its model nothing"),
            "{said}"
        );
    } else {
        let (report, exit) = prove(&sandbox, &program);
        assert_eq!(exit, Some(1), "{report:#}");
        assert_eq!(report["proven"], serde_json::json!([]));
        let checks = report["checks"].as_array().unwrap();
        let mut redirected = checks.iter().filter(|check| check["mode"] == "redirect");
        assert!(
            redirected.clone().all(|check| check["ok"] == false),
            "{report:#}"
        );
        // After the first, the tripwire takes the rest of the session back to guard.
        assert!(
            redirected.any(|check| check["problem"] == problem),
            "{report:#}"
        );
    }
    assert_eq!(proofs(&sandbox), 0);
}

#[test]
fn an_agent_that_is_not_there_cannot_be_judged() {
    let sandbox = Sandbox::new();
    let said = sandbox.run(&["hook", "prove", "--executable", "/nonexistent/claude"]);
    assert!(said.starts_with("exit: 2\n"), "{said}");
    let said = sandbox.run(&["hook", "prove"]);
    assert!(
        said.starts_with("exit: 2\n") && said.contains("`claude` is not on PATH"),
        "{said}"
    );
}
