//! Ports that appear here by themselves: told once, at a place that promise 6 allows,
//! here as long as the run listens there.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rstest::rstest;
use serde_json::{Value, json};

use crate::sshd::Vm;
use crate::support::Sandbox;

/// Answers each connection with `WORD` and what it got.
const SERVER: &str = "import socket,sys; s=socket.create_server((sys.argv[1],int(sys.argv[2])))
while True:
 c,_=s.accept(); c.sendall(sys.argv[3].encode()+c.recv(99)); c.close()";

/// A port that is free at this moment.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A session of an agent that speaks to its VMs.
struct Session<'a> {
    sandbox: &'a Sandbox,
    vm: &'a Vm,
    name: &'a str,
}

impl Session<'_> {
    fn boxery(&self, words: &[&str]) -> Command {
        let mut command = self.sandbox.boxery(words);
        command.env("SSH_AUTH_SOCK", self.vm.agent());
        if !self.name.is_empty() {
            command.env("CLAUDE_CODE_SESSION_ID", self.name);
        }
        command
    }

    fn run(&self, words: &[&str]) -> String {
        self.sandbox.render(&self.boxery(words).output().unwrap())
    }

    /// Start a job that serves `port` of `address`; its name, and what was said.
    fn serve(&self, vm: &str, address: &str, port: u16, word: &str) -> (String, String) {
        let port = port.to_string();
        let words = ["jobs", "start", vm, "--cwd", "/", "--", "python3", "-c"];
        let words = [&words[..], &[SERVER, address, &port, word]].concat();
        let output = self.boxery(&words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout).trim().to_owned(), text(output.stderr))
    }

    /// What `boxery run VM -- true` says.
    fn call(&self, vm: &str) -> String {
        let text = self.run(&["run", vm, "--cwd", "/", "--", "true"]);
        let said = text.strip_prefix("exit: 0\n----- stdout\n----- stderr\n");
        said.unwrap_or(&text).to_owned()
    }
}

/// What the daemon offers here.
fn offered(sandbox: &Sandbox) -> Vec<Value> {
    let output = sandbox
        .boxery(["daemon", "status", "--json"])
        .output()
        .unwrap();
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    status["ports"].as_array().cloned().unwrap_or_default()
}

fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::yield_now();
    }
}

/// Wait until that is all that is offered, and give it back.
fn wait_for(sandbox: &Sandbox, count: usize) -> Vec<Value> {
    eventually("so many offers", || {
        Some(offered(sandbox)).filter(|offers| offers.len() == count)
    })
}

/// The answer on a port of this machine, if any.
fn ask(port: u16, text: &str) -> Option<String> {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).ok()?;
    socket.write_all(text.as_bytes()).ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    Some(answer).filter(|answer| !answer.is_empty())
}

fn line(vm: &str, port: u16, local: u16) -> String {
    format!("boxery: port {port} of {vm} is 127.0.0.1:{local} on this laptop\n")
}

#[rstest]
fn a_jobs_port_is_here_as_long_as_it_listens(#[values("native", "system")] pipe: &str) {
    let sandbox = Sandbox::new();
    let vm = Vm::start_apart(&sandbox, "dev", pipe);
    let session = Session {
        sandbox: &sandbox,
        vm: &vm,
        name: "one",
    };
    let port = free_port();
    let (job, at_once) = session.serve("dev", "127.0.0.1", port, "hi ");
    let offers = wait_for(&sandbox, 1);
    let want = json!({"vm": "dev", "port": port, "local": port, "job": job});
    assert_eq!(offers, [want]);
    assert_eq!(ask(port, "you").as_deref(), Some("hi you"));
    // Told once: at once if it listened so soon, else by the next call.
    assert_eq!(at_once + &session.call("dev"), line("dev", port, port));
    assert_eq!(session.call("dev"), "");
    // The next call reaches it in the VM.
    let text = format!("exec 3<>/dev/tcp/localhost/{port}; echo me >&3; cat <&3");
    let inside = session.run(&["run", "dev", "--cwd", "/", "--", "bash", "-c", &text]);
    assert_eq!(inside, "exit: 0\n----- stdout\nhi me\n----- stderr\n");
    let list = session.run(&["jobs", "list", "dev"]);
    assert!(list.contains(&format!("runs   {port}")), "{list}");
    // The same port, when the link was cut and is back.
    vm.cut();
    let answer = eventually("an answer", || ask(port, "again"));
    assert_eq!(answer, "hi again");
    assert_eq!(wait_for(&sandbox, 1), offers);
    // The watch goes on after that, too.
    let stopped = session.run(&["jobs", "stop", &job, "dev"]);
    assert!(stopped.starts_with("exit: 0\n"), "{stopped}");
    wait_for(&sandbox, 0);
    assert_eq!(ask(port, "gone"), None);
    assert_eq!(session.call("dev"), "");
}

#[rstest]
fn two_sessions_on_one_number_get_two_ports_and_each_is_told_its_own(
    #[values("native", "system")] pipe: &str,
) {
    let sandbox = Sandbox::new();
    let one = Vm::start_apart(&sandbox, "one", pipe);
    let two = Vm::start_apart(&sandbox, "two", pipe);
    let (first, second) = (
        Session {
            sandbox: &sandbox,
            vm: &one,
            name: "first",
        },
        Session {
            sandbox: &sandbox,
            vm: &two,
            name: "second",
        },
    );
    let port = free_port();
    let (job_one, told_first) = first.serve("one", "0.0.0.0", port, "1:");
    wait_for(&sandbox, 1);
    let (job_two, told_second) = second.serve("two", "0.0.0.0", port, "2:");
    let offers = wait_for(&sandbox, 2);
    let local = offers[1]["local"]
        .as_u64()
        .and_then(|port| port.try_into().ok());
    let local: u16 = local.unwrap();
    assert_ne!(local, port);
    assert_eq!(ask(port, "a").as_deref(), Some("1:a"));
    assert_eq!(ask(local, "b").as_deref(), Some("2:b"));
    assert_eq!(told_first + &first.call("one"), line("one", port, port));
    assert_eq!(told_second + &second.call("two"), line("two", port, local));
    assert_eq!(first.call("one"), "");
    // In its VM each has the number that it asked for.
    let text = format!("exec 3<>/dev/tcp/localhost/{port}; echo me >&3; cat <&3");
    for (session, vm, want) in [(&first, "one", "1:me"), (&second, "two", "2:me")] {
        let inside = session.run(&["run", vm, "--cwd", "/", "--", "bash", "-c", &text]);
        let want = format!("exit: 0\n----- stdout\n{want}\n----- stderr\n");
        assert_eq!(inside, want);
    }
    // Both survive that the links are cut.
    one.cut();
    two.cut();
    for (local, want) in [(port, "1:again"), (local, "2:again")] {
        assert_eq!(eventually("an answer", || ask(local, "again")), want);
    }
    assert_eq!(wait_for(&sandbox, 2), offers);
    // Each goes with its listener alone.
    for (session, vm, job, left) in [
        (&first, "one", job_one, &offers[1..]),
        (&second, "two", job_two, &[]),
    ] {
        let stopped = session.run(&["jobs", "stop", &job, vm]);
        assert!(stopped.starts_with("exit: 0\n"), "{stopped}");
        assert_eq!(wait_for(&sandbox, left.len()), left);
    }
    assert_eq!((ask(port, "x"), ask(local, "x")), (None, None));
}

#[test]
fn a_taken_number_gives_the_next_one() {
    let sandbox = Sandbox::new();
    let vm = Vm::start(&sandbox, "");
    let session = Session {
        sandbox: &sandbox,
        vm: &vm,
        name: "one",
    };
    // This machine is the VM: the job itself has the number.
    let port = free_port();
    let (_, at_once) = session.serve("dev", "127.0.0.1", port, "");
    let offers = wait_for(&sandbox, 1);
    let local = offers[0]["local"]
        .as_u64()
        .and_then(|port| port.try_into().ok());
    let local: u16 = local.unwrap();
    assert_ne!(local, port);
    assert_eq!(ask(local, "x").as_deref(), Some("x"));
    assert_eq!(at_once + &session.call("dev"), line("dev", port, local));
}

#[test]
fn what_is_nobodys_run_is_not_offered() {
    let sandbox = Sandbox::new();
    let vm = Vm::start_apart(&sandbox, "dev", "native");
    let session = Session {
        sandbox: &sandbox,
        vm: &vm,
        name: "one",
    };
    let (port, foreign) = (free_port(), free_port());
    let mut server = vm
        .beside("python3")
        .args(["-c", SERVER, "127.0.0.1", &foreign.to_string(), "no"])
        .spawn()
        .unwrap();
    let text = format!("until true <>/dev/tcp/127.0.0.1/{foreign}; do :; done 2>&-");
    session.run(&["run", "dev", "--cwd", "/", "--", "bash", "-c", &text]);
    session.serve("dev", "127.0.0.1", port, "yes");
    let offers = wait_for(&sandbox, 1);
    assert_eq!(offers[0]["port"], port);
    server.kill().unwrap();
    server.wait().unwrap();
}

#[rstest]
#[case::off("\"off\"", false)]
#[case::another("[1]", false)]
#[case::listed("[PORT]", true)]
fn only_what_the_user_wants_is_offered(#[case] choice: &str, #[case] want: bool) {
    let sandbox = Sandbox::new();
    let vm = Vm::start_apart(&sandbox, "dev", "native");
    let port = free_port();
    let config = sandbox.home().join(".config/boxery/config.toml");
    let mut text = std::fs::read_to_string(&config).unwrap();
    text.push_str(&format!("ports = {choice}\n").replace("PORT", &port.to_string()));
    std::fs::write(&config, text).unwrap();
    let session = Session {
        sandbox: &sandbox,
        vm: &vm,
        name: "one",
    };
    session.serve("dev", "127.0.0.1", port, "");
    let shown = |word: &str| {
        let list = session.run(&["jobs", "list", "dev"]);
        list.contains(word).then_some(())
    };
    if want {
        wait_for(&sandbox, 1);
        eventually("the port in the list", || shown(&format!("runs   {port}")));
    } else {
        eventually("the port in the list", || shown(&format!("({port})")));
        assert_eq!(offered(&sandbox), Vec::<Value>::new());
        assert_eq!(session.call("dev"), "");
    }
}

#[test]
fn a_port_is_never_told_between_the_commands_own_bytes() {
    let sandbox = Sandbox::new();
    let vm = Vm::start_apart(&sandbox, "dev", "native");
    let session = Session {
        sandbox: &sandbox,
        vm: &vm,
        name: "one",
    };
    let (port, go) = (free_port(), sandbox.home().join("go"));
    let text = format!(
        "echo first >&2; python3 -c \"$1\" 127.0.0.1 {port} '' 2>&- & \
         until [ -e {} ]; do sleep 0.01; done; echo last >&2",
        go.display()
    );
    let words = ["run", "dev", "--cwd", "/", "--", "bash", "-c", &text];
    let child = session
        .boxery(&[&words[..], &["bash", SERVER]].concat())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(&sandbox, 1);
    std::fs::write(&go, "").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, format!("first\nlast\n{}", line("dev", port, port)));
    assert_eq!(session.call("dev"), "");
}

#[rstest]
#[case::with_a_daemon(true)]
#[case::without_one(false)]
fn a_silent_command_has_its_port_told_at_once(#[case] with_daemon: bool) {
    let sandbox = Sandbox::new();
    let vm = Vm::start_apart(&sandbox, "dev", "native");
    let state = sandbox.home().join(".local/state/boxery");
    if !with_daemon {
        std::fs::create_dir_all(&state).unwrap();
        std::fs::write(state.join("daemon"), "").unwrap();
    }
    let session = Session {
        sandbox: &sandbox,
        vm: &vm,
        name: "",
    };
    let port = free_port();
    let number = port.to_string();
    let words = ["run", "dev", "--cwd", "/", "--", "python3", "-c", SERVER];
    let mut child = session
        .boxery(&[&words[..], &["127.0.0.1", &number, "hi "]].concat())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut said).unwrap();
    assert_eq!(said, line("dev", port, port));
    assert_eq!(ask(port, "you").as_deref(), Some("hi you"));
    vm.cut();
    let answer = eventually("an answer", || ask(port, "again"));
    assert_eq!(answer, "hi again");
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("its end", || ask(port, "").is_none().then_some(()));
    assert_eq!(Path::new(&state.join("daemon/s")).exists(), with_daemon);
}
