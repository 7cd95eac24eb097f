//! A VM for the tests: the real OpenSSH server on the loopback device, with keys of
//! its own.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::fs;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use crate::support::Sandbox;

/// The server, and the folder on it for copies. Ends when dropped.
pub(crate) struct Vm {
    folder: TempDir,
    port: u16,
    ended: Arc<AtomicBool>,
    /// The connections that it took.
    streams: Arc<Mutex<Vec<TcpStream>>>,
    /// Holds a network and mounts of its own, which connections on it see.
    world: Option<Child>,
    /// For the system pipe: `ssh` looks for keys in the home that passwd(5) names.
    agent: Option<Child>,
}

impl Vm {
    /// Start it and make it the VM `dev` of the sandbox's user, with `lines` of shell run
    /// before each command there. In them `$dir` is the folder for copies.
    pub(crate) fn start(sandbox: &Sandbox, lines: &str) -> Self {
        Self::start_over(sandbox, lines, "native")
    }

    /// The same over the pipe of that name.
    pub(crate) fn start_over(sandbox: &Sandbox, lines: &str, pipe: &str) -> Self {
        Self::set_up(sandbox, "dev", lines, pipe, "", None, None)
    }

    /// The VM `name` over that pipe with a network of its own: what listens there
    /// doesn't listen here.
    pub(crate) fn start_apart(sandbox: &Sandbox, name: &str, pipe: &str) -> Self {
        let world = start_world("");
        Self::set_up(sandbox, name, "", pipe, "", None, Some(world))
    }

    /// The VM `dev` whose user is `user`, an ordinary one or root, with files of its own
    /// as `lines` of shell make them, and `more` lines in its server's configuration.
    pub(crate) fn start_as(
        sandbox: &Sandbox,
        pipe: &str,
        user: &str,
        lines: &str,
        more: &str,
    ) -> Self {
        let world = start_world(lines);
        Self::set_up(sandbox, "dev", "", pipe, more, Some(user), Some(world))
    }

    fn set_up(
        sandbox: &Sandbox,
        name: &str,
        lines: &str,
        pipe: &str,
        more: &str,
        user: Option<&str>,
        world: Option<Child>,
    ) -> Self {
        let sshd = ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd"]
            .into_iter()
            .find(|p| Path::new(p).exists());
        let sshd = sshd.expect("this test needs OpenSSH's server: install openssh-server");
        let folder = TempDir::new().unwrap();
        let folder_path = folder.path().to_owned();
        let ssh = sandbox.home().join(".ssh");
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&ssh)
            .unwrap();
        for key in [folder.path().join("host_key"), ssh.join("id_ed25519")] {
            if key.exists() {
                continue;
            }
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(key)
                .status();
            assert!(
                made.expect("this test needs ssh-keygen: install openssh-client")
                    .success()
            );
        }
        fs::copy(
            ssh.join("id_ed25519.pub"),
            folder.path().join("authorized_keys"),
        )
        .unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let before = format!(
            "#!/bin/sh\ndir={}\n{lines}\nexec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"\n",
            at("copies")
        );
        fs::write(at("before"), before).unwrap();
        fs::set_permissions(at("before"), fs::Permissions::from_mode(0o755)).unwrap();
        let config = format!(
            "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\nLogLevel QUIET\nForceCommand {}\nSetEnv HOME={}\n{more}\n",
            at("host_key"),
            at("authorized_keys"),
            at("before"),
            at("home"),
        );
        fs::create_dir(at("home")).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(at("sshd_config"), config).unwrap();
        // Debian's server wants this folder, which its service makes at boot.
        fs::create_dir_all("/run/sshd").ok();

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ended = Arc::new(AtomicBool::new(false));
        let streams = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&streams);
        let (watch, config) = (Arc::clone(&ended), at("sshd_config"));
        let inside = world.as_ref().map(enter);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                if watch.load(Ordering::SeqCst) {
                    return;
                }
                let connection = connection.unwrap();
                kept.lock().unwrap().push(connection.try_clone().unwrap());
                let socket = OwnedFd::from(connection);
                let mut command = match &inside {
                    Some(inside) => {
                        let mut command = Command::new("nsenter");
                        command.args(inside).arg(sshd);
                        command
                    }
                    None => Command::new(sshd),
                };
                let mut child = command
                    .args(["-i", "-f", &config])
                    .stdin(Stdio::from(socket.try_clone().unwrap()))
                    .stdout(Stdio::from(socket))
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap();
                std::thread::spawn(move || child.wait());
            }
        });
        let host_key = fs::read_to_string(at("host_key.pub")).unwrap();
        let vm = Self {
            folder,
            port,
            ended,
            streams,
            world,
            agent: (pipe == "system").then(|| start_agent(&folder_path, &ssh.join("id_ed25519"))),
        };
        let own = Command::new("id").arg("-un").output().unwrap();
        let own = String::from_utf8(own.stdout).unwrap();
        let user = user.unwrap_or(own.trim());
        if user != own.trim() {
            // Its own to write, and the way there open.
            let given = Command::new("chown")
                .args(["-R", user])
                .arg(folder_path)
                .status();
            assert!(given.unwrap().success());
            let key = vm.folder.path().join("host_key");
            std::os::unix::fs::chown(key, Some(0), Some(0)).unwrap();
        }
        let config = sandbox.home().join(".config/boxery");
        fs::create_dir_all(&config).unwrap();
        // boxery's own list: ssh looks for the user's in the home that passwd(5) names.
        let known = format!("[127.0.0.1]:{port} {host_key}");
        append(&config.join("known_hosts"), &known);
        append(
            &config.join("config.toml"),
            &format!(
                "[vm.{name}]\ntarget = \"{}@127.0.0.1:{port}\"\ndir = \"{}\"\npipe = \"{pipe}\"\n",
                user,
                vm.dir().display()
            ),
        );
        vm
    }

    /// A program in the VM's world that is no run of anybody's.
    pub(crate) fn beside(&self, program: &str) -> Command {
        let world = self.world.as_ref().expect("it has a world of its own");
        let mut command = Command::new("nsenter");
        command.args(enter(world)).arg(program);
        command
    }

    /// The fingerprint of its host key.
    pub(crate) fn fingerprint(&self) -> String {
        let output = Command::new("ssh-keygen")
            .arg("-lf")
            .arg(self.folder.path().join("host_key.pub"))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split(' ').nth(1).unwrap().to_owned()
    }

    /// Log in as that user of this machine from now on.
    pub(crate) fn log_in_as(&self, sandbox: &Sandbox, user: &str) {
        let open = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        open(self.folder.path(), 0o755);
        open(&self.folder.path().join("home"), 0o777);
        let path = sandbox.home().join(".config/boxery/config.toml");
        let text = fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once("target = \"").unwrap();
        let (_, host) = rest.split_once('@').unwrap();
        fs::write(path, format!("{before}target = \"{user}@{host}")).unwrap();
    }

    /// Give it another host key, as a rebuilt machine has.
    pub(crate) fn change_key(&self) {
        let key = self.folder.path().join("host_key");
        fs::remove_file(&key).unwrap();
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(key)
            .status();
        assert!(made.unwrap().success());
    }

    /// The socket of the agent that has the key, where ssh needs one.
    pub(crate) fn agent(&self) -> PathBuf {
        self.folder.path().join("agent")
    }

    /// How many connections it took.
    pub(crate) fn connections(&self) -> usize {
        self.streams.lock().unwrap().len()
    }

    /// Cut every connection, as a network does.
    pub(crate) fn cut(&self) {
        for stream in self.streams.lock().unwrap().iter() {
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    /// The folder for copies.
    pub(crate) fn dir(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("copies")
    }

    /// The only copy on it.
    pub(crate) fn copy(&self) -> PathBuf {
        let copies: Vec<_> = fs::read_dir(self.dir())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(copies.len(), 1, "{copies:?}");
        copies.into_iter().next().unwrap()
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        for child in [&mut self.agent, &mut self.world].into_iter().flatten() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn append(file: &Path, text: &str) {
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .unwrap();
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
}

/// How `nsenter` gets there.
fn enter(world: &Child) -> [String; 2] {
    ["net", "mnt"].map(|kind| {
        let option = if kind == "mnt" { "mount" } else { kind };
        format!("--{option}=/proc/{}/ns/{kind}", world.id())
    })
}

/// A network with nothing but a loopback device, and mounts that `lines` of shell may
/// add to; both go when this is killed.
fn start_world(lines: &str) -> Child {
    let mut world = Command::new("unshare")
        .args(["-n", "-m", "sh", "-ec"])
        .arg(format!("ip link set lo up\n{lines}\necho up\nexec cat"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test needs unshare: install util-linux");
    let mut line = String::new();
    let stdout = world.stdout.as_mut().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
    assert_eq!(line, "up\n", "this test needs namespaces: run it as root");
    world
}

/// An ordinary user of this machine; made by the first test that wants it.
pub(crate) fn ordinary_user(name: &str) {
    let lock = fs::File::create("/run/boxery-tests.lock").unwrap();
    fs2::FileExt::lock_exclusive(&lock).unwrap();
    let known = fs::read_to_string("/etc/passwd").unwrap();
    if known
        .lines()
        .any(|line| line.starts_with(&format!("{name}:")))
    {
        return;
    }
    let made = Command::new("useradd")
        .args(["--create-home", "--base-dir", "/var/tmp", "--password", "*"])
        .args(["--shell", "/bin/bash", name])
        .status();
    assert!(
        made.expect("this test needs useradd: install passwd")
            .success(),
        "this test makes a user: run it as root"
    );
}

/// An agent of the test's own that holds `key`.
fn start_agent(folder: &Path, key: &Path) -> Child {
    let socket = folder.join("agent");
    let mut agent = Command::new("ssh-agent")
        .arg("-D")
        .arg("-a")
        .arg(&socket)
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test needs ssh-agent: install openssh-client");
    // It says where it listens once it does.
    let mut line = String::new();
    let stdout = agent.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
    let added = Command::new("ssh-add")
        .args(["-q"])
        .arg(key)
        .env("SSH_AUTH_SOCK", &socket)
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(added.success());
    agent
}
