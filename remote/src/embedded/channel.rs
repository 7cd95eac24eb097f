//! One command that a client asked for.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::process::Stdio;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use russh::Channel;
use russh::server::Msg;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

/// How commands are started here.
#[derive(Debug)]
pub(super) struct Shell {
    /// The home of the VM's only user.
    pub home: Utf8PathBuf,
}

impl Shell {
    /// The login shell with `command`, in a session of its own as under sshd.
    fn start(&self, command: Vec<u8>) -> std::io::Result<Child> {
        let shell = ["/bin/bash", "/bin/sh"]
            .into_iter()
            .find(|shell| Utf8Path::new(shell).exists())
            .unwrap_or("/bin/sh");
        let command = OsString::from_vec(command);
        let mut with_session = Command::new("setsid");
        with_session.arg(shell).arg("-c").arg(&command);
        let mut without = Command::new(shell);
        without.arg("-c").arg(&command).process_group(0);
        let spawn = |mut start: Command| {
            start
                .env_clear()
                .env("HOME", &self.home)
                .env("USER", "root")
                .env("LOGNAME", "root")
                .env("SHELL", shell)
                .env(
                    "PATH",
                    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                )
                .current_dir(&self.home)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
        };
        spawn(with_session).or_else(|_| spawn(without))
    }
}

/// Run `command`, pass its streams on, say how it ended, close the channel.
pub(super) async fn serve(channel: Channel<Msg>, shell: Arc<Shell>, command: Vec<u8>) {
    let (mut reads, writes) = channel.split();
    let Ok(mut child) = shell.start(command) else {
        drop(writes.exit_status(127).await);
        drop(writes.close().await);
        return;
    };
    let stdin = child.stdin.take();
    // Ends with the channel, even when the connection just breaks; the command
    // then reads the end of its stdin, which is how a run learns of it.
    let feed = tokio::spawn(async move {
        let Some(mut stdin) = stdin else { return };
        let mut reader = reads.make_reader();
        drop(tokio::io::copy(&mut reader, &mut stdin).await);
        drop(stdin.shutdown().await);
    });
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let mut out = writes.make_writer();
    let mut err = writes.make_writer_ext(Some(1));
    let output = async {
        if let Some(mut stdout) = stdout {
            drop(tokio::io::copy(&mut stdout, &mut out).await);
        }
    };
    let errors = async {
        if let Some(mut stderr) = stderr {
            drop(tokio::io::copy(&mut stderr, &mut err).await);
        }
    };
    let (status, (), ()) = tokio::join!(child.wait(), output, errors);
    feed.abort();
    let code = status.ok().and_then(|status| status.code()).unwrap_or(255);
    drop(writes.exit_status(u32::try_from(code).unwrap_or(255)).await);
    drop(writes.eof().await);
    drop(writes.close().await);
}
