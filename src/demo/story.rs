//! The demo's story, step by step. Each step does what a real session does, looks at
//! what came of it, and is a failure when it isn't what boxery promises.

use std::fs;
use std::io::{self, Write as _};
use std::process::{Output, Stdio};

use boxery_pin::{AgentId, Mode};
use boxery_router::{Proofs, Ticket};
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};

use crate::env;
use crate::error::Failure;
use crate::prove::{Candidate, PERMISSION_MODES, Scratch, prove};
use crate::ui::{Tone, Ui};

/// What Claude Code 2.1.332 sent to its hook before and after a call of Bash
/// (recorded 2026-11-30; folder, text and result are put in here).
const BEFORE: &str = include_str!("payload/before.json");
const AFTER: &str = include_str!("payload/after.json");

/// What the model wants to run: quotes, a semicolon, a substitution, a pipe, two lines.
const COMMAND: &str = "echo \"made on $(uname -n)\" >made-by-the-agent.txt; tr a-z A-Z <greeting.txt\nprintf '%s\\n' 'it'\\''s \"done\"; & that is all'";
/// The file that it leaves.
const MARKER: &str = "made-by-the-agent.txt";
/// The file that is edited later, and its first content.
const EDITED: &str = "greeting.txt";
const GREETING: &str = "hello from the project\n";

/// A story in progress.
pub(crate) struct Story {
    ui: Ui,
    scratch: Scratch,
    binary: Utf8PathBuf,
    project: Utf8PathBuf,
}

impl Story {
    /// An empty home, and a project in it.
    pub(crate) fn begin(ui: Ui) -> Result<Self, Failure> {
        let binary = env::own_binary()?;
        let scratch = Scratch::new(&binary, "demo")?;
        let project = scratch.root().join("home/project");
        fs::create_dir_all(&project)?;
        let story = Self {
            ui,
            scratch,
            binary,
            project,
        };
        story.write(EDITED, GREETING)?;
        story.write("README.md", "# A sample project\n")?;
        Ok(story)
    }

    /// Tell it.
    pub(crate) fn tell(&self) -> Result<(), Failure> {
        self.step("A sample project, and a VM on this machine");
        let vm = self.scratch.vm().to_string();
        self.verb(&["vm", "add", &vm, "--embedded"])?;
        self.verb(&["vm", "seed", &vm])?;

        self.step("Nothing is pinned: the agent's call passes, and boxery says nothing");
        self.passes()?;

        self.step("Pinned, in guard: the call is denied, and the model is told what to do instead");
        self.verb(&["pin", &vm, "--guard"])?;
        self.denied()?;

        self.step("Redirect needs a proof that this agent obeys (the demo plays the agent)");
        self.proven()?;

        self.step("Pinned, in redirect: the call is rewritten and runs in the VM");
        self.scratch.pin(&self.project, Mode::Redirect)?;
        self.redirected()?;

        self.step("The project changes here: the next call is told that the VM's copy is old");
        self.stale()?;

        self.step("A sync: both have it all");
        self.synced()?;

        self.step("Unpinned: the call passes again");
        self.scratch.unpin(&self.project)?;
        self.passes()?;
        self.verb(&["log", "check"])
    }

    /// End the VM and remove everything.
    pub(crate) fn end(self) -> Result<(), Failure> {
        self.step("The end: the VM, the project and every file of this demo are removed");
        let Self { scratch, .. } = self;
        scratch.close()
    }

    /// What was asked for meanwhile, such as the end by Ctrl-C.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.scratch.interrupt().check()
    }

    fn passes(&self) -> Result<(), Failure> {
        let output = self.ask_hook(&self.before())?;
        let silent =
            output.stdout.is_empty() && output.stderr.is_empty() && output.status.success();
        self.expect(
            silent,
            "the hook has nothing to say of an unpinned call",
            &output,
        )?;
        self.good("the hook: exit 0, no output");
        Ok(())
    }

    fn denied(&self) -> Result<(), Failure> {
        self.show("the model asks for", COMMAND);
        let output = self.ask_hook(&self.before())?;
        let answer = self.answer(&output)?;
        let reason = answer["permissionDecisionReason"]
            .as_str()
            .unwrap_or_default();
        let denied = answer["permissionDecision"] == "deny";
        let helpful = ["vm_bash", "vm_jobs", "boxery", self.scratch.vm().as_str()];
        let told = helpful.iter().all(|word| reason.contains(word));
        self.expect(
            denied && told,
            "a pinned call is denied and the model is told why",
            &output,
        )?;
        self.show("the hook answers", &format!("deny: {reason}"));
        self.not_here()
    }

    fn proven(&self) -> Result<(), Failure> {
        let output = self.with_pin(Mode::Redirect, || self.ask_hook(&self.before()))?;
        let refused = self.answer(&output)?["permissionDecision"] == "deny";
        self.expect(
            refused,
            "an agent that isn't proven is never trusted with a rewrite",
            &output,
        )?;
        let agent = Candidate {
            agent: AgentId("claude-code".to_owned()),
            program: self.binary.clone(),
            arguments: vec!["demo-agent".to_owned()],
        };
        let report = prove(&self.binary, &agent, PERMISSION_MODES)?;
        if !report.holds() {
            let problem = report
                .checks
                .iter()
                .find_map(|check| check.problem.as_deref());
            return Err(self.failed("the agent obeys the hook", problem.unwrap_or_default()));
        }
        report.store(&Proofs::new(self.scratch.state("proofs")), env::now())?;
        self.good(&format!(
            "{} calls denied in guard, {} run in a VM in redirect, none here ({:.1} s)",
            report.checks.len() / 2,
            report.checks.len() / 2,
            report.seconds
        ));
        Ok(())
    }

    fn redirected(&self) -> Result<(), Failure> {
        let output = self.ask_hook(&self.before())?;
        let text = self.rewritten(&output)?;
        self.show("the hook answers", &format!("run this instead: {text}"));
        let ran = self.run_as_agent(&text)?;
        let want = format!("{}it's \"done\"; & that is all\n", GREETING.to_uppercase());
        self.expect(
            ran.status.success() && ran.stdout == want.as_bytes(),
            "its output comes back as it was",
            &ran,
        )?;
        self.show(
            "the agent's shell runs it",
            &String::from_utf8_lossy(&ran.stdout),
        );
        let vm = self.scratch.vm().as_str();
        let marker = self
            .scratch
            .succeed(&self.project, &["run", vm, "--", "cat", MARKER])?;
        self.expect(
            marker.stdout.starts_with(b"made on "),
            "what it made is in the VM",
            &marker,
        )?;
        self.good(&format!("`{MARKER}` is in the VM"));
        self.not_here()?;
        self.ticket_taken()?;
        let after = self.ask_hook(&self.after(&text, &ran))?;
        let calm = after.status.success() && after.stderr.is_empty();
        self.expect(
            calm && self.is_empty("alarms")?,
            "after the call the hook sees that all is well",
            &after,
        )?;
        self.good("its ticket was taken; the hook after the call raises no alarm");
        Ok(())
    }

    fn stale(&self) -> Result<(), Failure> {
        self.write(EDITED, "hello again\n")?;
        let text = self.rewritten(&self.ask_hook(&self.before())?)?;
        let ran = self.run_as_agent(&text)?;
        let said = String::from_utf8_lossy(&ran.stderr);
        let warning = said
            .lines()
            .find(|line| line.starts_with("boxery: ") && line.contains(EDITED));
        self.expect(
            warning.is_some(),
            "the stale file is named before the command's output",
            &ran,
        )?;
        self.show("the agent is told", warning.unwrap_or_default());
        let vm = self.scratch.vm().as_str();
        let drift = self.scratch.boxery(&self.project, &["drift", vm])?;
        let named = drift.stdout == format!("> M {EDITED}\n< A {MARKER}\n").as_bytes();
        self.expect(
            named && drift.status.code() == Some(1),
            "`boxery drift` names what differs",
            &drift,
        )?;
        self.show("boxery drift", &String::from_utf8_lossy(&drift.stdout));
        Ok(())
    }

    fn synced(&self) -> Result<(), Failure> {
        self.verb(&["sync"])?;
        let vm = self.scratch.vm().as_str();
        let there = self
            .scratch
            .succeed(&self.project, &["run", vm, "--", "cat", EDITED])?;
        let is_here = self.project.join(MARKER).as_std_path().exists();
        self.expect(
            is_here && there.stdout == b"hello again\n",
            "what changed here is there, and what was made there is here",
            &there,
        )?;
        self.good(&format!("`{MARKER}` is here, and `{EDITED}` is there"));
        Ok(())
    }

    /// The rewritten text in the hook's answer.
    fn rewritten(&self, output: &Output) -> Result<String, Failure> {
        let answer = self.answer(output)?;
        let text = answer["updatedInput"]["command"]
            .as_str()
            .unwrap_or_default();
        let ours = text.starts_with(self.binary.as_str())
            || text.starts_with(&format!("'{}", self.binary));
        let kept = answer["updatedInput"]["description"] == "d";
        self.expect(
            ours && kept,
            "the call is rewritten to `boxery run`, its other fields kept",
            output,
        )?;
        Ok(text.to_owned())
    }

    /// The text through a shell, as the agent runs what its hook tells it to.
    fn run_as_agent(&self, text: &str) -> Result<Output, Failure> {
        let mut command = self.scratch.command(Utf8Path::new("bash"), &self.project);
        command.args(["-c", text]);
        Ok(self.scratch.interrupt().output(&mut command)?)
    }

    /// Call the endpoint as the agent does.
    fn ask_hook(&self, payload: &Value) -> Result<Output, Failure> {
        let mut command = self
            .scratch
            .boxery_command(&self.project, &["hook", "run", "claude-code"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let interrupt = self.scratch.interrupt();
        let mut child = interrupt.spawn(&mut command)?;
        let group = rustix::process::Pid::from_child(&child);
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(payload.to_string().as_bytes())?;
        }
        let output = child.wait_with_output();
        interrupt.ended(group);
        Ok(output?)
    }

    fn before(&self) -> Value {
        self.placed(BEFORE, COMMAND)
    }

    fn after(&self, text: &str, ran: &Output) -> Value {
        let mut payload = self.placed(AFTER, text);
        payload["tool_response"]["stdout"] = json!(String::from_utf8_lossy(&ran.stdout));
        payload["tool_response"]["stderr"] = json!(String::from_utf8_lossy(&ran.stderr));
        payload
    }

    /// A recorded payload, put into this project and session.
    fn placed(&self, recorded: &str, command: &str) -> Value {
        let mut payload: Value = serde_json::from_str(recorded).unwrap_or_default();
        let before: Value = serde_json::from_str(BEFORE).unwrap_or_default();
        for field in ["session_id", "prompt_id", "tool_use_id", "permission_mode"] {
            payload[field] = before[field].clone();
        }
        payload["transcript_path"] =
            json!(self.scratch.root().join("home/.claude/transcript.jsonl"));
        payload["cwd"] = json!(self.project);
        payload["tool_input"]["command"] = json!(command);
        payload
    }

    fn answer(&self, output: &Output) -> Result<Value, Failure> {
        let answer: Option<Value> = serde_json::from_slice(&output.stdout).ok();
        self.expect(
            answer.is_some(),
            "the hook answers in the agent's own form",
            output,
        )?;
        Ok(answer.unwrap_or_default()["hookSpecificOutput"].take())
    }

    fn with_pin<T>(
        &self,
        mode: Mode,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.scratch.pin(&self.project, mode)?;
        let done = work();
        self.scratch.pin(&self.project, Mode::Guard)?;
        done
    }

    fn not_here(&self) -> Result<(), Failure> {
        let marker = self.project.join(MARKER);
        if marker.as_std_path().symlink_metadata().is_ok() {
            return Err(self.failed(
                "nothing runs on this machine",
                &format!("`{marker}` is here"),
            ));
        }
        self.good(&format!("`{MARKER}` is not on this machine"));
        Ok(())
    }

    fn ticket_taken(&self) -> Result<(), Failure> {
        let digest = Ticket::digest(COMMAND);
        for entry in fs::read_dir(self.scratch.state("tickets/taken"))? {
            let ticket: Ticket = serde_json::from_slice(&fs::read(entry?.path())?)?;
            if ticket.text_sha256 == digest {
                return Ok(());
            }
        }
        Err(self.failed(
            "the run takes the hook's ticket",
            "no taken ticket is for this text",
        ))
    }

    fn is_empty(&self, store: &str) -> Result<bool, Failure> {
        match fs::read_dir(self.scratch.state(store)) {
            Ok(mut entries) => Ok(entries.next().is_none()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// One of boxery's verbs, shown with what it says.
    fn verb(&self, arguments: &[&str]) -> Result<(), Failure> {
        let output = self.scratch.succeed(&self.project, arguments)?;
        let prompt = self.ui.paint(
            Tone::Strong,
            format_args!("$ boxery {}", arguments.join(" ")),
        );
        self.ui.line(format_args!("  {prompt}"));
        let said = [output.stdout, output.stderr].concat();
        for line in String::from_utf8_lossy(&said).lines() {
            self.ui
                .line(self.ui.paint(Tone::Faint, format_args!("    {line}")));
        }
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        Ok(fs::File::create(self.project.join(name))?.write_all(text.as_bytes())?)
    }

    fn step(&self, title: &str) {
        self.ui
            .line(format_args!("\n{}", self.ui.paint(Tone::Strong, title)));
    }

    fn show(&self, title: &str, text: &str) {
        self.ui.line(format_args!(
            "  {}",
            self.ui.paint(Tone::Care, format_args!("{title}:"))
        ));
        for line in text.lines() {
            self.ui.line(format_args!("    {line}"));
        }
    }

    fn good(&self, text: &str) {
        self.ui
            .line(format_args!("  {} {text}", self.ui.paint(Tone::Good, "ok")));
    }

    fn expect(&self, holds: bool, promise: &str, seen: &Output) -> Result<(), Failure> {
        if holds {
            return Ok(());
        }
        let said = [seen.stdout.as_slice(), seen.stderr.as_slice()].concat();
        Err(self.failed(
            promise,
            &format!(
                "{}, it said: {}",
                seen.status,
                String::from_utf8_lossy(&said)
            ),
        ))
    }

    fn failed(&self, promise: &str, seen: &str) -> Failure {
        // An interrupted step is no broken promise.
        match self.check() {
            Err(interrupted) => interrupted,
            Ok(()) => Failure::from(format!(
                "the demo did not go as promised: {promise} ({})",
                seen.trim_end()
            )),
        }
    }
}
