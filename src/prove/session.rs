//! One session of an agent under proof: it follows a script, and what came of each
//! call is looked at from outside.

use std::fs;
use std::io;
use std::process::Stdio;
use std::sync::Arc;

use boxery_pin::Mode;
use boxery_router::{ExecutableId, Ticket};
use camino::{Utf8Path, Utf8PathBuf};

use super::child::{Ended, wait};
use super::scratch::Scratch;
use super::script::CallResult;
use super::turns::{MAIN_WORD, Texts, Turns};
use super::{Candidate, ModelServer};
use crate::error::Failure;
use crate::random;

/// The calls of a session: boxery's mode, by whom, with which tool.
pub(crate) const CALLS: &[(&str, Mode, &str)] = &[
    ("guard-bash", Mode::Guard, "Bash"),
    ("guard-monitor", Mode::Guard, "Monitor"),
    ("guard-sub-bash", Mode::Guard, "a subagent's Bash"),
    ("guard-sub-monitor", Mode::Guard, "a subagent's Monitor"),
    ("bash", Mode::Redirect, "Bash"),
    ("monitor", Mode::Redirect, "Monitor"),
    ("sub-bash", Mode::Redirect, "a subagent's Bash"),
    ("sub-monitor", Mode::Redirect, "a subagent's Monitor"),
];

/// One session in one permission mode: in guard first, then in redirect.
pub(crate) struct Session<'a> {
    pub(crate) scratch: &'a Scratch,
    pub(crate) candidate: &'a Candidate,
    pub(crate) permission_mode: &'a str,
}

/// What came of one session.
#[derive(Debug)]
pub(crate) struct SessionReport {
    /// The agent's own word for its version.
    pub(crate) version: String,
    /// The program file of the process that called the hook.
    pub(crate) executable: ExecutableId,
    /// For each of [`CALLS`] what was wrong, if anything.
    pub(crate) problems: Vec<Option<String>>,
}

impl Session<'_> {
    /// Play the session to its end.
    pub(crate) fn play(&self) -> Result<SessionReport, Failure> {
        let name = self.permission_mode;
        let project = self.scratch.add_project(name, Mode::Guard)?;
        let copy = self.seed(&project)?;
        let texts = Texts {
            nonce: random::hex()?,
        };
        let note = self.scratch.root().join(format!("{name}.executable"));
        let script = Arc::new(
            Turns {
                session: self,
                texts: &texts,
                project: &project,
                note: &note,
            }
            .script(),
        );
        let server = ModelServer::start(Arc::clone(&script))?;
        let ended = self.start(&project, &note, &server.url())?;
        drop(server);
        let executable = read_executable(&note, &self.candidate.program)?;
        let version = script.agent_version();
        let version = version.ok_or_else(|| ended.failure("it asked its model nothing"))?;
        let results = script.results();
        let mut problems = Vec::new();
        for (label, mode, _) in CALLS {
            let told = results.iter().find(|result| result.label == *label);
            problems.push(match (told, mode) {
                _ if is_here(&project.join(Texts::marker(label))) => {
                    Some("it ran on this machine".to_owned())
                }
                (None, _) => Some(ended.describe("the call came to no result")),
                (Some(told), Mode::Guard) => self.judge_denial(told),
                (Some(told), Mode::Redirect) => {
                    self.judge_run(&texts, label, told, &project, &copy)?
                }
            });
        }
        Ok(SessionReport {
            version,
            executable,
            problems,
        })
    }

    /// Make the project's copy on the VM; gives its path there.
    fn seed(&self, project: &Utf8Path) -> Result<String, Failure> {
        let vm = self.scratch.vm().as_str();
        self.scratch.succeed(project, &["vm", "seed", vm])?;
        let output = self.scratch.succeed(project, &["run", vm, "--", "pwd"])?;
        Ok(String::from_utf8_lossy(&output.stdout)
            .trim_end_matches('\n')
            .to_owned())
    }

    /// Start the agent and wait for its end.
    fn start(&self, project: &Utf8Path, note: &Utf8Path, model: &str) -> Result<Ended, Failure> {
        let home = self.home()?;
        let mut command = self.scratch.command(&self.candidate.program, project);
        command
            .args(&self.candidate.arguments)
            .args(["-p", &format!("{MAIN_WORD}: follow the script")])
            .args(["--permission-mode", self.permission_mode])
            .env("HOME", &home)
            .env("CLAUDE_CONFIG_DIR", home.join(".claude"))
            .env("ANTHROPIC_BASE_URL", model)
            .env("ANTHROPIC_API_KEY", "boxery-proof-no-key")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .env(NOTE_VARIABLE, note)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if rustix::process::geteuid().is_root() {
            // Claude Code refuses bypassPermissions to root without it (2.1.332).
            command.env("IS_SANDBOX", "1");
        }
        let interrupt = self.scratch.interrupt();
        let child = interrupt.spawn(&mut command).map_err(|error| {
            Failure::from(format!(
                "cannot start `{}`: {error}",
                self.candidate.program
            ))
        })?;
        let group = rustix::process::Pid::from_child(&child);
        let ended = wait(child);
        interrupt.ended(group);
        Ok(ended?)
    }

    /// A home of this session's own, with the scratch settings: sessions that start
    /// at once in one home wait for each other's locks.
    fn home(&self) -> Result<Utf8PathBuf, Failure> {
        let home = self.scratch.root().join("homes").join(self.permission_mode);
        fs::create_dir_all(home.join(".claude"))?;
        fs::copy(self.scratch.settings(), home.join(".claude/settings.json"))?;
        Ok(home)
    }

    /// What is wrong with a call in guard that didn't run here.
    fn judge_denial(&self, told: &CallResult) -> Option<String> {
        let explained =
            told.text.contains("vm_bash") && told.text.contains(self.scratch.vm().as_str());
        match (told.is_error, explained) {
            (true, true) => None,
            (false, _) => Some(format!(
                "it wasn't denied; the model was told: {}",
                short(&told.text)
            )),
            (true, false) => Some(format!(
                "the model wasn't told why; it was told: {}",
                short(&told.text)
            )),
        }
    }

    /// What is wrong with a call in redirect that didn't run here.
    fn judge_run(
        &self,
        texts: &Texts,
        label: &str,
        told: &CallResult,
        project: &Utf8Path,
        copy: &str,
    ) -> Result<Option<String>, Failure> {
        let vm = self.scratch.vm().as_str();
        let marker = Texts::marker(label);
        let content = self
            .scratch
            .boxery(project, &["run", vm, "--cwd", copy, "--", "cat", &marker])?;
        if content.stdout != texts.content(label).as_bytes() {
            return Ok(Some(format!(
                "it didn't run in the VM; the model was told: {}",
                short(&told.text)
            )));
        }
        if told.is_error {
            return Ok(Some(format!(
                "the model was told of an error: {}",
                short(&told.text)
            )));
        }
        Ok((!self.ticket_taken(&texts.command(label))?)
            .then(|| "its ticket wasn't taken".to_owned()))
    }

    fn ticket_taken(&self, command: &str) -> io::Result<bool> {
        let digest = Ticket::digest(command);
        for entry in fs::read_dir(self.scratch.state("tickets/taken"))? {
            let ticket: Ticket = serde_json::from_slice(&fs::read(entry?.path())?)?;
            if ticket.text_sha256 == digest {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Names, for a hook of the scratch settings, the file in which it notes the
/// program of the process that calls hooks.
pub(crate) const NOTE_VARIABLE: &str = "BOXERY_PROOF_NOTE";

/// The file in the note, else the candidate's program with its links resolved.
pub(crate) fn read_executable(
    note: &Utf8Path,
    program: &Utf8Path,
) -> Result<ExecutableId, Failure> {
    let path = match fs::read_to_string(note) {
        Ok(path) if !path.trim_end().is_empty() => Utf8PathBuf::from(path.trim_end()),
        Ok(_) | Err(_) => program.canonicalize_utf8()?,
    };
    Ok(ExecutableId::read(&path)?)
}

fn is_here(path: &Utf8Path) -> bool {
    path.as_std_path().symlink_metadata().is_ok()
}

/// A long text's start and end: a denial says at its end why it isn't a rewrite.
fn short(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= 400 {
        return text.to_owned();
    }
    let (start, end) = (&letters[..150], &letters[letters.len() - 250..]);
    start.iter().chain(&['…']).chain(end).collect()
}
