//! A client where there is no daemon: its guardian has the connection.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rstest::rstest;
use rustix::process::{Pid, Signal, getsid, kill_process, kill_process_group};

use crate::daemon::{boxery, counted, counting, eventually, run};
use crate::ending::{running, token};
use crate::sshd::Vm;
use crate::support::{BOXERY, Sandbox};

/// Have no daemon start for this user.
pub(crate) fn without_daemon(sandbox: &Sandbox) {
    let state = sandbox.home().join(".local/state/boxery");
    std::fs::create_dir_all(&state).unwrap();
    // Where its folder belongs there is a file.
    std::fs::write(state.join("daemon"), "").unwrap();
}

fn start(pipe: &str) -> (Sandbox, Vm) {
    let sandbox = Sandbox::new();
    without_daemon(&sandbox);
    let vm = Vm::start_over(&sandbox, "", pipe);
    (sandbox, vm)
}

/// The guardians of this sandbox's clients.
fn guardians(sandbox: &Sandbox) -> Vec<Pid> {
    let home = format!("HOME={}", sandbox.home().display()).into_bytes();
    let words = [BOXERY, "daemon", "guard", ""].join("\0").into_bytes();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| std::fs::read(entry.path().join("cmdline")).is_ok_and(|it| it == words))
        .filter(|entry| {
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|it| it == home)
        })
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// A run that says `ready`, does `then` and lives on, in a process group of its own.
fn living(sandbox: &Sandbox, vm: &Vm, token: &str, then: &str) -> (Child, BufReader<ChildStdout>) {
    let text = format!("sleep {token} & (setsid sleep {token} &); echo ready; {then}wait");
    let words = ["run", "dev", "--cwd", "/", "--", "bash", "-c", &text];
    let mut child = boxery(sandbox, vm, &words)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    (child, stdout)
}

#[rstest]
fn a_client_that_is_killed_with_its_group_takes_the_whole_tree_along_at_once(
    #[values("native", "system")] pipe: &str,
) {
    let (sandbox, vm) = start(pipe);
    let token = token(40);
    let (mut child, _stdout) = living(&sandbox, &vm, &token, "");
    let group = Pid::from_child(&child);
    let [guardian] = guardians(&sandbox)[..] else {
        panic!("{:?}", guardians(&sandbox));
    };
    assert_eq!(getsid(Some(guardian)).unwrap(), guardian);
    eventually("both sleep", || running(&token) == 2);
    let start = Instant::now();
    kill_process_group(group, Signal::KILL).unwrap();
    child.wait().unwrap();
    eventually("nothing is left", || running(&token) == 0);
    let took = start.elapsed();
    assert!(took < Duration::from_secs(8), "not at once: {took:?}");
    eventually("the guardian ends", || guardians(&sandbox).is_empty());
}

#[rstest]
#[case::connection("connection")]
#[case::guardian("guardian")]
fn a_run_goes_on_when_what_carries_it_breaks(
    #[values("native", "system")] pipe: &str,
    #[case] victim: &str,
) {
    let (sandbox, vm) = start(pipe);
    let (child, stdout) = counting(&sandbox, &vm);
    match victim {
        "connection" => vm.cut(),
        _ => {
            for guardian in guardians(&sandbox) {
                kill_process(guardian, Signal::KILL).unwrap();
            }
        }
    }
    assert_eq!(
        counted(child, stdout),
        "done\nboxery: the connection to dev broke while the command ran; it went on, and nothing of its output is missing\n"
    );
    eventually("the guardian ends", || guardians(&sandbox).is_empty());
}

#[rstest]
fn a_client_that_is_killed_after_its_link_was_cut_and_came_back_leaves_nothing(
    #[values("native", "system")] pipe: &str,
) {
    let (sandbox, vm) = start(pipe);
    let token = token(41);
    let file = sandbox.home().join("back");
    let (mut child, mut stdout) = living(
        &sandbox,
        &vm,
        &token,
        &format!(
            "until [ -e {} ]; do sleep 0.05; done; echo again; ",
            file.display()
        ),
    );
    vm.cut();
    std::fs::write(file, "").unwrap();
    // It has come back when this is here.
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "again\n");
    eventually("both sleep", || running(&token) == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("nothing is left", || running(&token) == 0);
}

#[rstest]
fn what_the_way_lacks_is_said_as_with_a_daemon(#[values("native", "system")] pipe: &str) {
    let (sandbox, vm) = start(pipe);
    assert!(run(&sandbox, &vm, "exit 7").starts_with("exit: 7\n"));
    vm.change_key();
    let text = run(&sandbox, &vm, "echo hi");
    assert!(text.starts_with("exit: 125\n"), "{text}");
    assert!(text.contains("vm renew"), "{text}");
}
