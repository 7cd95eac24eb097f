//! The system pipe: a child `ssh`, so that every line of `ssh_config` works.
//!
//! Its own messages go to a log (`-E`), apart from the command's stderr, at a
//! level that names the host key; what the log says becomes the same typed
//! errors that the native pipe gives.

use std::process::Stdio;

use camino::{Utf8Path, Utf8PathBuf};
use tokio::process::Command;
use tokio::sync::oneshot;

use super::{Channel, ChannelEnd, log};
use crate::known_hosts::HostKey;
use crate::scratch::Scratch;
use crate::ssh_config::target_words;
use crate::{HostOptions, Laptop, RemoteError, Target};

/// How to start `ssh` for one target.
#[derive(Debug)]
pub struct SystemPipe {
    program: Utf8PathBuf,
    target: Target,
    options: HostOptions,
    config: Option<Utf8PathBuf>,
    /// Whether ssh may ask a person.
    interactive: bool,
    /// Whether ssh leaves a key with the agent once somebody has typed its passphrase.
    keep_keys: bool,
    /// Its logs; private and removed with the pipe.
    folder: Scratch,
    logs: std::sync::atomic::AtomicUsize,
}

impl SystemPipe {
    /// Prepare; nothing is started before the first command.
    pub(crate) fn new(
        target: Target,
        options: HostOptions,
        laptop: &Laptop,
        interactive: bool,
    ) -> Result<Self, RemoteError> {
        let parent = std::env::temp_dir();
        let folder = Scratch::create(&parent).map_err(|source| RemoteError::File {
            path: Utf8PathBuf::from_path_buf(parent).unwrap_or_default(),
            source,
        })?;
        Ok(Self {
            program: laptop.ssh_program.clone(),
            target,
            options,
            config: laptop.ssh_config.clone(),
            interactive,
            keep_keys: laptop.keep_keys,
            folder,
            logs: std::sync::atomic::AtomicUsize::new(0),
        })
    }

    /// Our options, whatever the configuration says.
    fn command(&self, log: &Utf8Path, known_hosts: &[Utf8PathBuf], strict: &str) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(config) = &self.config {
            command.args(["-F", config.as_str()]);
        }
        command.args(["-T", "-e", "none", "-E", log.as_str()]);
        let known_hosts: Vec<String> = known_hosts.iter().map(|path| quote(path)).collect();
        let keepalive = self.options.keepalive.as_secs();
        for option in [
            format!("BatchMode={}", if self.interactive { "no" } else { "yes" }),
            format!("StrictHostKeyChecking={strict}"),
            format!("UserKnownHostsFile={}", known_hosts.join(" ")),
            format!("ConnectTimeout={}", self.options.connect_timeout.as_secs()),
            format!("ServerAliveInterval={keepalive}"),
            format!("ServerAliveCountMax={}", self.options.keepalive_max),
            "ClearAllForwardings=yes".to_owned(),
            "Compression=no".to_owned(),
            "ControlMaster=no".to_owned(),
            "ControlPath=none".to_owned(),
            "ForkAfterAuthentication=no".to_owned(),
            "ForwardX11=no".to_owned(),
            "LogLevel=DEBUG1".to_owned(),
            "PermitLocalCommand=no".to_owned(),
            "RemoteCommand=none".to_owned(),
            "RequestTTY=no".to_owned(),
            "SessionType=default".to_owned(),
            "StdinNull=no".to_owned(),
            "UpdateHostKeys=no".to_owned(),
        ] {
            command.args(["-o", &option]);
        }
        if self.keep_keys {
            command.args(["-o", "AddKeysToAgent=yes"]);
        }
        command
            .kill_on_drop(true)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if !self.interactive {
            // Ctrl-C is ours to turn into an orderly end, and a jump host's
            // ssh, which doesn't inherit BatchMode, must not ask either.
            command.process_group(0).env("SSH_ASKPASS_REQUIRE", "never");
        }
        command
    }

    fn next_log(&self) -> Utf8PathBuf {
        let number = self.logs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = self.folder.path().join(format!("{number}.log"));
        Utf8PathBuf::from_path_buf(path).unwrap_or_default()
    }

    /// Start `command` with the login shell.
    pub fn exec(&self, command: &str) -> Result<Channel, RemoteError> {
        let path = self.next_log();
        let mut ssh = self.command(&path, &self.options.known_hosts, "yes");
        ssh.args(target_words(&self.target)).arg(command);
        let started = |source| RemoteError::Start {
            program: self.program.to_string(),
            source,
        };
        let mut child = ssh.spawn().map_err(started)?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(started(std::io::ErrorKind::BrokenPipe.into()));
        };
        let (mut end, end_reader) = oneshot::channel();
        let options = self.options.clone();
        let reading = path.clone();
        tokio::spawn(async move {
            let status = tokio::select! {
                status = child.wait() => status,
                // Nobody waits for this command any more.
                () = end.closed() => {
                    drop(child.kill().await);
                    return;
                }
            };
            let code = status.ok().and_then(|status| status.code());
            let ended = match (code, log::failure(&reading, &options)) {
                (Some(255) | None, Some(error)) => ChannelEnd::Failed(error),
                (None, None) => ChannelEnd::Failed(RemoteError::Lost),
                (Some(code), _) => ChannelEnd::Status(code.unsigned_abs()),
            };
            drop(end.send(ended));
        });
        let (scan, alone) = (self.scan_command(true), self.scan_command(false));
        Ok(Channel {
            stdin: Box::pin(stdin),
            stdout: Box::pin(stdout),
            stderr: Box::pin(stderr),
            end: Box::pin(async move {
                let ended = end_reader
                    .await
                    .unwrap_or(ChannelEnd::Failed(RemoteError::Lost));
                match ended {
                    ChannelEnd::Failed(RemoteError::HostKeyUnknown {
                        host,
                        algorithm,
                        fingerprint,
                        ..
                    }) => ChannelEnd::Failed(RemoteError::HostKeyUnknown {
                        line: scan.line(&fingerprint).await.unwrap_or_default(),
                        host,
                        algorithm,
                        fingerprint,
                    }),
                    ChannelEnd::Failed(RemoteError::HostKeyChanged {
                        host,
                        algorithm,
                        fingerprint,
                        known,
                        ..
                    }) => ChannelEnd::Failed(RemoteError::HostKeyChanged {
                        line: alone.line(&fingerprint).await.unwrap_or_default(),
                        host,
                        algorithm,
                        fingerprint,
                        known,
                    }),
                    ended => ended,
                }
            }),
        })
    }

    /// The same connection up to the host key and no further: ssh writes the
    /// unknown key into a file of ours, which holds the line to accept. Without the
    /// `known` ones every key is unknown.
    fn scan_command(&self, known: bool) -> Scan {
        let name = if known { "scanned" } else { "scanned-alone" };
        let path = self.folder.path().join(name);
        let path = Utf8PathBuf::from_path_buf(path).unwrap_or_default();
        let mut known_hosts = vec![path.clone()];
        if known {
            known_hosts.extend(self.options.known_hosts.iter().cloned());
        }
        let mut command = self.command(&self.next_log(), &known_hosts, "accept-new");
        command.args(["-o", "PreferredAuthentications=none"]);
        command.args(["-o", "HashKnownHosts=no"]);
        command.args(target_words(&self.target)).arg("exit");
        command.stdin(Stdio::null());
        Scan { command, path }
    }

    /// Where it leads.
    pub fn options(&self) -> &HostOptions {
        &self.options
    }

    /// The server's key, once a command has run.
    pub fn host_key(&self) -> Option<HostKey> {
        let path = self.folder.path().join("0.log");
        let path = Utf8PathBuf::from_path_buf(path).ok()?;
        let (algorithm, fingerprint) = log::host_key(&std::fs::read_to_string(path).ok()?)?;
        Some(HostKey {
            algorithm,
            fingerprint,
            line: String::new(),
        })
    }
}

struct Scan {
    command: Command,
    path: Utf8PathBuf,
}

impl Scan {
    /// The known-hosts line of the key with this fingerprint.
    async fn line(mut self, fingerprint: &str) -> Option<String> {
        drop(self.command.output().await);
        let text = std::fs::read_to_string(&self.path).ok()?;
        let mut keys = text.lines().filter_map(HostKey::parse);
        keys.find(|key| key.fingerprint == fingerprint)
            .map(|key| key.line)
    }
}

/// A path as one word of an option's value.
fn quote(path: &Utf8Path) -> String {
    let text = path.as_str();
    let escaped = text.replace('%', "%%");
    if escaped.contains([' ', '\t']) {
        format!("\"{escaped}\"")
    } else {
        escaped
    }
}
