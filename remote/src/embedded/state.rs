//! The folder of one embedded VM, and how it is started.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use russh::keys::PrivateKey;
use russh::keys::ssh_key::LineEnding;
use russh::keys::ssh_key::private::Ed25519Keypair;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::known_hosts::host_name;
use crate::{Ask, HostOptions, Laptop, Pipe, PipeChoice, Plan, RemoteError, Target};

/// How long it may take to end.
const END: Duration = Duration::from_secs(5);
/// How long the server may take to come up.
const START: Duration = Duration::from_secs(20);

/// An embedded VM: its folder, private to the user.
#[derive(Debug, Clone)]
pub struct EmbeddedVm {
    folder: Utf8PathBuf,
}

/// A server that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Running {
    /// The keeper's process number.
    pub pid: u32,
    /// When the keeper started, in clock ticks since boot.
    pub start: u64,
    /// The port on 127.0.0.1.
    pub port: u16,
    /// Whether it has namespaces of its own.
    pub own_namespaces: bool,
}

impl EmbeddedVm {
    /// The VM in `folder`, which is made when it is first started.
    pub fn new(folder: Utf8PathBuf) -> Self {
        Self { folder }
    }

    /// Its folder.
    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// The folder that is `/` in the VM, where it has namespaces of its own.
    pub fn root(&self) -> Utf8PathBuf {
        self.folder.join("root")
    }

    /// Open a connection to it; `starter` is run when no server is up and must
    /// call [`keep`](super::keep) with the same folder.
    pub async fn open(
        &self,
        choice: PipeChoice,
        laptop: &Laptop,
        starter: &mut Command,
    ) -> Result<Pipe, RemoteError> {
        let port = self.ensure(starter)?;
        let known_hosts = self.write_known_hosts(port)?;
        let no_one: Ask<'_> = None;
        match choice {
            PipeChoice::Auto | PipeChoice::Native => {
                let options = HostOptions {
                    host: "127.0.0.1".to_owned(),
                    port,
                    user: "boxery".to_owned(),
                    identity_files: vec![self.path("client_key")],
                    identities_only: true,
                    agent: None,
                    known_hosts: vec![known_hosts],
                    global_known_hosts: Vec::new(),
                    connect_timeout: Duration::from_secs(10),
                    keepalive: Duration::from_secs(15),
                    keepalive_max: 3,
                };
                let target = Self::target(port)?;
                Pipe::open_plan(&target, Plan::Native(options), laptop, no_one).await
            }
            PipeChoice::System => {
                let config = self.path("ssh_config");
                let text = format!(
                    "Host *\n  IdentityFile \"{}\"\n  IdentitiesOnly yes\n  IdentityAgent none\n",
                    self.path("client_key")
                );
                write_private(&config, text.as_bytes()).map_err(|e| failed(&config, e))?;
                let laptop = Laptop {
                    ssh_config: Some(config),
                    known_hosts,
                    ..laptop.clone()
                };
                Pipe::open(&Self::target(port)?, choice, &laptop, no_one).await
            }
        }
    }

    fn target(port: u16) -> Result<Target, RemoteError> {
        format!("boxery@127.0.0.1:{port}").parse()
    }

    /// The port of the server, which is started when it isn't up. Two callers
    /// at once start one server.
    pub fn ensure(&self, starter: &mut Command) -> Result<u16, RemoteError> {
        if let Some(running) = self.running() {
            return Ok(running.port);
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(|e| failed(&self.folder, e))?;
        let path = self.path("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(|e| failed(&path, e))?;
        lock.lock().map_err(|e| failed(&path, e))?;
        if let Some(running) = self.running() {
            return Ok(running.port);
        }
        self.make_keys()?;
        self.start(starter)?;
        match self.running() {
            Some(running) => Ok(running.port),
            None => Err(self.complaint("it ended at once")),
        }
    }

    fn start(&self, starter: &mut Command) -> Result<(), RemoteError> {
        let log = self.path("server.log");
        let stderr = File::create(&log).map_err(|e| failed(&log, e))?;
        let mut child = starter
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .current_dir("/")
            .spawn()
            .map_err(|source| RemoteError::Start {
                program: starter.get_program().to_string_lossy().into_owned(),
                source,
            })?;
        let Some(mut ready) = child.stdout.take() else {
            return Err(self.complaint("it has no output"));
        };
        // A thread, because a pipe can't be read with a deadline.
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            drop(io::BufReader::new(ready.by_ref()).read_line(&mut line));
            drop(sender.send(line));
        });
        match receiver.recv_timeout(START) {
            Ok(line) if line == "ready\n" => Ok(()),
            Ok(_) => {
                drop(child.wait());
                Err(self.complaint("it ended before it was ready"))
            }
            Err(_) => {
                drop(child.kill());
                drop(child.wait());
                Err(self.complaint(&format!("it wasn't ready in {} s", START.as_secs())))
            }
        }
    }

    fn complaint(&self, what: &str) -> RemoteError {
        let log = fs::read(self.path("server.log")).unwrap_or_default();
        let last = crate::ssh_config::one_line(&log);
        RemoteError::Embedded {
            detail: if last.is_empty() {
                what.to_owned()
            } else {
                format!("{what}: {last}")
            },
        }
    }

    /// The server that runs, if one does; a file left by a dead one doesn't count.
    pub(super) fn running(&self) -> Option<Running> {
        let text = fs::read(self.path("server.json")).ok()?;
        let running: Running = serde_json::from_slice(&text).ok()?;
        (start_of(running.pid) == Some(running.start)).then_some(running)
    }

    /// Whether the VM's commands have namespaces of their own; `None` while no
    /// server is up.
    pub fn has_own_namespaces(&self) -> Option<bool> {
        self.running().map(|running| running.own_namespaces)
    }

    /// End the server, and remove the VM's folder with all that is in it.
    pub fn remove(&self) -> Result<(), RemoteError> {
        if let Some(running) = self.running() {
            let pid = i32::try_from(running.pid).ok().and_then(Pid::from_raw);
            if let Some(pid) = pid {
                kill_process(pid, Signal::TERM).ok();
            }
            let deadline = Instant::now() + END;
            // Nobody sends anything: a wait that ends by its time only.
            let (_sender, nothing) = std::sync::mpsc::channel::<()>();
            while self.running().is_some() && Instant::now() < deadline {
                nothing.recv_timeout(Duration::from_millis(5)).ok();
            }
        }
        match fs::remove_dir_all(&self.folder) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed(&self.folder, error)),
        }
    }

    /// Note the server that runs.
    pub(super) fn write_running(&self, running: &Running) -> Result<(), RemoteError> {
        let path = self.path("server.json");
        let text = serde_json::to_vec(running).map_err(|e| failed(&path, e.into()))?;
        write_private(&path, &text).map_err(|e| failed(&path, e))
    }

    /// Forget the server, if it is still the one of this process.
    pub(super) fn forget(&self, pid: u32) {
        if self.running().is_some_and(|running| running.pid == pid) {
            drop(fs::remove_file(self.path("server.json")));
        }
    }

    pub(super) fn path(&self, name: &str) -> Utf8PathBuf {
        self.folder.join(name)
    }

    /// Host key and client key, made once.
    fn make_keys(&self) -> Result<(), RemoteError> {
        for name in ["host_key", "client_key"] {
            let path = self.path(name);
            if path.exists() {
                continue;
            }
            let mut seed = [0; 32];
            getrandom::fill(&mut seed).map_err(|e| failed(&path, e.into()))?;
            let key = PrivateKey::from(Ed25519Keypair::from_seed(&seed));
            let text = key
                .to_openssh(LineEnding::LF)
                .map_err(|e| failed(&path, io::Error::other(e)))?;
            write_private(&path, text.as_bytes()).map_err(|e| failed(&path, e))?;
        }
        Ok(())
    }

    pub(super) fn key(&self, name: &str) -> Result<PrivateKey, RemoteError> {
        let path = self.path(name);
        let text = fs::read_to_string(&path).map_err(|e| failed(&path, e))?;
        PrivateKey::from_openssh(&text).map_err(|e| failed(&path, io::Error::other(e)))
    }

    /// The only key that this VM is known by, under the port it has now.
    fn write_known_hosts(&self, port: u16) -> Result<Utf8PathBuf, RemoteError> {
        let path = self.path("known_hosts");
        let key = self.key("host_key")?;
        let key = key
            .public_key()
            .to_openssh()
            .map_err(|e| failed(&path, io::Error::other(e)))?;
        let line = format!("{} {key}\n", host_name("127.0.0.1", port));
        if fs::read(&path).ok().as_deref() != Some(line.as_bytes()) {
            write_private(&path, line.as_bytes()).map_err(|e| failed(&path, e))?;
        }
        Ok(path)
    }
}

pub(super) fn failed(path: &Utf8Path, source: io::Error) -> RemoteError {
    RemoteError::File {
        path: path.to_owned(),
        source,
    }
}

/// Write a file that only the user may read, by a temporary one.
fn write_private(path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Utf8Path::new("/"));
    // Made with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// Field 22 of `/proc/PID/stat`: when the process started, in clock ticks since
/// boot (`proc_pid_stat(5)`). Elsewhere than on Linux every process counts as
/// gone, and a new server is started.
pub(crate) fn start_of(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}
