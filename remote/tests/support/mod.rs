//! A real OpenSSH server on this machine for one test, with its own keys, and
//! users whose login shells differ.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "test support")]
#![expect(clippy::disallowed_methods, reason = "scratch files")]
#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test file uses its own part"
)]

mod relay;

use std::fs;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use boxery_remote::{
    Ask, Captured, Input, Laptop, PipeChoice, RemoteError, Route, RouteEnd, RunRequest, Target,
    Way, capture,
};
use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

pub(crate) use relay::Relay;

/// No single run of these tests takes longer.
const LIMIT: Duration = Duration::from_mins(1);

/// An sshd that is started per connection, inetd-like, behind a port that the
/// kernel chose and that is ours from the start.
pub(crate) struct Sshd {
    pub(crate) folder: TempDir,
    pub(crate) port: u16,
    pub(crate) user: String,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    children: Arc<Mutex<Vec<Child>>>,
    stop: Arc<std::sync::atomic::AtomicBool>,
}

fn need(program: &str, package: &str) -> Utf8PathBuf {
    for folder in [
        "/usr/sbin",
        "/usr/bin",
        "/usr/local/sbin",
        "/usr/local/bin",
        "/bin",
    ] {
        let path = Utf8Path::new(folder).join(program);
        if path.exists() {
            return path;
        }
    }
    panic!("this test needs `{program}`: install the package {package}");
}

fn succeed(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A user of this machine whose login shell is `shell`; made by the first test
/// that wants it. Only root can make one.
pub(crate) fn shell_user(shell: &str) -> String {
    make_user(format!("boxery-{shell}"), shell)
}

/// One whose start-up files a test may fill with noise.
pub(crate) fn noisy_user(shell: &str) -> String {
    make_user(format!("boxery-noisy-{shell}"), shell)
}

fn make_user(name: String, shell: &str) -> String {
    let path = match shell {
        "sh" => "/bin/sh".into(),
        "nologin" => need("nologin", "login"),
        other => need(other, other),
    };
    assert!(is_root(), "this test makes users: run it as root");
    let lock = fs::File::create("/run/boxery-tests.lock").unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let known = fs::read_to_string("/etc/passwd").unwrap();
    if !known
        .lines()
        .any(|line| line.starts_with(&format!("{name}:")))
    {
        succeed(Command::new("useradd").args([
            "--create-home",
            "--base-dir",
            "/var/tmp",
            "--password",
            "*",
            "--shell",
            path.as_str(),
            &name,
        ]));
    }
    name
}

/// The user of a test that doesn't care.
pub(crate) fn any_user() -> String {
    if is_root() {
        shell_user("bash")
    } else {
        succeed(Command::new("id").arg("-un")).trim().to_owned()
    }
}

pub(crate) fn keygen(path: &Utf8Path, kind: &str, passphrase: &str) {
    let mut command = Command::new(need("ssh-keygen", "openssh-client"));
    command.args([
        "-q",
        "-t",
        kind,
        "-N",
        passphrase,
        "-C",
        "test",
        "-f",
        path.as_str(),
    ]);
    succeed(&mut command);
}

impl Sshd {
    /// Start one with the test's own configuration lines added.
    pub(crate) fn start_with(config: &str) -> Self {
        let sshd = need("sshd", "openssh-server");
        if is_root() {
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let folder = TempDir::with_prefix("boxery-sshd-").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let path = |name: &str| Utf8PathBuf::try_from(folder.path().join(name)).unwrap();
        keygen(&path("host"), "ed25519", "");
        keygen(&path("key"), "ed25519", "");
        fs::create_dir(path("home")).unwrap();
        fs::copy(path("key.pub"), path("authorized")).unwrap();
        let base = format!(
            "HostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nLogLevel VERBOSE\n\
             AcceptEnv LANG LC_*\n",
            path("host"),
            path("authorized"),
        );
        fs::write(path("sshd_config"), format!("{config}\n{base}")).unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let streams = Arc::new(Mutex::new(Vec::new()));
        let children = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (config, log) = (path("sshd_config"), path("log"));
        let (kept, started, stopping) = (streams.clone(), children.clone(), stop.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                if stopping.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                stream.set_nodelay(true).unwrap();
                kept.lock().unwrap().push(stream.try_clone().unwrap());
                let end = || Stdio::from(OwnedFd::from(stream.try_clone().unwrap()));
                let child = Command::new(&sshd)
                    .args(["-i", "-f", config.as_str(), "-E", log.as_str()])
                    .stdin(end())
                    .stdout(end())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap();
                started.lock().unwrap().push(child);
            }
        });
        let sshd = Self {
            folder,
            port,
            user: any_user(),
            streams,
            children,
            stop,
        };
        let host = fs::read_to_string(sshd.path("host.pub")).unwrap();
        fs::write(
            sshd.path("known_hosts"),
            format!("[127.0.0.1]:{port} {host}"),
        )
        .unwrap();
        sshd.configure("");
        sshd
    }

    pub(crate) fn start() -> Self {
        Self::start_with("")
    }

    pub(crate) fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8PathBuf::try_from(self.folder.path().join(name)).unwrap()
    }

    /// Write the laptop's ssh configuration: `lines` win over the base.
    pub(crate) fn configure(&self, lines: &str) {
        let text = format!(
            "{lines}\nIdentityFile {}\nIdentitiesOnly yes\nIdentityAgent none\n\
             UserKnownHostsFile {}\nGlobalKnownHostsFile none\n",
            self.path("key"),
            self.path("known_hosts"),
        );
        fs::write(self.path("ssh_config"), text).unwrap();
    }

    pub(crate) fn laptop(&self) -> Laptop {
        Laptop {
            home: self.path("home"),
            user: "nobody".to_owned(),
            agent_socket: None,
            ssh_config: Some(self.path("ssh_config")),
            ssh_program: "ssh".into(),
            known_hosts: self.path("boxery/known_hosts"),
            keep_keys: false,
            kerberos: false,
        }
    }

    pub(crate) fn target(&self) -> Target {
        self.target_of(&self.user)
    }

    pub(crate) fn target_of(&self, user: &str) -> Target {
        format!("{user}@127.0.0.1:{}", self.port).parse().unwrap()
    }

    /// The way of `user` over that pipe.
    pub(crate) fn route(&self, user: &str, choice: PipeChoice) -> Route {
        route(&self.target_of(user).to_string(), choice, self.laptop())
    }

    pub(crate) async fn open(&self, choice: PipeChoice) -> Way {
        self.open_as(&self.user, choice).await
    }

    pub(crate) async fn open_as(&self, user: &str, choice: PipeChoice) -> Way {
        self.try_open_as(user, choice).await.expect("the way opens")
    }

    pub(crate) async fn try_open_as(
        &self,
        user: &str,
        choice: PipeChoice,
    ) -> Result<Way, RemoteError> {
        Way::open(self.route(user, choice), None, None).await
    }

    /// A link to it that can be cut, and the way of its user over that link.
    pub(crate) fn behind_a_link(&self, choice: PipeChoice) -> (Relay, Route) {
        let relay = Relay::start(self.port);
        let host = fs::read_to_string(self.path("host.pub")).unwrap();
        let mut known = fs::OpenOptions::new()
            .append(true)
            .open(self.path("known_hosts"))
            .unwrap();
        let line = format!("[127.0.0.1]:{} {host}", relay.port);
        std::io::Write::write_all(&mut known, line.as_bytes()).unwrap();
        let target = format!("{}@127.0.0.1:{}", self.user, relay.port);
        let route = route(&target, choice, self.laptop());
        (relay, route)
    }

    /// Why the way doesn't open.
    pub(crate) async fn failure(&self, choice: PipeChoice) -> RemoteError {
        self.failure_with(choice, &self.laptop()).await
    }

    pub(crate) async fn failure_with(&self, choice: PipeChoice, laptop: &Laptop) -> RemoteError {
        let route = route(&self.target().to_string(), choice, laptop.clone());
        let no_one: Ask<'_> = None;
        Way::open(route, None, no_one)
            .await
            .expect_err("the way doesn't open")
    }

    /// Cut every connection, as a network does.
    pub(crate) fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        self.cut();
        for mut child in self.children.lock().unwrap().drain(..) {
            drop(child.kill());
            drop(child.wait());
        }
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(8).collect();
            let text = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
            drop(std::io::Write::write_all(
                &mut std::io::stderr(),
                text.as_bytes(),
            ));
        }
    }
}

/// The way to a target.
pub(crate) fn route(target: &str, choice: PipeChoice, laptop: Laptop) -> Route {
    Route {
        vm: "dev".to_owned(),
        end: RouteEnd::Ssh(target.to_owned()),
        choice,
        laptop,
        machine_id: None,
    }
}

/// A request for these words.
pub(crate) fn words(argv: &[&str]) -> RunRequest {
    RunRequest {
        argv: argv.iter().map(|word| word.as_bytes().to_vec()).collect(),
        ..RunRequest::default()
    }
}

/// A request for `bash -c TEXT`.
pub(crate) fn bash(text: &str) -> RunRequest {
    words(&["bash", "-c", text])
}

/// Run and keep the output: exit code, stdout, stderr.
pub(crate) async fn run_text(way: &Way, request: &RunRequest) -> (u8, String, String) {
    let captured = run_bytes(way, request, None).await;
    (
        captured.exit.code(),
        String::from_utf8_lossy(&captured.stdout).into_owned(),
        String::from_utf8_lossy(&captured.stderr).into_owned(),
    )
}

pub(crate) async fn run_bytes(way: &Way, request: &RunRequest, stdin: Option<Vec<u8>>) -> Captured {
    let stdin: Option<Input> = stdin.map(|bytes| Box::pin(std::io::Cursor::new(bytes)) as Input);
    tokio::time::timeout(LIMIT, capture(way, request, stdin, 1 << 30))
        .await
        .expect("a minute is enough")
        .expect("the run ends by itself")
}

/// Wait for something to become true; polls, for what tells nobody.
pub(crate) async fn eventually(what: &str, limit: Duration, mut check: impl FnMut() -> bool) {
    let start = Instant::now();
    while !check() {
        assert!(start.elapsed() < limit, "not in {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A word that no other process of this machine has, and that `sleep` takes.
pub(crate) fn token() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("70{}.{number:03}", std::process::id())
}

/// Processes that have `token` among their arguments and aren't dead already.
pub(crate) fn running(token: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if line
            .split(|byte| *byte == 0)
            .any(|word| word == token.as_bytes())
        {
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    found
}
