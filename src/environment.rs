//! The environment that a command on the VM is given from here.
//!
//! In this order, the later one wins: what travels by itself, what boxery sets, what
//! the user's configuration passes or asks a program for, what the call names. It
//! goes to the VM in frames: never on a command line, and into no record.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::process::Stdio;
use std::time::Duration;

use boxery_remote::GitUser;
use camino::Utf8Path;
use serde::Deserialize;
use tokio::process::Command;
use tokio::time::timeout;

use crate::app::App;
use crate::env;
use crate::error::Failure;

/// How long a program of the user's may take to tell a value.
const PATIENCE: Duration = Duration::from_secs(30);
/// What boxery sets unless it is given: nothing here can page or ask.
const QUIET: [(&str, &str); 3] = [
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// `[env]` of the user's configuration.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    /// Variables of the laptop that travel too, by name.
    #[serde(default)]
    pass: Vec<String>,
    /// Variables whose value a command on the laptop tells.
    #[serde(default)]
    command: BTreeMap<String, String>,
}

impl Rules {
    /// The variables that it is about, whose values nobody need see.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let pass = self.pass.iter();
        pass.chain(self.command.keys()).map(String::as_str)
    }
}

/// A variable of `[env]` that can't be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RuleError {
    /// The command failed.
    #[error("the command that tells `{name}` ended with {status}: {said}")]
    Failed {
        /// The variable.
        name: String,
        /// How it ended.
        status: String,
        /// The last line of what it said on stderr.
        said: String,
    },
    /// The command can't be run, or doesn't end.
    #[error("the command that tells `{name}` can't be run")]
    Run {
        /// The variable.
        name: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Variables, in the order in which they are set.
pub(crate) type Variables = Vec<(String, Vec<u8>)>;

/// What a command is given from here; `given` is what the call itself names.
pub(crate) async fn variables(
    app: &App,
    rules: &Rules,
    given: &[(String, OsString)],
) -> Result<Variables, Failure> {
    let is_given = |name: &str| given.iter().any(|(key, _)| key == name);
    let travelling = env::travelling().into_iter();
    let mut variables: Variables = travelling
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_vec())))
        .collect();
    let quiet = QUIET.iter().filter(|(name, _)| !is_given(name));
    variables.extend(quiet.map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())));
    for name in rules.pass.iter().filter(|name| !is_given(name)) {
        // One that isn't set here isn't set there.
        if let Some(value) = env::named(name) {
            variables.push((name.clone(), value.into_vec()));
        }
    }
    for (name, command) in &rules.command {
        if !is_given(name) {
            let value = ask(&app.env.home, name, command).await.map_err(|error| {
                Failure::from(error)
                    .hint("the command was not run; mend `[env] command` in the configuration")
            })?;
            variables.push((name.clone(), value));
        }
    }
    let own = given.iter();
    variables.extend(own.map(|(name, value)| (name.clone(), value.as_bytes().to_vec())));
    Ok(variables)
}

/// The value that `command` tells on its stdout, without the newlines at its end. It
/// runs in the user's home: the project has no say in it.
async fn ask(home: &Utf8Path, name: &str, command: &str) -> Result<Vec<u8>, RuleError> {
    let run = |source| RuleError::Run {
        name: name.to_owned(),
        source,
    };
    let running = Command::new("/bin/sh")
        .args(["-c", command])
        .current_dir(home)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = match timeout(PATIENCE, running).await {
        Ok(output) => output.map_err(run)?,
        Err(_) => return Err(run(std::io::ErrorKind::TimedOut.into())),
    };
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let said = stderr.lines().rev().find(|line| !line.trim().is_empty());
        return Err(RuleError::Failed {
            name: name.to_owned(),
            status: output.status.to_string(),
            said: said.unwrap_or("it said nothing").trim().to_owned(),
        });
    }
    let mut value = output.stdout;
    while value.last() == Some(&b'\n') {
        value.pop();
    }
    Ok(value)
}

/// Who the user is to git in `folder`: git itself is asked, since its configuration
/// may include other files by conditions of its own.
pub(crate) async fn git_user(folder: &Utf8Path) -> Option<GitUser> {
    let asked = Command::new("git")
        .args(["config", "--null", "--get-regexp", r"^user\.(name|email)$"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(PATIENCE, asked).await.ok()?.ok()?;
    let mut user = GitUser::default();
    // KEY, newline, VALUE, NUL; the last one counts.
    for entry in output.stdout.split(|byte| *byte == 0) {
        let text = String::from_utf8_lossy(entry);
        match text.split_once('\n') {
            Some(("user.name", name)) => name.clone_into(&mut user.name),
            Some(("user.email", email)) => email.clone_into(&mut user.email),
            Some(_) | None => {}
        }
    }
    let is_empty = user.name.is_empty() && user.email.is_empty();
    (!is_empty).then_some(user)
}
