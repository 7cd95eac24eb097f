//! The proof as a whole: every mode at once, and the verdict.

use std::fs;
use std::io::Write as _;
use std::time::Instant;

use boxery_pin::{AgentId, Mode};
use boxery_record::{Event, Kind};
use boxery_router::{ExecutableId, Proof, Proofs};
use camino::Utf8Path;
use serde_json::{Value, json};

use super::Candidate;
use super::scratch::Scratch;
use super::session::{CALLS, NOTE_VARIABLE, Session, SessionReport};
use crate::error::Failure;

/// The sandbox mode under which proofs are made: Claude Code's own sandbox is off.
pub(crate) const SANDBOX_MODE: &str = "off";

/// What one call came to in one mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    /// The agent's permission mode.
    pub(crate) permission_mode: String,
    /// boxery's mode.
    pub(crate) mode: Mode,
    /// The call: who, which tool.
    pub(crate) call: &'static str,
    /// What was wrong.
    pub(crate) problem: Option<String>,
}

/// What a proof found.
#[derive(Debug)]
pub(crate) struct ProofReport {
    /// The agent.
    pub(crate) agent: AgentId,
    /// Its own word for its version.
    pub(crate) version: String,
    /// The program file of the process that called the hook.
    pub(crate) executable: ExecutableId,
    /// Every check.
    pub(crate) checks: Vec<Check>,
    /// How long it took.
    pub(crate) seconds: f64,
}

impl ProofReport {
    /// The permission modes in which every check held.
    pub(crate) fn proven(&self) -> Vec<&str> {
        let mut modes: Vec<&str> = Vec::new();
        for check in &self.checks {
            if !modes.contains(&check.permission_mode.as_str()) {
                modes.push(&check.permission_mode);
            }
        }
        modes.retain(|mode| {
            self.checks
                .iter()
                .filter(|check| check.permission_mode == *mode)
                .all(|check| check.problem.is_none())
        });
        modes
    }

    /// Whether every check held.
    pub(crate) fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.problem.is_none())
    }

    /// What the record says of it.
    pub(crate) fn event(&self, now: u64) -> Event {
        let proven = self.proven();
        let detail = if proven.is_empty() {
            format!("{} is not proven", self.version)
        } else {
            format!("{} is proven in {}", self.version, proven.join(", "))
        };
        Event {
            agent: Some(self.agent.to_string()),
            detail: Some(detail),
            ..Event::new(now, Kind::Proof)
        }
    }

    /// Keep the proof of each mode that is proven.
    pub(crate) fn store(&self, proofs: &Proofs, now: u64) -> Result<(), Failure> {
        for mode in self.proven() {
            proofs.write(&Proof {
                version: Proof::VERSION,
                agent: self.agent.clone(),
                executable: self.executable.clone(),
                permission_mode: mode.to_owned(),
                sandbox_mode: SANDBOX_MODE.to_owned(),
                agent_version: self.version.clone(),
                proven_at: now,
            })?;
        }
        Ok(())
    }
}

/// Let `candidate` call its shell tools in each of `permission_modes`, in guard and
/// in redirect, and look at what comes of it.
///
/// Everything happens in folders of its own: nothing of the user's is read or
/// written. `binary` is boxery.
pub(crate) fn prove(
    binary: &Utf8Path,
    candidate: &Candidate,
    permission_modes: &[&str],
) -> Result<ProofReport, Failure> {
    let started = Instant::now();
    let scratch = Scratch::new(binary, "scratch")?;
    write_settings(&scratch)?;
    scratch.succeed(
        scratch.root(),
        &["hook", "install", candidate.agent.0.as_str()],
    )?;
    scratch.add_vm()?;
    let sessions: Vec<Session<'_>> = permission_modes
        .iter()
        .map(|permission_mode| Session {
            scratch: &scratch,
            candidate,
            permission_mode,
        })
        .collect();
    let reports: Vec<Result<SessionReport, Failure>> = std::thread::scope(|scope| {
        let running: Vec<_> = sessions
            .iter()
            .map(|session| scope.spawn(|| session.play()))
            .collect();
        running
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err("a session of the proof broke off".into()))
            })
            .collect()
    });
    let mut checks = Vec::new();
    let mut seen = None;
    for (session, report) in sessions.iter().zip(reports) {
        let report = report?;
        for ((_, mode, call), problem) in CALLS.iter().zip(report.problems) {
            checks.push(Check {
                permission_mode: session.permission_mode.to_owned(),
                mode: *mode,
                call,
                problem,
            });
        }
        let (_, executable) = seen.get_or_insert((report.version, report.executable.clone()));
        if *executable != report.executable {
            return Err("the agent's program changed during the proof".into());
        }
    }
    let (version, executable) = seen.ok_or("no permission mode was given")?;
    drop(sessions);
    scratch.close()?;
    let seconds = started.elapsed().as_secs_f64();
    Ok(ProofReport {
        agent: candidate.agent.clone(),
        version,
        executable,
        checks,
        seconds,
    })
}

/// The scratch settings before boxery's hook is installed: leave for the calls, which
/// mode `default` needs without a user, and a hook that notes the agent's program.
fn write_settings(scratch: &Scratch) -> Result<(), Failure> {
    let note = format!(
        "readlink \"/proc/$PPID/exe\" >\"${NOTE_VARIABLE}.new\" && mv \"${NOTE_VARIABLE}.new\" \"${NOTE_VARIABLE}\"; exit 0"
    );
    let settings: Value = json!({
        "permissions": {"allow": ["Bash", "Monitor", "ToolSearch", "Agent", "Task"]},
        "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": note, "timeout": 5}]}]},
    });
    let mut file = fs::File::create(scratch.settings())?;
    file.write_all(settings.to_string().as_bytes())?;
    Ok(())
}
