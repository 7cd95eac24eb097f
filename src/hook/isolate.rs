//! The work in a process of its own, for machines on which a file may never answer.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Instant;

use boxery_agents::Reply;
use boxery_pin::ProcessId;

use super::arguments::INNER;

/// What the inner process said.
struct Said {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    exit: Option<i32>,
}

/// Hand `payload` to a second process of this binary and pass its reply on;
/// `None` when it fails, or hasn't ended by `deadline`. It is killed then, and
/// not waited for: a process in an uninterruptible sleep doesn't end.
pub(crate) fn reply_of_inner(agent: &str, payload: &[u8], deadline: Instant) -> Option<Reply> {
    let mut command = Command::new("/proc/self/exe");
    command.args(["hook", "run", INNER, agent]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let process = ProcessId::of(child.id());
    let mut stdin = child.stdin.take()?;
    let mut stdout = child.stdout.take()?;
    let mut stderr = child.stderr.take()?;
    let payload = payload.to_vec();
    let (sender, receiver) = mpsc::channel();
    let feeder = std::thread::Builder::new().spawn(move || {
        // A process that doesn't read has ended or hangs; either shows below.
        stdin.write_all(&payload).ok();
    });
    let reader = std::thread::Builder::new().spawn(move || {
        let mut said = Said {
            stdout: Vec::new(),
            stderr: Vec::new(),
            exit: None,
        };
        let read = stdout
            .read_to_end(&mut said.stdout)
            .and_then(|_| stderr.read_to_end(&mut said.stderr))
            .and_then(|_| child.wait());
        said.exit = read.ok().and_then(|status| status.code());
        sender.send(said).ok();
    });
    let started = feeder.is_ok() && reader.is_ok();
    let left = deadline.saturating_duration_since(Instant::now());
    let said = receiver.recv_timeout(left).ok().filter(|_| started);
    let Some(said) = said else {
        kill(process);
        return None;
    };
    let exit = said.exit.and_then(|status| u8::try_from(status).ok())?;
    matches!(exit, 0 | 2).then_some(())?;
    Some(Reply {
        stdout: String::from_utf8(said.stdout).ok()?,
        stderr: String::from_utf8(said.stderr).ok()?,
        exit,
    })
}

fn kill(process: Option<ProcessId>) {
    let pid = process
        .filter(|process| !process.is_gone())
        .and_then(|process| i32::try_from(process.pid).ok())
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
    }
}
