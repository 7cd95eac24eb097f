//! Jobs and ports, on the VM of this machine.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use crate::support::Sandbox;

/// A sandbox with the VM `dev` on this machine, which ends when its folder goes.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.configure("[vm.dev]\ntarget = \"embedded\"\ndir = \"/root\"\n");
    sandbox
}

/// Start a job and give its name back.
fn start(sandbox: &Sandbox, text: &str) -> String {
    let words = [
        "jobs", "start", "dev", "--cwd", "/", "--", "bash", "-c", text,
    ];
    let output = sandbox.boxery(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let job = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    assert_eq!(job.len(), 32, "{job}");
    job
}

#[test]
fn a_job_outlives_its_caller_and_keeps_output_and_status() {
    let sandbox = sandbox();
    let job = start(
        &sandbox,
        "echo out; echo err >&2; sleep 0.3; echo more; exit 5",
    );
    let short = &job[..8];
    assert!(sandbox.run(&["daemon", "stop"]).starts_with("exit: 0\n"));
    let want = "exit: 0\n----- stdout\nout\nmore\n----- stderr\nerr\n";
    assert_eq!(sandbox.run(&["jobs", "tail", "-f", short, "dev"]), want);
    assert_eq!(sandbox.run(&["jobs", "tail", short, "dev"]), want);
    assert!(
        sandbox
            .run(&["jobs", "wait", &job, "dev"])
            .starts_with("exit: 5\n")
    );
    let end = serde_json::json!({
        "vm": "dev", "job": job, "ended": true, "exit": 5, "state": "ended with 5",
    });
    let mut whole = end.clone();
    for (name, value) in [("stdout", "out\nmore\n"), ("stderr", "err\n")] {
        whole[name] = value.into();
    }
    whole["skipped_bytes"] = 0.into();
    for (verb, code, want) in [("wait", 5, &end), ("tail", 0, &whole)] {
        let told = sandbox.boxery(["jobs", verb, short, "dev", "--json"]);
        let told = { told }.output().unwrap();
        assert_eq!(told.status.code(), Some(code));
        let said: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
        assert_eq!(said, *want);
    }
    let list = sandbox.run(&["jobs", "list", "dev"]);
    assert!(list.contains(&format!("{short}  ended with 5")), "{list}");
    let unknown = sandbox.run(&["jobs", "wait", "0000", "dev"]);
    assert!(unknown.starts_with("exit: 125\n"), "{unknown}");
}

#[test]
fn a_job_is_stopped_with_all_of_its_processes() {
    let sandbox = sandbox();
    let job = start(
        &sandbox,
        "(setsid sleep 1000 &) ; trap '' TERM; sleep 1000; sleep 1000",
    );
    let stopped = sandbox.run(&["jobs", "stop", &job[..8], "dev"]);
    assert_eq!(stopped, "exit: 0\n----- stdout\n----- stderr\nstopped\n");
    assert!(
        sandbox
            .run(&["jobs", "wait", &job, "dev"])
            .starts_with("exit: 143\n")
    );
}

#[test]
fn what_a_run_leaves_in_the_background_is_a_listed_job() {
    let sandbox = sandbox();
    let words = [
        "run",
        "dev",
        "--cwd",
        "/",
        "--",
        "bash",
        "-c",
        "(sleep 1000 &) ; echo hi",
    ];
    let ran = sandbox.run(&words);
    assert!(ran.starts_with("exit: 0\n----- stdout\nhi\n"), "{ran}");
    let list = sandbox.run(&["jobs", "list", "dev"]);
    assert!(list.contains("runs on in the background"), "{list}");
    let job = list
        .lines()
        .find(|line| line.contains("background"))
        .unwrap();
    let stopped = sandbox.run(&["jobs", "stop", &job[..8], "dev"]);
    assert!(stopped.starts_with("exit: 0\n"), "{stopped}");
}

#[test]
fn a_port_of_the_vm_answers_on_the_laptop() {
    let sandbox = sandbox();
    let serve = "import socket; s=socket.create_server(('127.0.0.1',0)); \
                 print(s.getsockname()[1],flush=True)\n\
                 while True:\n c,_=s.accept(); c.sendall(b'<'+c.recv(99)+b'>'); c.close()";
    let mut server = sandbox
        .boxery(["run", "dev", "--cwd", "/", "--", "python3", "-c", serve])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut port)
        .unwrap();
    let port = port.trim();
    let mut forward = sandbox
        .boxery(["forward", "dev", port])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut stderr = BufReader::new(forward.stderr.take().unwrap());
    stderr.read_line(&mut said).unwrap();
    let local = said.split([':', ' ']).nth(1).unwrap();
    for round in 0..3 {
        // Its daemon goes, and the next connection finds another one.
        if round == 1 {
            assert!(sandbox.run(&["daemon", "stop"]).starts_with("exit: 0\n"));
        }
        let mut socket = TcpStream::connect(format!("127.0.0.1:{local}")).unwrap();
        write!(socket, "{round}").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, format!("<{round}>"));
    }
    for mut child in [forward, server] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
