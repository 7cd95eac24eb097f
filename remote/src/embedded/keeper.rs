//! The process outside: starts the server in namespaces of its own, says when it
//! is ready, and ends with it.

use std::io::{self, Write as _};
use std::process::Stdio;
use std::time::Duration;

use camino::Utf8Path;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::state::{EmbeddedVm, Running, failed, start_of};
use crate::RemoteError;

/// What makes the VM's view of the machine, run by `unshare`.
const WORLD: &str = include_str!("world.sh");

/// How often the keeper looks whether the VM's folder is still there.
const LOOK: Duration = Duration::from_secs(2);

/// Keep the server of `vm` until it ends by itself. `program` is this binary,
/// `inside` the arguments with which it calls [`serve`](super::serve).
///
/// Prints `ready` on standard output once clients can connect.
pub async fn keep(vm: &EmbeddedVm, program: &Utf8Path, inside: &[&str]) -> Result<(), RemoteError> {
    // Away from the terminal of whoever happened to start it first.
    rustix::process::setsid().ok();
    let mut terminate = signal(SignalKind::terminate()).map_err(|e| failed(vm.folder(), e))?;
    let mut hangup = signal(SignalKind::hangup()).map_err(|e| failed(vm.folder(), e))?;
    let (mut child, port, own_namespaces) = match start(in_world(vm, program, inside)).await {
        Ok((child, port)) => (child, port, true),
        Err(first) => match start(plainly(vm, program, inside)).await {
            Ok((child, port)) => (child, port, false),
            Err(second) => {
                return Err(RemoteError::Embedded {
                    detail: format!("{first}; {second}"),
                });
            }
        },
    };
    let pid = std::process::id();
    let running = Running {
        pid,
        start: start_of(pid).unwrap_or(0),
        port,
        own_namespaces,
    };
    vm.write_running(&running)?;
    ready().map_err(|e| failed(vm.folder(), e))?;
    // Waiting would close it, and the server ends with its standard input.
    let _alive = child.stdin.take();
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            _ = child.wait() => break,
            _ = terminate.recv() => break,
            _ = hangup.recv() => break,
            _ = look.tick() => if vm.running().is_none_or(|now| now.pid != pid) { break },
        }
    }
    drop(child.kill().await);
    vm.forget(pid);
    Ok(())
}

/// Tell the starter, and let its pipe go.
fn ready() -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(b"ready\n")?;
    stdout.flush()?;
    let null = std::fs::File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}

/// The server in mount and process namespaces of its own; an ordinary user needs
/// a user namespace for that.
fn in_world(vm: &EmbeddedVm, program: &Utf8Path, inside: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "--pid",
        "--fork",
        "--kill-child=KILL",
        "--propagation=private",
    ]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command
        .args(["--", "/bin/sh", "-c", WORLD, "sh"])
        .arg(vm.root())
        .arg(vm.folder())
        .arg(program)
        .args(inside);
    command
}

fn plainly(vm: &EmbeddedVm, program: &Utf8Path, inside: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(inside).arg(vm.folder()).arg(vm.root());
    command
}

/// Start the server; it says its port on standard output and ends when its
/// standard input does.
async fn start(mut command: Command) -> Result<(Child, u16), String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| error.to_string())?;
    let line = match child.stdout.take() {
        Some(stdout) => BufReader::new(stdout).lines().next_line().await,
        None => Ok(None),
    };
    match line {
        Ok(Some(line)) => match line
            .strip_prefix("port ")
            .and_then(|port| port.parse().ok())
        {
            Some(port) => Ok((child, port)),
            None => Err(format!("the server said `{line}`")),
        },
        Ok(None) => match child.wait().await {
            Ok(status) => Err(format!("the server ended with {status}")),
            Err(error) => Err(error.to_string()),
        },
        Err(error) => Err(error.to_string()),
    }
}
