//! How a run ends when its client is told to, or just dies.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rstest::rstest;
use rustix::process::{Pid, Signal, kill_process};

use crate::guardian::without_daemon;
use crate::sshd::Vm;
use crate::support::Sandbox;

/// A sandbox and what must outlive the test's runs.
struct Place {
    sandbox: Sandbox,
    vm: Option<Vm>,
}

impl Place {
    /// `kind`: the embedded VM, or a real server over one of the pipes; `alone` behind
    /// it has no daemon start.
    fn new(kind: &str) -> Self {
        let sandbox = Sandbox::new();
        let alone = kind.strip_suffix(" alone");
        if alone.is_some() {
            without_daemon(&sandbox);
        }
        let kind = alone.unwrap_or(kind);
        let vm = if kind == "embedded" {
            sandbox.configure("[vm.dev]\ntarget = \"embedded\"\ndir = \"/root\"\n");
            None
        } else {
            Some(Vm::start_over(&sandbox, "", kind))
        };
        Self { sandbox, vm }
    }

    /// Start a run that says `ready` and then lives on.
    fn start(&self, text: &str, piped: bool) -> Child {
        let mut command = self
            .sandbox
            .boxery(["run", "dev", "--cwd", "/", "--", "bash", "-c"]);
        if let Some(vm) = &self.vm {
            command.env("SSH_AUTH_SOCK", vm.agent());
        }
        command
            .arg(text)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if piped {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        child.stdout = Some(stdout.into_inner());
        child
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.vm.is_none() {
            // The server looks for its folder and ends when it is gone.
            drop(std::fs::remove_dir_all(
                self.sandbox.home().join(".local/state/boxery/embedded"),
            ));
        }
    }
}

/// A number of seconds that nobody else sleeps.
pub(crate) fn token(case: u32) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("80{}.{case}{number:03}", std::process::id())
}

/// Processes with `token` as an argument, in whichever namespace.
pub(crate) fn running(token: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0)
                .any(|word| word == token.as_bytes())
        })
        .count()
}

fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let start = Instant::now();
    while !check() {
        assert!(start.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::yield_now();
    }
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[rstest]
#[case::interrupt(1, Signal::INT, Some(130))]
#[case::terminate(2, Signal::TERM, Some(143))]
#[case::kill(3, Signal::KILL, None)]
fn a_client_that_is_ended_takes_the_whole_tree_along(
    #[values(
        "embedded",
        "embedded alone",
        "native",
        "native alone",
        "system",
        "system alone"
    )]
    kind: &str,
    #[case] case: u32,
    #[case] signal: Signal,
    #[case] code: Option<i32>,
) {
    let place = Place::new(kind);
    let token = token(case);
    let text = format!(
        "sleep {token} & (setsid sleep {token} &) ; (env -i sleep {token} &) ; \
         until [ $(grep -lzxf - /proc/[0-9]*/cmdline 2>/dev/null <<<{token} | wc -l) -ge 3 ]; do :; done; \
         echo ready; wait"
    );
    let mut child = place.start(&text, false);
    assert_eq!(running(&token), 3);
    send(&child, signal);
    assert_eq!(child.wait().unwrap().code(), code);
    if code.is_some() {
        assert_eq!(running(&token), 0, "left when the client had ended");
    }
    eventually("nothing is left", || running(&token) == 0);
}

#[rstest]
fn a_client_that_is_killed_while_its_command_does_not_read_leaves_nothing(
    #[values(
        "embedded",
        "embedded alone",
        "native",
        "native alone",
        "system",
        "system alone"
    )]
    kind: &str,
) {
    let place = Place::new(kind);
    let token = token(9);
    let mut child = place.start(&format!("echo ready; sleep {token}; :"), true);
    let mut stdin = child.stdin.take().unwrap();
    let filling = std::thread::spawn(move || {
        let chunk = vec![b'x'; 1 << 20];
        // Ends with the client, whose end of the pipe closes.
        while stdin.write_all(&chunk).is_ok() {}
    });
    eventually("the command sleeps", || running(&token) == 1);
    send(&child, Signal::KILL);
    child.wait().unwrap();
    filling.join().unwrap();
    eventually("nothing is left", || running(&token) == 0);
}

#[rstest]
fn a_command_that_ends_does_not_wait_for_more_input(
    #[values("embedded", "native", "system")] kind: &str,
) {
    let place = Place::new(kind);
    let mut child = place.start("echo ready; exit 3", true);
    // The pipe into the client stays open all the time.
    let stdin = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    drop(stdin);
}

#[rstest]
fn piped_input_reaches_the_command_and_its_end_too(
    #[values("embedded", "native", "system")] kind: &str,
) {
    let place = Place::new(kind);
    let mut child = place.start(
        "echo ready; read -r line; echo \"<$line>\" >&2; wc -c",
        true,
    );
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"first line\n").unwrap();
    stdin.write_all(&vec![0; 3_000_000]).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "3000000");
    assert!(output.status.success());
}

#[rstest]
fn a_reader_that_has_enough_ends_the_run(#[values("embedded", "native", "system")] kind: &str) {
    let place = Place::new(kind);
    let token = token(7);
    let text = format!("echo ready; sleep {token} & yes");
    let mut child = place.start(&text, false);
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(141));
    eventually("nothing is left", || running(&token) == 0);
}
