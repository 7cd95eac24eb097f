//! A laptop for a helper: starts the program, speaks `wire` over its pipes.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test's support: what can't be had fails the test"
)]

use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use boxery_wire::{
    Blob, Connection, Decoder, End, Failure, FromRun, Outcome, Reply, Request, Run, RunId, Side,
    Stdin, Stream, ToRun, WireError, greet,
};
use tokio::io::BufReader;
use tokio::process::{Child, Command};

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A VM's user: a home of its own.
pub(crate) struct Home {
    pub(crate) folder: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Write a file of this home.
    pub(crate) fn put(&self, file: &str, text: &str) {
        let path = self.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = std::fs::File::create(path).unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    }

    /// The folder of a run.
    pub(crate) fn run(&self, run: RunId) -> PathBuf {
        let runs = self.path().join(".local/state/boxery/helper/runs");
        runs.join(run.to_string())
    }

    /// Connect: start a helper, greet it.
    pub(crate) async fn connect(&self) -> Helper {
        let program = Path::new(env!("CARGO_BIN_EXE_boxery-helper"));
        self.connect_to(Command::new(program)).await
    }

    /// Connect to a helper that is started in this way.
    pub(crate) async fn connect_to(&self, mut command: Command) -> Helper {
        let mut child = command
            .arg("serve")
            .env_clear()
            .env("HOME", self.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("USER", "vmuser")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut writer = child.stdin.take().unwrap();
        greet(Side::Laptop, &mut reader, &mut writer).await.unwrap();
        let (connection, drive) = Connection::new(Side::Laptop, reader, writer);
        let drive = tokio::spawn(drive);
        Helper {
            child,
            connection,
            drive,
        }
    }
}

/// A connected helper.
pub(crate) struct Helper {
    pub(crate) child: Child,
    pub(crate) connection: Connection,
    drive: tokio::task::JoinHandle<WireError>,
}

impl Helper {
    /// Begin a stream with a request; its reply, and what follows.
    pub(crate) async fn ask(&self, request: &Request) -> (Reply, Talk) {
        let stream = self.connection.open().unwrap();
        stream.send_message(request).await.unwrap();
        let mut talk = Talk {
            stream,
            decoder: Decoder::default(),
            before: 0,
            unread: Vec::new(),
        };
        let reply = talk.next::<Reply>().await.unwrap();
        talk.before = talk.decoder.position();
        (reply, talk)
    }

    /// Run a command to its end.
    pub(crate) async fn run(&self, run: Run) -> Done {
        let (reply, mut talk) = self.ask(&Request::Run(Box::new(run))).await;
        assert_eq!(reply, Reply::Started);
        talk.collect().await
    }

    /// Run bash with a text.
    pub(crate) async fn bash(&self, text: &str) -> Done {
        self.run(bash(text)).await
    }

    pub(crate) async fn failure(&self, run: Run) -> Failure {
        match self.ask(&Request::Run(Box::new(run))).await.0 {
            Reply::Failed(failure) => failure,
            other => panic!("{other:?}"),
        }
    }

    /// Break the link as a cut network does: nothing more comes, nothing is said.
    pub(crate) async fn cut(mut self) {
        self.drive.abort();
        drop(self.connection);
        self.child.wait().await.unwrap();
    }

    /// Kill the helper itself.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// One stream behind its reply.
pub(crate) struct Talk {
    pub(crate) stream: Stream,
    decoder: Decoder,
    before: u64,
    unread: Vec<u8>,
}

/// All that a run gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) outcome: Outcome,
    pub(crate) background: u32,
    /// The folder that was kept for it, and is gone.
    pub(crate) gone: Option<Blob>,
}

impl Talk {
    pub(crate) async fn next<T: serde::de::DeserializeOwned>(&mut self) -> Option<T> {
        loop {
            if let Some(message) = self.decoder.message().unwrap() {
                return Some(message);
            }
            match tokio::time::timeout(PATIENCE, self.stream.recv())
                .await
                .unwrap()
            {
                Ok(Some(bytes)) => self.decoder.push(&bytes),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    pub(crate) async fn say(&self, message: &ToRun) {
        self.stream.send_message(message).await.unwrap();
    }

    /// How many bytes of the run's messages were taken.
    pub(crate) fn taken(&self) -> u64 {
        self.decoder.position() - self.before
    }

    /// Take everything up to the end, acknowledging as a laptop does.
    pub(crate) async fn collect(&mut self) -> Done {
        let (mut stdout, mut stderr) = (std::mem::take(&mut self.unread), Vec::new());
        let mut gone = None;
        let end: End = loop {
            match self.next::<FromRun>().await.expect("a run has an end") {
                FromRun::Stdout(bytes) => stdout.extend(bytes.0),
                FromRun::Stderr(bytes) => stderr.extend(bytes.0),
                FromRun::StdinTaken(_) | FromRun::Skipped(_) | FromRun::Released => {}
                FromRun::FolderGone(folder) => gone = Some(folder),
                FromRun::End(end) => break end,
            }
        };
        self.say(&ToRun::Ack(self.taken())).await;
        self.stream.finish();
        Done {
            stdout,
            stderr,
            outcome: end.outcome,
            background: end.background,
            gone,
        }
    }

    /// Take messages until stdout holds `text`; what came behind it is kept.
    pub(crate) async fn until(&mut self, text: &str) -> Vec<u8> {
        loop {
            let found = self
                .unread
                .windows(text.len())
                .position(|piece| piece == text.as_bytes());
            if let Some(at) = found {
                return self.unread.drain(..at + text.len()).collect();
            }
            match self.next::<FromRun>().await.expect("the text comes") {
                FromRun::Stdout(bytes) => self.unread.extend(bytes.0),
                other => assert!(matches!(other, FromRun::StdinTaken(_)), "{other:?}"),
            }
        }
    }
}

thread_local! {
    static LAST: Cell<u64> = const { Cell::new(0) };
}

/// A run's name that no other has.
pub(crate) fn id() -> RunId {
    let count = LAST.with(|last| {
        last.set(last.get() + 1);
        last.get()
    });
    let time = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_nanos();
    let thread = format!("{:?}", std::thread::current().id());
    let salt = thread.bytes().map(u128::from).sum::<u128>();
    RunId((time << 24 | salt << 16 | u128::from(count)).to_be_bytes())
}

/// A run of `argv` without input, with a grace that outlasts the test.
pub(crate) fn run(argv: &[&[u8]]) -> Run {
    Run {
        run: id(),
        argv: argv.iter().map(|word| Blob::from(*word)).collect(),
        view: None,
        cwd: None,
        env: Vec::new(),
        stdin: Stdin::Null,
        timeout: None,
        grace: 3600,
        session: String::new(),
        keep: None,
        git: None,
        sets_up: None,
        job: false,
        journal: 1 << 30,
    }
}

pub(crate) fn bash(text: &str) -> Run {
    run(&[b"bash", b"-c", text.as_bytes()])
}

/// The processes that were started with this run's mark, by pid.
pub(crate) fn left(run: RunId) -> HashMap<i32, String> {
    let mark = format!("BOXERY_RUN={run}");
    let mut found = HashMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let state = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let is_zombie = state
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.starts_with(" Z"));
        if !is_zombie
            && environment
                .split(|b| *b == 0)
                .any(|line| line == mark.as_bytes())
        {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.insert(pid, String::from_utf8_lossy(&command).into_owned());
        }
    }
    found
}

/// The processes whose folder is, or was, below `folder`, by pid.
pub(crate) fn inside(folder: &Path) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let inside = processes.filter(|entry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
    });
    inside
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Wait until something is so. Processes that are nobody's children tell nobody.
pub(crate) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let limit = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < limit, "it never came: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
