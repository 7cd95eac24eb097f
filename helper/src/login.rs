//! The environment that the user's login shell makes, captured once.
//!
//! The shell is started as a login shell and as an interactive one, since users
//! set PATH in either's files, and is told to start this program, which writes the
//! environment that it got to a file. What the start-up files print goes nowhere.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process};
use tokio::time::timeout;

use crate::children::Children;
use crate::machine::{self, User};

/// How long start-up files may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Variables that belong to the shell that was asked, not to the login.
const ITS_OWN: &[&[u8]] = &[
    b"_",
    b"PWD",
    b"OLDPWD",
    b"SHLVL",
    b"PS1",
    b"PS2",
    b"PROMPT_COMMAND",
];

/// A login.
#[derive(Debug, Clone)]
pub(crate) struct Login {
    pub(crate) user: User,
    pub(crate) variables: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Why it is only the environment that sshd gave.
    pub(crate) failure: Option<String>,
}

/// What the file of a shell's answer begins with; the helper's number follows.
const ANSWER: &str = "login-";

/// Remove the files of helpers that were killed while they waited for an answer.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(ANSWER));
        let pid = number
            .and_then(|number| number.parse().ok())
            .and_then(Pid::from_raw);
        if let Some(pid) = pid
            && test_kill_process(pid) == Err(Errno::SRCH)
        {
            // Left, it does no harm.
            drop(fs::remove_file(entry.path()));
        }
    }
}

impl Login {
    /// The login as sshd made it.
    pub(crate) fn given() -> Self {
        let variables: BTreeMap<Vec<u8>, Vec<u8>> = crate::environment().into_iter().collect();
        let user = machine::user(|name| variables.get(name.as_bytes()).cloned());
        let mut login = Self {
            user,
            variables,
            failure: None,
        };
        login.complete();
        login
    }

    /// The login as the user's shell makes it. `own` is this program's path.
    pub(crate) async fn capture(children: &Children, own: &OsStr, folder: &Path) -> Self {
        let mut login = Self::given();
        sweep(folder);
        let file = folder.join(format!("{ANSWER}{}", rustix::process::getpid()));
        match ask(&login, children, own, &file).await {
            Ok(variables) => login.variables = variables,
            Err(error) => {
                login.failure = Some(format!(
                    "`{}` didn't tell its environment: {error}",
                    login.user.shell.display()
                ));
            }
        }
        // It was made for this one answer.
        drop(fs::remove_file(&file));
        login.complete();
        login
    }

    /// A variable's value.
    pub(crate) fn variable(&self, name: &str) -> Option<Vec<u8>> {
        self.variables.get(name.as_bytes()).cloned()
    }

    fn complete(&mut self) {
        for name in ITS_OWN {
            self.variables.remove(*name);
        }
        let path = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let user = &self.user;
        let defaults = [
            ("HOME", path(&user.home)),
            ("USER", user.name.clone().into_bytes()),
            ("LOGNAME", user.name.clone().into_bytes()),
            ("SHELL", path(&user.shell)),
            (
                "PATH",
                b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_vec(),
            ),
        ];
        for (name, value) in defaults {
            self.variables.entry(name.into()).or_insert(value);
        }
        // bash under sshd reads .bashrc in every `bash -c` unless it finds itself
        // inside another shell (shell.c, SSH_SOURCE_BASHRC).
        self.variables.insert(b"SHLVL".to_vec(), b"1".to_vec());
    }
}

async fn ask(
    login: &Login,
    children: &Children,
    own: &OsStr,
    file: &Path,
) -> io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let (own, target) = (own.as_bytes(), file.as_os_str().as_bytes());
    if [own, target]
        .iter()
        .any(|text| text.iter().any(|b| b"'\\!\n".contains(b)))
    {
        return Err(io::Error::other("a path that not every shell can quote"));
    }
    let text = [b"exec '", own, b"' print-login '", target, b"'"].concat();
    let shell = &login.user.shell;
    let name = shell.file_name().unwrap_or_default().as_bytes();
    let dashed = [b"-", name].concat();
    let mut command = Command::new(shell);
    // A leading dash makes a login shell of every shell, also of tcsh, which takes
    // `-l` only alone. bash as a login shell passes .bashrc by, so where no
    // profile can name it, it is asked as an interactive one only.
    let profiles = [".bash_profile", ".bash_login", ".profile"];
    let has_profile = profiles
        .iter()
        .any(|file| login.user.home.join(file).exists());
    if name != b"bash" || has_profile {
        command.arg0(OsStr::from_bytes(&dashed));
    }
    // dash and other plain shells read their files when they are login shells;
    // asked to be interactive they would want a terminal.
    let interactive = [
        &b"bash"[..],
        b"zsh",
        b"fish",
        b"tcsh",
        b"csh",
        b"ksh",
        b"mksh",
    ];
    if interactive.contains(&name) && name != b"tcsh" && name != b"csh" {
        command.arg("-i");
    }
    command
        .arg("-c")
        .arg(OsStr::from_bytes(&text))
        .env_clear()
        .envs(
            login
                .variables
                .iter()
                .map(|(name, value)| (OsStr::from_bytes(name), OsStr::from_bytes(value))),
        )
        .env_remove("SHLVL")
        .current_dir(&login.user.home)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command.spawn()?;
    let ended = children.watch(child.id());
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if timeout(PATIENCE, ended).await.is_err() {
        if let Some(group) = group {
            let _: rustix::io::Result<()> = kill_process_group(group, Signal::KILL);
        }
        return Err(io::Error::other("its start-up files didn't end"));
    }
    let bytes = fs::read(file)?;
    let variables: BTreeMap<Vec<u8>, Vec<u8>> = bytes
        .split(|byte| *byte == 0)
        .filter_map(|line| {
            let equals = line.iter().position(|byte| *byte == b'=')?;
            Some((line[..equals].to_vec(), line[equals + 1..].to_vec()))
        })
        .collect();
    Ok(variables)
}

/// Write the environment to a new file: what the login shell starts.
pub(crate) fn print(file: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    for (name, value) in crate::environment() {
        bytes.extend(name);
        bytes.push(b'=');
        bytes.extend(value);
        bytes.push(0);
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?;
    file.write_all(&bytes)
}
