//! The helpers that boxery carries run where nothing else is.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of a test: what can't be had fails it"
)]

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use boxery_remote::helper_image;
use boxery_wire::{
    Connection, Decoder, Failure, FromRun, Machine, Outcome, Reply, Request, Run, RunId, Side,
    Stdin, Stream, ToRun, greet,
};
use tokio::io::BufReader;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// A helper behind pipes.
struct Helper {
    connection: Connection,
    _child: Child,
}

impl Helper {
    async fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut writer = child.stdin.take().unwrap();
        let greeting = greet(Side::Laptop, &mut reader, &mut writer);
        timeout(Duration::from_mins(1), greeting)
            .await
            .unwrap()
            .unwrap();
        let (connection, drive) = Connection::new(Side::Laptop, reader, writer);
        tokio::spawn(drive);
        Self {
            connection,
            _child: child,
        }
    }

    async fn ask(&self, request: &Request) -> (Reply, Stream, Decoder) {
        let stream = self.connection.open().unwrap();
        stream.send_message(request).await.unwrap();
        let mut decoder = Decoder::default();
        let reply = next(&stream, &mut decoder).await;
        (reply, stream, decoder)
    }

    async fn hello(&self) -> Machine {
        match self.ask(&Request::Hello).await.0 {
            Reply::Hello(machine) => *machine,
            other => panic!("{other:?}"),
        }
    }

    async fn run(&self, number: u8, argv: &[&str]) -> Result<(String, Outcome), Failure> {
        let run = Run {
            run: RunId([number; 16]),
            argv: argv.iter().map(|word| (*word).into()).collect(),
            cwd: None,
            view: None,
            env: Vec::new(),
            stdin: Stdin::Null,
            timeout: None,
            grace: 60,
            session: String::new(),
            keep: None,
            git: None,
            sets_up: None,
            job: false,
            journal: 1 << 30,
        };
        let (reply, stream, mut decoder) = self.ask(&Request::Run(Box::new(run))).await;
        if let Reply::Failed(failure) = reply {
            return Err(failure);
        }
        let mut text = String::new();
        loop {
            match next(&stream, &mut decoder).await {
                FromRun::Stdout(bytes) | FromRun::Stderr(bytes) => {
                    text.push_str(&String::from_utf8_lossy(&bytes));
                }
                FromRun::End(end) => {
                    stream.send_message(&ToRun::Ack(u64::MAX)).await.unwrap();
                    stream.finish();
                    return Ok((text, end.outcome));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

async fn next<T: serde::de::DeserializeOwned>(stream: &Stream, decoder: &mut Decoder) -> T {
    loop {
        if let Some(message) = decoder.message().unwrap() {
            return message;
        }
        let bytes = timeout(Duration::from_mins(1), stream.recv()).await;
        decoder.push(&bytes.unwrap().unwrap().expect("more comes"));
    }
}

/// Put a program there. Another process writes it: what the other test starts would have
/// our descriptor for a moment, and no file is executed that somebody may write.
fn put(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut source = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut source, bytes).unwrap();
    let mut install = std::process::Command::new("install");
    install.args(["-m", "755"]).arg(source.path()).arg(&path);
    assert!(install.status().unwrap().success());
}

#[tokio::test]
async fn a_helper_needs_nothing_of_the_vm() {
    let root = tempfile::tempdir().unwrap();
    let image = helper_image(std::env::consts::ARCH).unwrap();
    put(root.path(), "helper", image.bytes);
    let busybox = ["/bin/busybox", "/usr/bin/busybox"]
        .into_iter()
        .find_map(|path| fs::read(path).ok());
    let busybox = busybox.expect("install busybox-static: this test needs a static shell");
    put(root.path(), "bin/sh", &busybox);
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "chroot"])
        .arg(root.path())
        .args(["/helper", "serve"])
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let helper = Helper::start(command).await;
    let machine = helper.hello().await;
    assert_eq!((&*machine.user, machine.proc), ("0", false));
    assert_eq!((machine.bash, &*machine.home), (None, &b"/"[..]));
    let said = helper.run(1, &["sh", "-c", "echo here; (exit 3)"]).await;
    assert_eq!(said, Ok(("here\n".to_owned(), Outcome::Exited(3))));
    let said = helper.run(2, &["sh", "-c", "kill -9 $$"]).await;
    assert_eq!(said, Ok((String::new(), Outcome::Signalled(9))));
    let said = helper.run(3, &["bash", "-c", "true"]).await;
    assert_eq!(said, Err(Failure::NoBash));
}

/// qemu starts the arm64 helper itself; what that starts is up to the kernel, so no
/// run is tried.
#[tokio::test]
async fn the_arm64_helper_speaks() {
    let Ok(image) = helper_image("aarch64") else {
        // Built without it: `boxery vm doctor` says so on such a VM.
        assert!(
            helper_image("aarch64")
                .unwrap_err()
                .contains("rustup target add")
        );
        return;
    };
    let home = tempfile::tempdir().unwrap();
    put(home.path(), "helper", image.bytes);
    let qemu = ["qemu-aarch64-static", "qemu-aarch64"]
        .into_iter()
        .find(|name| {
            let folders = ["/usr/bin", "/usr/local/bin"];
            folders
                .iter()
                .any(|folder| Path::new(folder).join(name).exists())
        });
    let mut command = Command::new(qemu.expect("install qemu-user-static: this test needs it"));
    command
        .arg(home.path().join("helper"))
        .arg("serve")
        .env("HOME", home.path());
    let helper = Helper::start(command).await;
    let machine = helper.hello().await;
    assert_eq!(machine.architecture, "aarch64");
    assert!(machine.state.is_ok(), "{:?}", machine.state);
}
