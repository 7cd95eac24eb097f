//! What a run costs: whole processes against OpenSSH with a warm connection of its
//! own, interleaved in one run, as ratios; on the loopback device and behind a link
//! with a delay.
//!
//! `cargo bench --bench remote` prints Markdown tables. Nothing here passes or fails;
//! the aims stand in `docs/performance.md`. It starts an sshd of its own.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints its table, and has nobody to hand an error to"
)]

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const BOXERY: &str = env!("CARGO_BIN_EXE_boxery");
const MIB: usize = 1024 * 1024;

/// An sshd, a home with both VMs on it, and an agent that has the key.
struct Place {
    folder: TempDir,
    port: u16,
    agent: Child,
}

fn main() {
    let place = Place::new();
    let bytes = std::env::var("MEBIBYTES").ok().and_then(|n| n.parse().ok());
    let bytes: usize = bytes.unwrap_or(1024) * MIB;
    for delay in [0, 20, 80] {
        let port = if delay == 0 {
            place.port
        } else {
            delayed(place.port, Duration::from_millis(delay) / 2)
        };
        place.configure(port);
        let master = place.master(port);
        println!("\n### {delay} ms\n");
        warm(&place, port, if delay == 0 { 300 } else { 40 });
        cold(&place, port, if delay == 0 { 20 } else { 5 });
        stream(&place, port, if delay == 0 { bytes } else { bytes / 8 });
        drop(master);
        drop(place.boxery(&["daemon", "stop"]).output());
    }
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [".ssh", ".config/boxery", "vm"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for key in ["host", ".ssh/id_ed25519"] {
            let words = ["-q", "-t", "ed25519", "-N", "", "-f"];
            let made = Command::new("ssh-keygen").args(words).arg(at(key)).status();
            assert!(made.unwrap().success());
        }
        let config = format!(
            "HostKey {0}/host\nAuthorizedKeysFile {0}/.ssh/id_ed25519.pub\nStrictModes no\n\
             UsePAM no\nPidFile none\nLogLevel QUIET\nSetEnv HOME={0}/vm\n",
            folder.path().display()
        );
        fs::write(at("sshd_config"), config).unwrap();
        fs::create_dir_all("/run/sshd").ok();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let config = at("sshd_config");
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                let socket = OwnedFd::from(stream);
                let mut child = Command::new("/usr/sbin/sshd")
                    .arg("-i")
                    .arg("-f")
                    .arg(&config)
                    .stdin(socket.try_clone().unwrap())
                    .stdout(socket)
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap();
                std::thread::spawn(move || child.wait());
            }
        });
        let agent = Command::new("ssh-agent")
            .arg("-D")
            .arg("-a")
            .arg(at("agent"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        while !at("agent").exists() {
            std::thread::yield_now();
        }
        let place = Self {
            folder,
            port,
            agent,
        };
        let added = place
            .command("ssh-add")
            .arg("-q")
            .arg(place.at(".ssh/id_ed25519"))
            .status();
        assert!(added.unwrap().success());
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn configure(&self, port: u16) {
        let user = Command::new("id").arg("-un").output().unwrap();
        let user = String::from_utf8(user.stdout).unwrap();
        let key = fs::read_to_string(self.at("host.pub")).unwrap();
        let known = format!("[127.0.0.1]:{port} {key}");
        fs::write(self.at(".config/boxery/known_hosts"), &known).unwrap();
        fs::write(self.at("known"), known).unwrap();
        let mut text = String::new();
        for pipe in ["native", "system"] {
            let _ = writeln!(
                text,
                "[vm.{pipe}]\ntarget = \"{}@127.0.0.1:{port}\"\ndir = \"/tmp\"\npipe = \"{pipe}\"",
                user.trim()
            );
        }
        fs::write(self.at(".config/boxery/config.toml"), text).unwrap();
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("SSH_AUTH_SOCK", self.at("agent"))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        command
    }

    fn boxery(&self, words: &[&str]) -> Command {
        let mut command = self.command(BOXERY);
        command.args(words).stderr(Stdio::null());
        command
    }

    fn run(&self, pipe: &str, words: &[&str]) -> Command {
        let mut command = self.boxery(&["run", pipe, "--cwd", "/", "--"]);
        command.args(words);
        command
    }

    /// OpenSSH; `shared` uses the connection that the master keeps.
    fn ssh(&self, port: u16, shared: bool, words: &[&str]) -> Command {
        let mut command = self.command("ssh");
        let control = if shared {
            self.at("master")
        } else {
            "none".into()
        };
        for option in [
            format!("ControlPath={}", control.display()),
            format!("UserKnownHostsFile={}", self.at("known").display()),
            "Ciphers=aes256-gcm@openssh.com".to_owned(),
            "BatchMode=yes".to_owned(),
        ] {
            command.args(["-o", &option]);
        }
        command
            .args(["-F", "none", "-T", "-p", &port.to_string(), "127.0.0.1"])
            .args(words);
        command
    }

    fn master(&self, port: u16) -> Master {
        fs::remove_file(self.at("master")).ok();
        let mut command = self.ssh(port, true, &[]);
        let child = command
            .args(["-M", "-N"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while !self.at("master").exists() {
            std::thread::yield_now();
        }
        Master(child)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.agent.kill());
        drop(self.agent.wait());
    }
}

struct Master(Child);

impl Drop for Master {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn time(mut command: Command) -> Duration {
    let start = Instant::now();
    assert!(command.status().unwrap().success(), "{command:?}");
    start.elapsed()
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

fn table(what: &str, rows: &mut [(&str, Vec<Duration>)]) {
    println!("| {what} | p50 ms | p99 ms | x |\n|---|---|---|---|");
    let base = median(&mut rows[0].1);
    for (name, times) in rows {
        let p50 = median(times);
        let p99 = times[times.len() * 99 / 100].as_secs_f64() * 1000.0;
        println!("| {name} | {p50:.2} | {p99:.2} | {:.2} |", p50 / base);
    }
    println!();
}

fn warm(place: &Place, port: u16, rounds: usize) {
    let mut rows = [
        ("ssh, warm ControlMaster", Vec::new()),
        ("boxery run, native", Vec::new()),
        ("boxery run, system", Vec::new()),
    ];
    for round in 0..rounds + 5 {
        let commands = [
            place.ssh(port, true, &["true"]),
            place.run("native", &["true"]),
            place.run("system", &["true"]),
        ];
        for (row, command) in rows.iter_mut().zip(commands) {
            let took = time(command);
            if round >= 5 {
                row.1.push(took);
            }
        }
    }
    table("`true`, warm", &mut rows);
}

fn cold(place: &Place, port: u16, rounds: usize) {
    let mut rows = [
        ("ssh", Vec::new()),
        ("boxery run, native", Vec::new()),
        ("boxery run, system", Vec::new()),
    ];
    for _ in 0..rounds {
        rows[0].1.push(time(place.ssh(port, false, &["true"])));
        for (row, pipe) in [(1, "native"), (2, "system")] {
            assert!(
                place
                    .boxery(&["daemon", "stop"])
                    .status()
                    .unwrap()
                    .success()
            );
            rows[row].1.push(time(place.run(pipe, &["true"])));
        }
    }
    table("`true`, cold, no daemon", &mut rows);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a speed has three digits that matter"
)]
fn stream(place: &Place, port: u16, bytes: usize) {
    let count = bytes.to_string();
    let down = ["head", "-c", &count, "/dev/zero"];
    let up = ["sh", "-c", "cat >/dev/null"];
    let file = place.at("bytes");
    fs::File::create(&file)
        .unwrap()
        .set_len(bytes as u64)
        .unwrap();
    let fed = |mut command: Command| {
        command.stdin(fs::File::open(&file).unwrap());
        command
    };
    for (name, words) in [("down", &down[..]), ("up", &up[..])] {
        let mut rows = [
            ("ssh, warm ControlMaster", Vec::new()),
            ("boxery run, native", Vec::new()),
            ("boxery run, system", Vec::new()),
        ];
        let quoted = ["cat >/dev/null"];
        for _ in 0..3 {
            let for_ssh = if name == "up" { &quoted[..] } else { words };
            rows[0].1.push(time(fed(place.ssh(port, true, for_ssh))));
            rows[1].1.push(time(fed(place.run("native", words))));
            rows[2].1.push(time(fed(place.run("system", words))));
        }
        println!("| {} MiB {name} | MiB/s | x |\n|---|---|---|", bytes / MIB);
        let speed = |times: &mut Vec<Duration>| bytes as f64 / MIB as f64 / median(times) * 1000.0;
        let base = speed(&mut rows[0].1);
        for (name, times) in &mut rows {
            let speed = speed(times);
            println!("| {name} | {speed:.0} | {:.2} |", speed / base);
        }
        println!();
    }
}

/// A port that leads to `port` with a delay each way, and no limit to what is on the
/// way.
fn delayed(port: u16, delay: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.unwrap();
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            for (from, to) in [(&client, &server), (&server, &client)] {
                from.set_nodelay(true).unwrap();
                delay_one(from.try_clone().unwrap(), to.try_clone().unwrap(), delay);
            }
        }
    });
    own
}

type Queue = Arc<(Mutex<VecDeque<(Instant, Vec<u8>)>>, Condvar)>;

fn delay_one(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let queue: Queue = Arc::default();
    let filling = Arc::clone(&queue);
    std::thread::spawn(move || {
        let mut chunk = vec![0; 256 * 1024];
        loop {
            let read = from.read(&mut chunk).unwrap_or(0);
            let due = Instant::now() + delay;
            filling
                .0
                .lock()
                .unwrap()
                .push_back((due, chunk[..read].to_vec()));
            filling.1.notify_one();
            if read == 0 {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        loop {
            let (due, bytes) = {
                let waiting = queue.0.lock().unwrap();
                let mut waiting = queue
                    .1
                    .wait_while(waiting, |queue| queue.is_empty())
                    .unwrap();
                let Some(first) = waiting.pop_front() else {
                    continue;
                };
                first
            };
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if bytes.is_empty() || to.write_all(&bytes).is_err() {
                drop(to.shutdown(Shutdown::Both));
                return;
            }
        }
    });
}
