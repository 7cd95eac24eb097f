//! A pinned home: what the tests of the hook and of redirected calls start from.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use boxery_agents::{ADAPTERS, Surroundings};
use boxery_pin::{AgentId, Mode, PinFile, PinKey, PinStore, SessionId};
use boxery_router::{ExecutableId, Proof, Proofs};
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};

use crate::support::Sandbox;

pub(crate) const SESSION: &str = "5d4e";

/// A sandbox with a VM `dev` in its configuration.
pub(crate) struct Scene {
    pub(crate) sandbox: Sandbox,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let scene = Self {
            sandbox: Sandbox::new(),
        };
        write(
            &scene.home().join(".config/boxery/config.toml"),
            "[vm.dev]\ntarget = \"me@dev\"\ndir = \"/vm\"\n",
        );
        scene
    }

    pub(crate) fn home(&self) -> Utf8PathBuf {
        utf8(&self.sandbox.home())
    }

    pub(crate) fn project(&self) -> Utf8PathBuf {
        utf8(&self.sandbox.project())
    }

    pub(crate) fn state(&self, name: &str) -> Utf8PathBuf {
        self.home().join(".local/state/boxery").join(name)
    }

    pub(crate) fn pin(&self, key: PinKey, mode: Mode) {
        let mut file = PinFile::new(key, "dev".parse().unwrap(), "a test", "to see", now());
        file.mode = Some(mode);
        file.project = Some(self.project());
        PinStore::new(self.state("pins")).write(&file).unwrap();
    }

    /// A session pinned in guard.
    pub(crate) fn guarded() -> Self {
        let scene = Self::new();
        scene.pin(session_key(), Mode::Guard);
        scene
    }

    /// A session pinned in redirect, with this process proven to be its agent.
    pub(crate) fn redirected() -> Self {
        let scene = Self::new();
        scene.pin(session_key(), Mode::Redirect);
        let home = scene.home();
        let surroundings = Surroundings {
            machine: Utf8Path::new("/"),
            arguments: &[],
            home: &home,
            settings: None,
            project: None,
            folder: None,
        };
        let own = std::env::current_exe().unwrap().canonicalize().unwrap();
        let proof = Proof {
            version: Proof::VERSION,
            agent: agent(),
            executable: ExecutableId::read(&utf8(&own)).unwrap(),
            permission_mode: "default".to_owned(),
            sandbox_mode: ADAPTERS[0].sandbox_mode(&surroundings),
            agent_version: "0".to_owned(),
            proven_at: now(),
        };
        Proofs::new(scene.state("proofs")).write(&proof).unwrap();
        scene
    }

    pub(crate) fn hook(&self, payload: &str) -> Output {
        feed(self.sandbox.boxery(["hook", "run", "claude-code"]), payload)
    }

    /// The answer to a call of Bash.
    pub(crate) fn bash(&self, command: &str) -> Value {
        answer(&self.hook(&self.call("PreToolUse", "Bash", &json!({ "command": command }))))
    }

    pub(crate) fn call(&self, event: &str, tool: &str, input: &Value) -> String {
        json!({
            "session_id": SESSION, "cwd": self.project(), "permission_mode": "default",
            "hook_event_name": event, "tool_name": tool, "tool_input": input,
            "tool_use_id": "toolu_1",
        })
        .to_string()
    }

    /// What the log says of the last call.
    pub(crate) fn last_entry(&self) -> Value {
        let log = boxery_record::Log::new(self.state("log"));
        let report = log.check().unwrap();
        assert!(report.problem.is_none(), "{report:?}");
        let folder = self.state("log").read_dir_utf8().unwrap();
        let mut segments: Vec<_> = folder
            .map(|entry| entry.unwrap().into_path())
            .filter(|path| path.extension() == Some("jsonl"))
            .collect();
        segments.sort();
        let text = std::fs::read_to_string(segments.last().unwrap()).unwrap();
        serde_json::from_str(text.lines().last().unwrap()).unwrap()
    }
}

pub(crate) fn agent() -> AgentId {
    AgentId("claude-code".to_owned())
}

pub(crate) fn session_key() -> PinKey {
    PinKey::Session {
        agent: agent(),
        session: SessionId(SESSION.to_owned()),
    }
}

pub(crate) fn utf8(path: &Path) -> Utf8PathBuf {
    Utf8PathBuf::from_path_buf(path.to_owned()).unwrap()
}

pub(crate) fn now() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

pub(crate) fn write(path: &Utf8Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::File::create(path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

/// Run `command` with `payload` on its standard input.
pub(crate) fn feed(mut command: Command, payload: &str) -> Output {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A process that answers early closes its end.
    stdin.write_all(payload.as_bytes()).ok();
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// One JSON document on standard output, nothing on standard error, status 0.
pub(crate) fn answer(output: &Output) -> Value {
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).as_ref()
        ),
        (Some(0), "")
    );
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    let value: Value = serde_json::from_str(&text).unwrap();
    value["hookSpecificOutput"].clone()
}
