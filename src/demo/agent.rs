//! A small agent in the shape of Claude Code: it asks a model, calls the hooks of
//! its `settings.json`, obeys what they say and runs shell calls with bash.
//!
//! The demo has it in place of a real agent, so that boxery's own part is the
//! real one from end to end. It is no agent for work: it knows four tools.

use std::fs;
use std::io::{self, BufReader, Write as _};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};

use camino::Utf8PathBuf;
use serde_json::{Value, json};

use crate::prove::http;

/// How the agent was started.
#[derive(Debug)]
pub(crate) struct Agent {
    /// The model's address, `http://HOST:PORT`.
    pub(crate) model: String,
    /// The folder that holds `settings.json`.
    pub(crate) settings: Utf8PathBuf,
    /// The folder that commands run in.
    pub(crate) folder: Utf8PathBuf,
    /// Claude's word for what happens to calls that no rule speaks of.
    pub(crate) permission_mode: String,
    /// The session's id.
    pub(crate) session: String,
}

/// The tools that it offers to its model.
const TOOLS: &[&str] = &["Agent", "Bash", "Monitor", "ToolSearch"];

/// Longer than any script.
const MOST_TURNS: usize = 50;

/// What happens to a call after the hooks were asked.
enum Answer {
    Run { input: Value, granted: bool },
    Denied { reason: String },
}

impl Agent {
    /// Answer `prompt`: ask the model and do what it calls for until it calls for
    /// nothing more. Returns its last words.
    pub(crate) fn run(&self, prompt: &str) -> io::Result<String> {
        self.hooks("SessionStart", &json!({"source": "startup"}), None)?;
        let words = self.converse(prompt, None);
        self.hooks("SessionEnd", &json!({"reason": "other"}), None)?;
        words
    }

    fn converse(&self, prompt: &str, subagent: Option<&str>) -> io::Result<String> {
        let mut messages = vec![json!({"role": "user", "content": prompt})];
        for _ in 0..MOST_TURNS {
            let message = self.ask(&messages)?;
            let mut results = Vec::new();
            let mut words = String::new();
            for block in message["content"].as_array().into_iter().flatten() {
                match block["type"].as_str() {
                    Some("text") => words.push_str(block["text"].as_str().unwrap_or_default()),
                    Some("tool_use") => {
                        let (text, is_error) = self.call(block, subagent)?;
                        results.push(json!({
                            "type": "tool_result",
                            "tool_use_id": block["id"],
                            "content": text,
                            "is_error": is_error,
                        }));
                    }
                    _ => {}
                }
            }
            if results.is_empty() {
                return Ok(words);
            }
            messages.push(json!({"role": "assistant", "content": message["content"]}));
            messages.push(json!({"role": "user", "content": results}));
        }
        Err(io::Error::other("the model never came to an end"))
    }

    fn ask(&self, messages: &[Value]) -> io::Result<Value> {
        let tools: Vec<Value> = TOOLS.iter().map(|name| json!({"name": name})).collect();
        let body = json!({"model": "demo", "messages": messages, "tools": tools}).to_string();
        let address = self.model.strip_prefix("http://").unwrap_or(&self.model);
        let mut connection = TcpStream::connect(address)?;
        write!(
            connection,
            "POST /v1/messages HTTP/1.1\r\nHost: {address}\r\nUser-Agent: boxery-demo/{}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            env!("CARGO_PKG_VERSION"),
            body.len()
        )?;
        let (status, answer) = http::read_answer(&mut BufReader::new(&connection))?;
        if status != 200 {
            return Err(io::Error::other(format!(
                "the model answered with status {status}"
            )));
        }
        Ok(serde_json::from_slice(&answer)?)
    }

    /// One call: hooks, permission, the tool itself, hooks again.
    fn call(&self, block: &Value, subagent: Option<&str>) -> io::Result<(String, bool)> {
        let tool = block["name"].as_str().unwrap_or_default();
        let about = json!({
            "tool_name": tool,
            "tool_input": block["input"],
            "tool_use_id": block["id"],
        });
        let (input, granted) = match self.before(&about, subagent)? {
            Answer::Run { input, granted } => (input, granted),
            Answer::Denied { reason } => {
                return Ok((format!("PreToolUse:{tool} hook error: {reason}"), true));
            }
        };
        let shell = matches!(tool, "Bash" | "Monitor");
        if shell && !granted && !self.permits(tool, &input, &block["input"])? {
            return Ok(("This command requires approval".to_owned(), true));
        }
        let (text, exit) = match tool {
            "Bash" | "Monitor" => self.shell(input["command"].as_str().unwrap_or_default())?,
            "Agent" => {
                let prompt = input["prompt"].as_str().unwrap_or_default();
                (self.converse(prompt, Some("demo-subagent"))?, 0)
            }
            _ => ("done".to_owned(), 0),
        };
        let mut after = about;
        after["tool_input"] = input;
        let (event, text) = if exit == 0 {
            after["tool_response"] = json!({"stdout": text, "stderr": "", "interrupted": false});
            ("PostToolUse", text)
        } else {
            after["error"] = json!(format!("Exit code {exit}\n{text}"));
            ("PostToolUseFailure", format!("Exit code {exit}\n{text}"))
        };
        self.hooks(event, &after, subagent)?;
        Ok((text, exit != 0))
    }

    fn before(&self, about: &Value, subagent: Option<&str>) -> io::Result<Answer> {
        let mut input = about["tool_input"].clone();
        let mut granted = false;
        for output in self.hooks("PreToolUse", about, subagent)? {
            if output.status.code() == Some(2) {
                let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                return Ok(Answer::Denied { reason });
            }
            let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let answer = &answer["hookSpecificOutput"];
            match answer["permissionDecision"].as_str() {
                Some("deny" | "ask") => {
                    let reason = answer["permissionDecisionReason"]
                        .as_str()
                        .unwrap_or_default();
                    return Ok(Answer::Denied {
                        reason: reason.to_owned(),
                    });
                }
                Some("allow") => granted = true,
                _ => {}
            }
            if answer["updatedInput"].is_object() {
                input = answer["updatedInput"].clone();
            }
        }
        Ok(Answer::Run { input, granted })
    }

    /// Whether the user's rules let a call run that no hook has granted: a rule for
    /// the whole tool, or one for exactly this text.
    fn permits(&self, tool: &str, input: &Value, original: &Value) -> io::Result<bool> {
        if self.permission_mode == "bypassPermissions" {
            return Ok(true);
        }
        let settings = self.read_settings()?;
        let mut rules = settings["permissions"]["allow"]
            .as_array()
            .into_iter()
            .flatten();
        let exact = format!("{tool}({})", input["command"].as_str().unwrap_or_default());
        Ok(input == original && rules.any(|rule| rule == tool || *rule == json!(exact)))
    }

    fn shell(&self, command: &str) -> io::Result<(String, i32)> {
        let output = self
            .child("bash")
            .args(["-c", command])
            .stdin(Stdio::null())
            .output()?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        Ok((text, output.status.code().unwrap_or(128)))
    }

    fn read_settings(&self) -> io::Result<Value> {
        Ok(serde_json::from_slice(&fs::read(
            self.settings.join("settings.json"),
        )?)?)
    }

    /// Call every hook for `event`, in their order; those of `Bash|Monitor` form are
    /// for the tools they name.
    fn hooks(&self, event: &str, about: &Value, subagent: Option<&str>) -> io::Result<Vec<Output>> {
        let mut payload = json!({
            "session_id": self.session,
            "transcript_path": self.settings.join("transcript.jsonl").as_str(),
            "cwd": self.folder.as_str(),
            "permission_mode": self.permission_mode,
            "hook_event_name": event,
        });
        if let Some(subagent) = subagent {
            payload["agent_id"] = json!(subagent);
            payload["agent_type"] = json!("general-purpose");
        }
        if let (Some(fields), Some(more)) = (payload.as_object_mut(), about.as_object()) {
            fields.extend(more.clone());
        }
        let payload = payload.to_string();
        let tool = about["tool_name"].as_str().unwrap_or_default();
        let settings = self.read_settings()?;
        let mut outputs = Vec::new();
        for group in settings["hooks"][event].as_array().into_iter().flatten() {
            let matcher = group["matcher"].as_str().unwrap_or_default();
            if !matches!(matcher, "" | "*") && matcher.split('|').all(|name| name != tool) {
                continue;
            }
            for hook in group["hooks"].as_array().into_iter().flatten() {
                let command = hook["command"].as_str().unwrap_or_default();
                outputs.push(self.hook(command, payload.as_bytes())?);
            }
        }
        Ok(outputs)
    }

    fn hook(&self, command: &str, payload: &[u8]) -> io::Result<Output> {
        let mut child = self
            .child("sh")
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A hook that doesn't read its payload has still answered.
            stdin.write_all(payload).ok();
        }
        child.wait_with_output()
    }

    /// A program in the agent's folder, with the variables that Claude sets.
    fn child(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.folder)
            .env("CLAUDECODE", "1")
            .env("CLAUDE_CODE_ENTRYPOINT", "cli")
            .env("CLAUDE_CODE_SESSION_ID", &self.session)
            .env("CLAUDE_PID", std::process::id().to_string())
            .env("CLAUDE_PROJECT_DIR", &self.folder);
        command
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;

    use super::*;
    use crate::prove::{Call, Lane, ModelServer, Script, Turn};

    /// A session in which the model calls Bash once; its result, and the folder.
    fn session(settings: &Value, mode: &str, command: &str) -> (String, bool, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
        let mut file = fs::File::create(path.join("settings.json")).unwrap();
        file.write_all(settings.to_string().as_bytes()).unwrap();
        let turn = Turn {
            calls: vec![Call {
                label: "bash",
                tools: &["Bash"],
                input: json!({"command": command, "timeout": 7}),
            }],
            ..Turn::default()
        };
        let last = Turn {
            text: "goodbye",
            ..Turn::default()
        };
        let script = Arc::new(Script::new(vec![Lane {
            word: "GO",
            turns: vec![turn, last],
        }]));
        let server = ModelServer::start(Arc::clone(&script)).unwrap();
        let agent = Agent {
            model: server.url(),
            settings: path.clone(),
            folder: path,
            permission_mode: mode.to_owned(),
            session: "s".to_owned(),
        };
        assert_eq!(agent.run("GO").unwrap(), "goodbye");
        let result = script.results().remove(0);
        (result.text, result.is_error, folder)
    }

    fn with_hook(event: &str, matcher: &str, command: &str) -> Value {
        json!({"hooks": {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]}})
    }

    const DENY: &str = r#"echo '{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"no"}}'"#;
    const REWRITE: &str =
        r#"echo '{"hookSpecificOutput":{"updatedInput":{"command":"echo other"}}}'"#;
    const GRANT: &str = r#"echo '{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"command":"echo other"}}}'"#;

    #[rstest]
    #[case::no_hook(json!({}), "bypassPermissions", "mine\n", false)]
    #[case::denied(
        with_hook("PreToolUse", "", DENY),
        "bypassPermissions",
        "PreToolUse:Bash hook error: no",
        true
    )]
    #[case::exit_2(
        with_hook("PreToolUse", "*", "echo no >&2; exit 2"),
        "bypassPermissions",
        "PreToolUse:Bash hook error: no",
        true
    )]
    #[case::exit_1_runs(
        with_hook("PreToolUse", "", "exit 1"),
        "bypassPermissions",
        "mine\n",
        false
    )]
    #[case::other_tool(
        with_hook("PreToolUse", "Read|Write", DENY),
        "bypassPermissions",
        "mine\n",
        false
    )]
    #[case::rewritten(
        with_hook("PreToolUse", "Bash|Monitor", REWRITE),
        "bypassPermissions",
        "other\n",
        false
    )]
    #[case::asks(
        with_hook("PreToolUse", "", REWRITE),
        "default",
        "This command requires approval",
        true
    )]
    #[case::granted(with_hook("PreToolUse", "", GRANT), "default", "other\n", false)]
    #[case::allowed_by_rule(json!({"permissions": {"allow": ["Bash"]}}), "default", "mine\n", false)]
    fn hooks_and_rules_are_obeyed(
        #[case] settings: Value,
        #[case] mode: &str,
        #[case] told: &str,
        #[case] is_error: bool,
    ) {
        let (text, error, _folder) = session(&settings, mode, "echo mine");
        assert_eq!((text.as_str(), error), (told, is_error));
    }

    #[test]
    fn a_failed_command_is_told_with_its_status() {
        let (text, error, _folder) = session(&json!({}), "bypassPermissions", "echo out; exit 3");
        assert_eq!((text.as_str(), error), ("Exit code 3\nout\n", true));
    }

    #[test]
    fn the_hook_gets_what_claude_sends() {
        let hook = with_hook(
            "PreToolUse",
            "",
            r#"cat >got; printf '%s %s' "$CLAUDE_CODE_SESSION_ID" "$CLAUDE_PID" >env"#,
        );
        let (_, _, folder) = session(&hook, "bypassPermissions", "true");
        let read = |name| fs::read_to_string(folder.path().join(name)).unwrap();
        let got: Value = serde_json::from_str(&read("got")).unwrap();
        assert_eq!(got["tool_input"], json!({"command": "true", "timeout": 7}));
        assert_eq!(got["session_id"], "s");
        assert_eq!(read("env"), format!("s {}", std::process::id()));
    }
}
