//! What can go wrong on the way to a VM, one variant per message.

use std::io;

use boxery_wire::Misplaced;
use camino::Utf8PathBuf;

/// A VM that could not be reached, or a command that could not be started there.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The target's text names no host.
    #[error("`{target}` is no SSH target: {reason}")]
    BadTarget {
        /// What was given.
        target: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is no `ssh` program, and the target needs one.
    #[error("`{target}` needs the `ssh` program, and it isn't installed")]
    NoSshProgram {
        /// The target.
        target: String,
    },
    /// `ssh -G` refused the target.
    #[error("ssh can't resolve `{target}`: {detail}")]
    SshConfig {
        /// The target.
        target: String,
        /// ssh's own words.
        detail: String,
    },
    /// The native pipe was asked for and can't do what `ssh_config` says.
    #[error("the native pipe can't do what the ssh configuration of `{target}` says: {line}")]
    NotNative {
        /// The target.
        target: String,
        /// The first line that it doesn't support.
        line: String,
    },
    /// A program of this machine could not be started.
    #[error("cannot start `{program}`")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file of this machine could not be read or written.
    #[error("cannot use `{path}`")]
    File {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The host has no address.
    #[error("cannot resolve `{host}`")]
    Resolve {
        /// The host.
        host: String,
    },
    /// Nothing listens there.
    #[error("connection to {address} refused")]
    Refused {
        /// Host and port.
        address: String,
    },
    /// The network doesn't lead there.
    #[error("cannot reach {address}: {detail}")]
    Unreachable {
        /// Host and port.
        address: String,
        /// What the system said.
        detail: String,
    },
    /// No answer in time.
    #[error("no answer from {address} in {seconds} s ({step})")]
    Timeout {
        /// Host and port.
        address: String,
        /// How long was waited.
        seconds: u64,
        /// What was waited for.
        step: &'static str,
    },
    /// No known-hosts file names the host.
    #[error("the host key of {host} is unknown: {algorithm} {fingerprint}")]
    HostKeyUnknown {
        /// The host as known-hosts files write it.
        host: String,
        /// Such as `ssh-ed25519`.
        algorithm: String,
        /// `SHA256:…`.
        fingerprint: String,
        /// The line to [`crate::accept`]; empty when it could not be had.
        line: String,
    },
    /// It isn't the machine that it was.
    #[error("it isn't the machine that was added under this name: its machine id is {}, not {known}", or_none(.found))]
    OtherMachine {
        /// The id of the machine that was added.
        known: String,
        /// The id that this one has, empty for none.
        found: String,
    },
    /// A known-hosts file names another key for this host.
    #[error(
        "the host key of {host} changed: it now shows {fingerprint}, which isn't the one in {known}"
    )]
    HostKeyChanged {
        /// The host as known-hosts files write it.
        host: String,
        /// Such as `ssh-ed25519`.
        algorithm: String,
        /// The line to [`crate::replace`]; empty when it could not be had.
        line: String,
        /// `SHA256:…` of the key that was shown.
        fingerprint: String,
        /// File and line of the known key.
        known: String,
    },
    /// A known-hosts file revokes this key.
    #[error("the host key {fingerprint} of {host} is marked as revoked")]
    HostKeyRevoked {
        /// The host as known-hosts files write it.
        host: String,
        /// `SHA256:…`.
        fingerprint: String,
    },
    /// The host is known by a certificate authority only.
    #[error("{host} is known by a certificate authority, which the native pipe can't check")]
    HostKeyAuthority {
        /// The host as known-hosts files write it.
        host: String,
    },
    /// The server took none of our keys.
    #[error("{user}@{host} takes none of the keys that were offered ({offered})")]
    Auth {
        /// The user.
        user: String,
        /// The host.
        host: String,
        /// Which keys.
        offered: String,
    },
    /// The one key left needs a passphrase and nobody can be asked.
    #[error("the key `{path}` is encrypted")]
    EncryptedKey {
        /// The key file.
        path: Utf8PathBuf,
    },
    /// SSH itself failed in another way.
    #[error("SSH to {address} failed: {detail}")]
    Ssh {
        /// Host and port.
        address: String,
        /// What SSH said.
        detail: String,
    },
    /// The login shell ended or talked without ever starting our `/bin/sh`.
    #[error("the login shell of the VM didn't start the command{}", said(.output))]
    NoGreeting {
        /// The first bytes it wrote instead.
        output: String,
    },
    /// The connection broke while the command ran.
    #[error("the connection was lost while the command ran; it may have ended or not")]
    Lost,
    /// The command's own shell on the VM was killed.
    #[error("the run on the VM ended without a status; something killed its shell")]
    NoStatus,
    /// The VM went down, and the command with it.
    #[error("the VM was restarted while the command ran, and the command ended with it")]
    Restarted,
    /// Nobody came back in time.
    #[error("the connection was lost for so long that the run was ended on the VM")]
    GracePassed,
    /// The VM has no place to keep the output of runs.
    #[error("no folder of the VM takes the output of runs: {detail}")]
    NoState {
        /// The folders that were tried.
        detail: String,
    },
    /// The VM's system refused.
    #[error("the VM refused {what}: {detail}")]
    VmRefused {
        /// What was tried.
        what: String,
        /// The system's words.
        detail: String,
    },
    /// `bash` was asked for and the VM has none.
    #[error("there is no bash on the VM")]
    NoBash,
    /// The folder to run in isn't there.
    #[error("the folder `{path}` isn't on the VM")]
    FolderGone {
        /// The folder.
        path: String,
    },
    /// The folder to run in can't be entered.
    #[error("the folder `{path}` of the VM can't be entered")]
    FolderDenied {
        /// The folder.
        path: String,
    },
    /// The copy can't be seen at the project's own path.
    #[error("the copy can't be shown at the project's own path: {detail}")]
    NoView {
        /// Why not.
        detail: String,
    },
    /// The VM's disk is full.
    #[error("no space left on the VM's disk at `{path}`")]
    NoSpace {
        /// The folder.
        path: String,
    },
    /// The VM's folder can't be written.
    #[error("`{path}` on the VM can't be written: {detail}")]
    NotWritable {
        /// The folder.
        path: String,
        /// What the VM said.
        detail: String,
    },
    /// The VM is of a kind for which there is no helper.
    #[error("the VM is `{system}`: {why}")]
    WrongMachine {
        /// System and machine as `uname` names them.
        system: String,
        /// Why there is no helper for it.
        why: String,
    },
    /// No folder of the VM takes the helper.
    #[error("no folder of the VM takes boxery's helper (4 MB, executable); tried {tried}")]
    NoFolder {
        /// The folders.
        tried: String,
    },
    /// The helper on the VM isn't ours, or doesn't start.
    #[error("boxery's helper on the VM didn't start: {detail}")]
    Helper {
        /// What it said, or what is wrong with it.
        detail: String,
    },
    /// There is nothing to copy, or no place for the copy.
    #[error("{}", misplaced(.path, *.why))]
    Misplaced {
        /// The path as it was named.
        path: String,
        /// What is wrong with it.
        why: Misplaced,
    },
    /// A copy met a path that can't be read or written.
    #[error("the copy ended at {path}: {why}")]
    Copy {
        /// The path, with the side that it is on.
        path: String,
        /// What the system said.
        why: String,
    },
    /// The connection broke for good during a copy.
    #[error("the connection was lost during the copy")]
    CopyLost,
    /// What the daemon met on the way.
    #[error("{text}")]
    Told {
        /// Its error, causes included.
        text: String,
        /// What to do next.
        hint: Option<String>,
    },
    /// The request can't be sent.
    #[error("{what}")]
    BadRequest {
        /// What is wrong with it.
        what: String,
    },
    /// The VM on this machine didn't come up.
    #[error("the VM on this machine didn't start: {detail}")]
    Embedded {
        /// What its log says.
        detail: String,
    },
}

fn misplaced(path: &str, why: Misplaced) -> String {
    match why {
        Misplaced::Absent => format!("there is no `{path}`"),
        Misplaced::ParentGone => format!("the folder that `{path}` would lie in isn't there"),
        Misplaced::NoFolder => format!("`{path}` is no folder"),
        Misplaced::FolderThere => format!("there is a folder at `{path}` that this would replace"),
        Misplaced::FileThere => format!("there is a file at `{path}` that this would replace"),
        Misplaced::System(errno) => format!(
            "cannot look at `{path}`: {}",
            io::Error::from_raw_os_error(errno)
        ),
    }
}

fn or_none(id: &str) -> &str {
    if id.is_empty() { "none" } else { id }
}

fn said(output: &str) -> String {
    if output.is_empty() {
        String::new()
    } else {
        format!("; it said: {output}")
    }
}

impl RemoteError {
    /// The error and what caused it, as one text.
    pub(crate) fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }

    /// What to do next; `vm` is the name of the VM in commands.
    pub fn hint(&self, vm: &str) -> Option<String> {
        let hint = match self {
            Self::BadTarget { .. } => {
                "give user@host, user@host:port or a Host of your ssh configuration".to_owned()
            }
            Self::NoSshProgram { .. } => {
                "install OpenSSH's client, or give user@host:port and have no ssh configuration"
                    .to_owned()
            }
            Self::SshConfig { .. } => "try `ssh -G` with the same host".to_owned(),
            Self::NotNative { .. } | Self::HostKeyAuthority { .. } => {
                format!("set pipe = \"system\" (or \"auto\") for VM {vm}")
            }
            Self::Resolve { .. } => "check the host's name and your network".to_owned(),
            Self::Refused { .. } => {
                "is the VM up, and does its SSH server listen on that port?".to_owned()
            }
            Self::Unreachable { .. } | Self::Timeout { .. } => {
                format!("is the VM up? `boxery vm doctor {vm}` checks each step")
            }
            Self::HostKeyUnknown { .. } => {
                format!("compare the fingerprint with the VM's own, then `boxery vm connect {vm}`")
            }
            Self::HostKeyChanged { .. } => format!(
                "if the VM was rebuilt, `boxery vm renew {vm}`; if not, somebody may be in the middle"
            ),
            Self::OtherMachine { .. } => format!(
                "if the VM was rebuilt, `boxery vm renew {vm}`; if not, its name or address leads elsewhere"
            ),
            Self::HostKeyRevoked { .. } => {
                "this key must not be used; ask whoever revoked it".to_owned()
            }
            Self::Auth { .. } => {
                "load the right key into your agent (`ssh-add`) or name it in ssh_config \
                 (IdentityFile)"
                    .to_owned()
            }
            Self::EncryptedKey { .. } => {
                format!("`boxery vm connect {vm}` on a terminal asks for its passphrase")
            }
            Self::Ssh { .. } | Self::Embedded { .. } => {
                format!("`boxery vm doctor {vm}` checks each step")
            }
            Self::NoGreeting { .. } => {
                "boxery needs a login shell that runs commands: no nologin, no forced command"
                    .to_owned()
            }
            Self::Lost | Self::NoStatus | Self::Restarted | Self::GracePassed => {
                "look on the VM before you run it again: boxery never starts a command twice"
                    .to_owned()
            }
            Self::NoBash => "install bash on the VM; sh is never used instead".to_owned(),
            Self::FolderGone { .. } => {
                format!("`boxery sync {vm}` sends the project, if it is part of one")
            }
            Self::NoView { .. } => format!(
                "set `paths = \"mapped\"` below `[vm.{vm}]` in config.toml; `boxery vm doctor {vm}` tells more"
            ),
            Self::NoSpace { .. } => "free some space on the VM".to_owned(),
            Self::FolderDenied { .. } => {
                "let the VM's user enter it, or name another folder with `--cwd`".to_owned()
            }
            Self::NotWritable { .. } => "let the VM's user write there, or take another folder: \
                 `--dir` of `boxery vm add`, `dir` in config.toml"
                .to_owned(),
            Self::NoState { .. } => "let the VM's user write to one of them".to_owned(),
            Self::NoFolder { .. } => "let the VM's user write to one of them, on a file system \
                 without `noexec` that has 4 MB left"
                .to_owned(),
            Self::Helper { .. } => format!("`boxery vm doctor {vm}` checks each step"),
            Self::Misplaced { why, .. } => match why {
                Misplaced::ParentGone => "make it first (`mkdir -p`), or name another".to_owned(),
                Misplaced::Absent => "check its name, and which side it is on".to_owned(),
                Misplaced::FolderThere | Misplaced::FileThere => {
                    "move it away, or copy under another name".to_owned()
                }
                Misplaced::NoFolder | Misplaced::System(_) => return None,
            },
            Self::Copy { .. } => {
                "what is in place stays; the same command goes on with the rest".to_owned()
            }
            Self::CopyLost => {
                "what came is kept; the same command goes on where it broke".to_owned()
            }
            Self::Told { hint, .. } => return hint.clone(),
            Self::WrongMachine { .. }
            | Self::VmRefused { .. }
            | Self::Start { .. }
            | Self::File { .. }
            | Self::BadRequest { .. } => return None,
        };
        Some(hint)
    }
}
