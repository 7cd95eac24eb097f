//! One session of an agent under proof: it follows a script, and what came of each
//! call is looked at from outside.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use boxery_pin::Mode;
use boxery_router::{ExecutableId, Proof, Proofs, Ticket};
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;

use super::scratch::Scratch;
use super::{Call, Candidate, Lane, ModelServer, SANDBOX_MODE, Script, Turn};
use crate::env;
use crate::error::Failure;
use crate::random;

/// No session of a script takes that long.
const DEADLINE: Duration = Duration::from_secs(45);

/// The calls of a session: by whom, with which tool.
pub(crate) const CALLS: &[(&str, &str)] = &[
    ("bash", "Bash"),
    ("monitor", "Monitor"),
    ("sub-bash", "a subagent's Bash"),
    ("sub-monitor", "a subagent's Monitor"),
];

const MAIN_WORD: &str = "BOXERY-PROOF-MAIN";
const SUB_WORD: &str = "BOXERY-PROOF-SUBAGENT";

/// One session: a permission mode, and what boxery is to do in it.
pub(crate) struct Session<'a> {
    pub(crate) scratch: &'a Scratch,
    pub(crate) candidate: &'a Candidate,
    pub(crate) permission_mode: &'a str,
    pub(crate) mode: Mode,
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

/// What the model calls, told apart from every other proof's by a random word.
struct Texts {
    nonce: String,
}

impl Texts {
    fn marker(label: &str) -> String {
        format!("{label}.marker")
    }

    /// A text that only a faithful shell gets right: quotes, a substitution, a
    /// semicolon, two lines.
    fn command(&self, label: &str) -> String {
        let marker = Self::marker(label);
        let nonce = &self.nonce;
        format!(
            "printf '%s' \"$(printf '%s' '{nonce}')\" >\"{marker}\"; printf 'it'\\''s done\\n'\nprintf ' %s' {label} >>{marker}"
        )
    }

    fn content(&self, label: &str) -> String {
        format!("{} {label}", self.nonce)
    }
}

impl Session<'_> {
    /// Play the session to its end.
    pub(crate) fn play(&self) -> Result<SessionReport, Failure> {
        let name = format!("{}-{}", self.mode, self.permission_mode);
        let project = self.scratch.add_project(&name, self.mode)?;
        let copy = match self.mode {
            Mode::Guard => None,
            Mode::Redirect => Some(self.seed(&project)?),
        };
        let texts = Texts {
            nonce: random::hex()?,
        };
        let note = self.scratch.root().join(format!("{name}.executable"));
        let script = Arc::new(self.script(&texts, &project, &note));
        let server = ModelServer::start(Arc::clone(&script))?;
        let ended = self.start(&project, &note, &server.url())?;
        drop(server);
        let executable = self.executable(&note)?;
        let version = script.agent_version();
        let version = version.ok_or_else(|| ended.failure("it asked its model nothing"))?;
        let results = script.results();
        let mut problems = Vec::new();
        for (label, _) in CALLS {
            let told = results.iter().find(|result| result.label == *label);
            let problem = match told {
                None => Some(ended.describe("the call came to no result")),
                Some(told) => self.judge(
                    &texts,
                    label,
                    &told.text,
                    told.is_error,
                    &project,
                    copy.as_deref(),
                )?,
            };
            problems.push(problem);
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

    fn script(&self, texts: &Texts, project: &Utf8Path, note: &Utf8Path) -> Script {
        let call = |label, tools, input| {
            vec![Call {
                label,
                tools,
                input,
            }]
        };
        let shell = |label: &'static str, tools| {
            let mut input =
                json!({"command": texts.command(label), "description": "boxery's proof"});
            if label.ends_with("monitor") {
                input["timeout_ms"] = json!(10_000);
            }
            call(label, tools, input)
        };
        let search = |label| {
            call(
                label,
                &["ToolSearch"],
                json!({"query": "select:Monitor", "max_results": 5}),
            )
        };
        let agent = call(
            "agent",
            &["Agent", "Task"],
            json!({
                "description": "boxery's proof",
                "prompt": format!("{SUB_WORD}: follow the script"),
                "subagent_type": "general-purpose",
            }),
        );
        let turn = |calls| Turn {
            calls,
            ..Turn::default()
        };
        let last = |label| Turn {
            before: self.wait_for(project, label),
            text: "done",
            calls: Vec::new(),
        };
        let first = Turn {
            before: self.allow_redirect(note),
            calls: [search("search"), agent].concat(),
            text: "",
        };
        Script::new(vec![
            Lane {
                word: SUB_WORD,
                turns: vec![
                    turn(search("sub-search")),
                    turn(shell("sub-bash", &["Bash"])),
                    turn(shell("sub-monitor", &["Monitor"])),
                    last("sub-monitor"),
                ],
            },
            Lane {
                word: MAIN_WORD,
                turns: vec![
                    first,
                    turn(shell("bash", &["Bash"])),
                    turn(shell("monitor", &["Monitor"])),
                    last("monitor"),
                ],
            },
        ])
    }

    /// Holds the model's last words back until what Monitor started has left its
    /// marker in the VM, since an agent ends its background commands with itself.
    fn wait_for(&self, project: &Utf8Path, label: &str) -> Option<Box<dyn Fn() + Send + Sync>> {
        if self.mode == Mode::Guard {
            return None;
        }
        let vm = self.scratch.vm().to_string();
        let marker = Texts::marker(label);
        let wait =
            format!("for i in $(seq 200); do test -s {marker} && exit 0; sleep 0.02; done; exit 1");
        let boxery = self
            .scratch
            .boxery_command(project, &["run", &vm, "--", "bash", "-c", &wait]);
        let boxery = std::sync::Mutex::new(boxery);
        Some(Box::new(move || {
            let mut command = boxery
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            // Whether the marker is there is judged at the end.
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .ok();
        }))
    }

    /// Redirect needs a proof, and this is how the first one comes about: when the
    /// agent's process is known, the scratch state gets a provisional one.
    fn allow_redirect(&self, note: &Utf8Path) -> Option<Box<dyn Fn() + Send + Sync>> {
        if self.mode == Mode::Guard {
            return None;
        }
        let (note, program) = (note.to_owned(), self.candidate.program.clone());
        let proofs = Proofs::new(self.scratch.state("proofs"));
        let agent = self.candidate.agent.clone();
        let permission_mode = self.permission_mode.to_owned();
        Some(Box::new(move || {
            let Ok(executable) = read_executable(&note, &program) else {
                return;
            };
            let provisional = Proof {
                version: Proof::VERSION,
                agent: agent.clone(),
                executable,
                permission_mode: permission_mode.clone(),
                sandbox_mode: SANDBOX_MODE.to_owned(),
                agent_version: "provisional".to_owned(),
                proven_at: env::now(),
            };
            // Without it the calls are denied, and the report says so.
            proofs.write(&provisional).ok();
        }))
    }

    /// Start the agent and wait for its end.
    fn start(&self, project: &Utf8Path, note: &Utf8Path, model: &str) -> Result<Ended, Failure> {
        let mut command = self.scratch.command(&self.candidate.program, project);
        command
            .args(&self.candidate.arguments)
            .args(["-p", &format!("{MAIN_WORD}: follow the script")])
            .args(["--permission-mode", self.permission_mode])
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

    fn executable(&self, note: &Utf8Path) -> Result<ExecutableId, Failure> {
        Ok(read_executable(note, &self.candidate.program)?)
    }

    /// What is wrong with one call's outcome.
    fn judge(
        &self,
        texts: &Texts,
        label: &str,
        told: &str,
        is_error: bool,
        project: &Utf8Path,
        copy: Option<&str>,
    ) -> Result<Option<String>, Failure> {
        let marker = Texts::marker(label);
        if project
            .join(&marker)
            .as_std_path()
            .symlink_metadata()
            .is_ok()
        {
            return Ok(Some("it ran on this machine".to_owned()));
        }
        let short: String = told.chars().take(300).collect();
        let Some(copy) = copy else {
            let vm = self.scratch.vm().as_str();
            let explained = told.contains("vm_bash") && told.contains(vm);
            return Ok(match (is_error, explained) {
                (true, true) => None,
                (false, _) => Some(format!("it wasn't denied; the model was told: {short}")),
                (true, false) => Some(format!("the model wasn't told why; it was told: {short}")),
            });
        };
        let vm = self.scratch.vm().as_str();
        let content = self
            .scratch
            .boxery(project, &["run", vm, "--cwd", copy, "--", "cat", &marker])?;
        if content.stdout != texts.content(label).as_bytes() {
            return Ok(Some(format!(
                "it didn't run in the VM; the model was told: {short}"
            )));
        }
        if is_error {
            return Ok(Some(format!("the model was told of an error: {short}")));
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
fn read_executable(note: &Utf8Path, program: &Utf8Path) -> Result<ExecutableId, Failure> {
    let path = match fs::read_to_string(note) {
        Ok(path) if !path.trim_end().is_empty() => Utf8PathBuf::from(path.trim_end()),
        Ok(_) | Err(_) => program.canonicalize_utf8()?,
    };
    Ok(ExecutableId::read(&path)?)
}

/// How an agent ended and what it said.
struct Ended {
    status: Option<ExitStatus>,
    said: String,
}

impl Ended {
    fn describe(&self, problem: &str) -> String {
        let how = match self.status {
            None => format!(
                "it was still going on after {} s and was ended",
                DEADLINE.as_secs()
            ),
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit status {code}"),
                (None, Some(signal)) => format!("ended by signal {signal}"),
                (None, None) => "it ended".to_owned(),
            },
        };
        let said: String = self.said.trim().chars().take(500).collect();
        if said.is_empty() {
            format!("{problem} ({how})")
        } else {
            format!("{problem} ({how}; it said: {said})")
        }
    }

    fn failure(&self, problem: &str) -> Failure {
        self.describe(problem).into()
    }
}

/// Read what the agent says until it ends; past the deadline, end its whole group.
fn wait(mut child: Child) -> io::Result<Ended> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (done, finished) = std::sync::mpsc::channel::<()>();
    let group = rustix::process::Pid::from_child(&child);
    std::thread::scope(|scope| {
        let readers = [
            scope.spawn(move || read_lossy(stdout)),
            scope.spawn(move || read_lossy(stderr)),
        ];
        let watchdog = scope.spawn(move || {
            let started = Instant::now();
            let late = finished.recv_timeout(DEADLINE).is_err() && started.elapsed() >= DEADLINE;
            if late {
                rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
            }
            late
        });
        let status = child.wait()?;
        drop(done);
        let late = watchdog.join().unwrap_or_default();
        // What it left behind holds the pipes and has no further business.
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        let said = readers
            .map(|reader| reader.join().unwrap_or_default())
            .concat();
        Ok(Ended {
            status: (!late).then_some(status),
            said,
        })
    })
}

fn read_lossy(pipe: Option<impl io::Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What came before a failure is still worth telling.
        pipe.take(64 << 10).read_to_end(&mut bytes).ok();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
