//! What the scripted model of a proof calls, and when.

use std::process::Stdio;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use boxery_pin::{Mode, PinStore};
use boxery_router::{Proof, Proofs};
use camino::Utf8Path;
use serde_json::json;

use super::session::{Session, read_executable};
use super::{Call, Lane, SANDBOX_MODE, Script, Turn};
use crate::env;

/// Stands in the prompt of the main agent.
pub(crate) const MAIN_WORD: &str = "BOXERY-PROOF-MAIN";
/// Stands in the prompt of the subagent.
const SUB_WORD: &str = "BOXERY-PROOF-SUBAGENT";

/// How long the main agent waits for the subagent's calls in guard.
const PATIENCE: Duration = Duration::from_secs(25);

type Before = Box<dyn Fn() + Send + Sync>;

/// What the model calls, told apart from every other proof's by a random word.
pub(crate) struct Texts {
    /// The word.
    pub(crate) nonce: String,
}

impl Texts {
    /// The file that the call `label` leaves.
    pub(crate) fn marker(label: &str) -> String {
        format!("{label}.marker")
    }

    /// A text that only a faithful shell gets right: quotes, a substitution, a
    /// semicolon, two lines.
    pub(crate) fn command(&self, label: &str) -> String {
        let (marker, nonce) = (Self::marker(label), &self.nonce);
        format!(
            "printf '%s' \"$(printf '%s' '{nonce}')\" >\"{marker}\"; printf 'it'\\''s done\\n'\nprintf ' %s' {label} >>{marker}"
        )
    }

    /// What that file holds then.
    pub(crate) fn content(&self, label: &str) -> String {
        format!("{} {label}", self.nonce)
    }
}

/// The script of one session.
pub(crate) struct Turns<'a> {
    pub(crate) session: &'a Session<'a>,
    pub(crate) texts: &'a Texts,
    pub(crate) project: &'a Utf8Path,
    pub(crate) note: &'a Utf8Path,
}

impl Turns<'_> {
    /// Both agents call their tools in guard; when both have, the pin changes to
    /// redirect and they call them again. The subagent starts when the main agent is
    /// through with guard, and changes the pin when it is itself: this order holds
    /// whether an agent waits for its subagents or goes on beside them.
    pub(crate) fn script(&self) -> Script {
        let switch = Arc::new(Switch {
            done: Mutex::new(false),
            changed: Condvar::new(),
            work: self.redirect(),
        });
        let (change, wait) = (Arc::clone(&switch), switch);
        let turn = |calls| Turn {
            calls,
            ..Turn::default()
        };
        let last = |label| Turn {
            before: Some(self.wait_for(label)),
            text: "done",
            calls: Vec::new(),
        };
        Script::new(vec![
            Lane {
                word: SUB_WORD,
                turns: vec![
                    turn(vec![search("sub-search")]),
                    turn(vec![
                        self.bash("guard-sub-bash"),
                        self.monitor("guard-sub-monitor"),
                    ]),
                    Turn {
                        before: Some(Box::new(move || change.change())),
                        calls: vec![self.bash("sub-bash"), self.monitor("sub-monitor")],
                        text: "",
                    },
                    last("sub-monitor"),
                ],
            },
            Lane {
                word: MAIN_WORD,
                turns: vec![
                    turn(vec![search("search")]),
                    turn(vec![self.bash("guard-bash"), self.monitor("guard-monitor")]),
                    turn(vec![subagent()]),
                    Turn {
                        before: Some(Box::new(move || wait.wait())),
                        calls: vec![self.bash("bash"), self.monitor("monitor")],
                        text: "",
                    },
                    last("monitor"),
                ],
            },
        ])
    }

    fn bash(&self, label: &'static str) -> Call {
        let input = json!({"command": self.texts.command(label), "description": "boxery's proof"});
        Call {
            label,
            tools: &["Bash"],
            input,
        }
    }

    fn monitor(&self, label: &'static str) -> Call {
        let mut call = self.bash(label);
        call.tools = &["Monitor"];
        call.input["timeout_ms"] = json!(20_000);
        call
    }

    /// Holds the model's last words back until what Monitor started has left its
    /// marker in the VM, since an agent ends its background commands with itself.
    fn wait_for(&self, label: &str) -> Before {
        let scratch = self.session.scratch;
        let vm = scratch.vm().to_string();
        let marker = Texts::marker(label);
        let wait =
            format!("for i in $(seq 200); do test -s {marker} && exit 0; sleep 0.02; done; exit 1");
        let boxery = scratch.boxery_command(self.project, &["run", &vm, "--", "bash", "-c", &wait]);
        let boxery = Mutex::new(boxery);
        Box::new(move || {
            let mut command = boxery.lock().unwrap_or_else(PoisonError::into_inner);
            // Whether the marker is there is judged at the end.
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .ok();
        })
    }

    /// Changes the pin to redirect. Redirect needs a proof, and this is how the first
    /// one comes about: the scratch state gets a provisional one for the process
    /// that calls hooks.
    fn redirect(&self) -> Before {
        let scratch = self.session.scratch;
        let (note, candidate) = (self.note.to_owned(), self.session.candidate.clone());
        let proofs = Proofs::new(scratch.state("proofs"));
        let pins = PinStore::new(scratch.state("pins"));
        let pin = scratch.pin_file(self.project, Mode::Redirect);
        let permission_mode = self.session.permission_mode.to_owned();
        Box::new(move || {
            // What fails here leaves the calls denied, and the report says so.
            if let Ok(executable) = read_executable(&note, &candidate.program) {
                let provisional = Proof {
                    version: Proof::VERSION,
                    agent: candidate.agent.clone(),
                    executable,
                    permission_mode: permission_mode.clone(),
                    sandbox_mode: SANDBOX_MODE.to_owned(),
                    agent_version: "provisional".to_owned(),
                    proven_at: env::now(),
                };
                proofs.write(&provisional).ok();
            }
            pins.write(&pin).ok();
        })
    }
}

fn search(label: &'static str) -> Call {
    let input = json!({"query": "select:Monitor", "max_results": 5});
    Call {
        label,
        tools: &["ToolSearch"],
        input,
    }
}

fn subagent() -> Call {
    let input = json!({
        "description": "boxery's proof",
        "prompt": format!("{SUB_WORD}: follow the script"),
        "subagent_type": "general-purpose",
    });
    Call {
        label: "agent",
        tools: &["Agent", "Task"],
        input,
    }
}

/// Work that is done once, and that others wait for.
struct Switch {
    done: Mutex<bool>,
    changed: Condvar,
    work: Before,
}

impl Switch {
    fn change(&self) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if !*done {
            (self.work)();
            *done = true;
            self.changed.notify_all();
        }
    }

    /// Wait for the one who does it, but not for ever.
    fn wait(&self) {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(done, PATIENCE, |done| !*done);
        drop(waited.map_err(PoisonError::into_inner));
        self.change();
    }
}
