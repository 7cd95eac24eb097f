//! The daemon: it comes by itself, keeps one connection, and nothing depends on it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rstest::rstest;
use rustix::process::{Pid, Signal, getsid, kill_process};
use serde_json::Value;

use crate::guardian::without_daemon;
use crate::sshd::Vm;
use crate::support::{BOXERY, Sandbox};

pub(crate) fn boxery(sandbox: &Sandbox, vm: &Vm, words: &[&str]) -> Command {
    let mut command = sandbox.boxery(words);
    command.env("SSH_AUTH_SOCK", vm.agent());
    command
}

pub(crate) fn run(sandbox: &Sandbox, vm: &Vm, text: &str) -> String {
    let words = ["run", "dev", "--cwd", "/", "--", "bash", "-c", text];
    sandbox.render(&boxery(sandbox, vm, &words).output().unwrap())
}

fn status(sandbox: &Sandbox) -> Value {
    let output = sandbox
        .boxery(["daemon", "status", "--json"])
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn pid(sandbox: &Sandbox) -> u32 {
    u32::try_from(status(sandbox)["pid"].as_u64().unwrap()).unwrap()
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

pub(crate) fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let start = Instant::now();
    while !check() {
        assert!(start.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::yield_now();
    }
}

const HI: &str = "exit: 0\n----- stdout\nhi\n----- stderr\n";

#[rstest]
fn the_first_command_starts_it_and_the_next_one_uses_its_connection(
    #[values("native", "system")] pipe: &str,
) {
    let sandbox = Sandbox::new();
    let vm = Vm::start_over(&sandbox, "", pipe);
    assert_eq!(status(&sandbox), Value::Null);
    assert!(sandbox.run(&["daemon", "status"]).starts_with("exit: 1\n"));
    assert_eq!(run(&sandbox, &vm, "echo hi"), HI);
    let first = status(&sandbox);
    // Away from the terminal of whoever started it.
    let daemon = Pid::from_raw(i32::try_from(pid(&sandbox)).unwrap()).unwrap();
    assert_eq!(getsid(Some(daemon)).unwrap(), daemon);
    assert_eq!(run(&sandbox, &vm, "echo hi"), HI);
    let second = status(&sandbox);
    assert_eq!(first["pid"], second["pid"]);
    let connections = second["connections"].as_array().unwrap();
    assert_eq!(connections.len(), 1, "{second}");
    assert_eq!(
        (&connections[0]["vm"], &connections[0]["pipe"]),
        (&"dev".into(), &pipe.into())
    );
    // Over the system pipe the helper is looked for, sent and started by a connection each.
    let opened = if pipe == "system" { 3 } else { 1 };
    assert_eq!(vm.connections(), opened);
    assert!(sandbox.run(&["daemon", "stop"]).starts_with("exit: 0\n"));
    assert_eq!(status(&sandbox), Value::Null);
    assert_eq!(run(&sandbox, &vm, "echo hi"), HI);
}

/// Start a run that counts, and give it back once it has begun.
pub(crate) fn counting(
    sandbox: &Sandbox,
    vm: &Vm,
) -> (Child, BufReader<std::process::ChildStdout>) {
    let text = "for i in $(seq 1 400); do echo $i; sleep 0.005; done; echo done >&2; exit 3";
    let words = ["run", "dev", "--cwd", "/", "--", "bash", "-c", text];
    let mut child = boxery(sandbox, vm, &words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "1\n");
    (child, stdout)
}

/// How the counting run ended: everything there, and what boxery said.
pub(crate) fn counted(
    mut child: Child,
    mut stdout: BufReader<std::process::ChildStdout>,
) -> String {
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    let numbers: Vec<u32> = rest.lines().map(|line| line.parse().unwrap()).collect();
    assert!(numbers.iter().copied().eq(2..=400), "{rest}");
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3), "{stderr}");
    stderr
}

#[rstest]
#[case::daemon("daemon")]
#[case::connection("connection")]
#[case::stopped("stopped")]
fn a_run_goes_on_when_what_carries_it_is_killed(
    #[values("native", "system")] pipe: &str,
    #[case] victim: &str,
) {
    let sandbox = Sandbox::new();
    let vm = Vm::start_over(&sandbox, "", pipe);
    assert_eq!(run(&sandbox, &vm, "echo hi"), HI);
    let (child, stdout) = counting(&sandbox, &vm);
    match victim {
        "daemon" => kill(pid(&sandbox)),
        "connection" => vm.cut(),
        _ => assert!(sandbox.run(&["daemon", "stop"]).starts_with("exit: 0\n")),
    }
    let said = counted(child, stdout);
    assert_eq!(
        said,
        "done\nboxery: the connection to dev broke while the command ran; it went on, and nothing of its output is missing\n"
    );
}

#[rstest]
fn a_run_waits_no_longer_than_the_user_says(#[values("native", "system")] pipe: &str) {
    let sandbox = Sandbox::new();
    sandbox.configure("grace = \"0s\"\n");
    let vm = Vm::start_over(&sandbox, "", pipe);
    assert_eq!(run(&sandbox, &vm, "echo hi"), HI);
    let (child, _stdout) = counting(&sandbox, &vm);
    vm.cut();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    assert!(stderr.contains("look on the VM"), "{stderr}");
}

#[test]
fn without_one_commands_run_all_the_same() {
    let sandbox = Sandbox::new();
    let vm = Vm::start(&sandbox, "");
    without_daemon(&sandbox);
    assert_eq!(run(&sandbox, &vm, "echo hi"), HI);
}

#[test]
fn a_state_folder_with_a_long_path_has_one_too() {
    let sandbox = Sandbox::new();
    let vm = Vm::start(&sandbox, "");
    let state = sandbox.home().join("long".repeat(40));
    let long = |words: &[&str]| {
        let output = boxery(&sandbox, &vm, words)
            .env("XDG_STATE_HOME", &state)
            .output();
        sandbox.render(&output.unwrap())
    };
    assert_eq!(long(&["run", "dev", "--cwd", "/", "--", "echo", "hi"]), HI);
    assert!(long(&["daemon", "status"]).contains("native"));
    assert!(long(&["daemon", "stop"]).starts_with("exit: 0\n"));
}

#[test]
fn a_newer_build_takes_over_and_old_runs_end_well() {
    let sandbox = Sandbox::new();
    let vm = Vm::start(&sandbox, "");
    assert_eq!(run(&sandbox, &vm, "echo hi"), HI);
    let old = pid(&sandbox);
    let (child, stdout) = counting(&sandbox, &vm);
    let newer = sandbox.home().join("newer");
    std::fs::copy(BOXERY, &newer).unwrap();
    std::fs::set_permissions(&newer, std::fs::Permissions::from_mode(0o755)).unwrap();
    let with = |words: &[&str]| {
        let output = sandbox.command(&newer).args(words).output().unwrap();
        sandbox.render(&output)
    };
    assert_eq!(with(&["run", "dev", "--cwd", "/", "--", "echo", "hi"]), HI);
    let new = pid(&sandbox);
    assert_ne!(old, new);
    // The old build still works, by itself, and leaves the new daemon alone.
    assert_eq!(run(&sandbox, &vm, "echo hi"), HI);
    assert_eq!(pid(&sandbox), new);
    assert_eq!(counted(child, stdout), "done\n");
    let gone = || !std::path::Path::new(&format!("/proc/{old}/exe")).exists();
    eventually("the old daemon ends once its runs have", gone);
}

#[test]
fn it_ends_when_nobody_comes_and_when_its_socket_is_gone() {
    let sandbox = Sandbox::new();
    for idle in ["1ms", "1h"] {
        let mut daemon = sandbox
            .boxery(["daemon", "serve", "--idle", idle])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(daemon.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        if idle == "1h" {
            std::fs::remove_file(sandbox.home().join(".local/state/boxery/daemon/s")).unwrap();
        }
        assert!(daemon.wait().unwrap().success());
    }
}

#[test]
fn a_vm_that_can_not_be_reached_is_said_as_without_it() {
    let sandbox = Sandbox::new();
    let vm = Vm::start(&sandbox, "");
    std::fs::remove_file(sandbox.home().join(".ssh/id_ed25519")).unwrap();
    let text = run(&sandbox, &vm, "echo hi");
    assert!(text.starts_with("exit: 125\n"), "{text}");
    assert!(text.contains("boxery: "), "{text}");
    assert!(text.contains("takes none of the keys"), "{text}");
}

#[rstest]
fn who_waits_for_a_connection_that_fails_fails_with_it(#[values("native", "system")] pipe: &str) {
    let sandbox = Sandbox::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    sandbox.configure(&format!(
        "[vm.dev]\ntarget = \"me@127.0.0.1:{port}\"\ndir = \"/vm\"\npipe = \"{pipe}\"\n"
    ));
    let start = || {
        let mut client = sandbox.boxery(["run", "dev", "--cwd", "/", "--", "true"]);
        client.stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut clients = vec![start()];
    // A server that takes the connection and says nothing.
    let (silent, _) = server.accept().unwrap();
    clients.extend((0..5).map(|_| start()));
    eventually("all of them wait", || status(&sandbox)["clients"] == 6);
    drop(silent);
    for client in clients {
        let output = client.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("SSH to 127.0.0.1"), "{said}");
    }
    server.set_nonblocking(true).unwrap();
    let more = server.accept().unwrap_err();
    assert_eq!(more.kind(), std::io::ErrorKind::WouldBlock);
    // One that is being opened doesn't keep the daemon.
    server.set_nonblocking(false).unwrap();
    let mut client = start();
    let (_silent, _) = server.accept().unwrap();
    assert!(sandbox.run(&["daemon", "stop"]).starts_with("exit: 0\n"));
    client.kill().unwrap();
    client.wait().unwrap();
}
