//! Claude Code: its hook's payload and answer.
//!
//! Seen with 2.1.332. What it leans on: a reply is one JSON document on standard
//! output with `hookEventName`, else the call runs; `updatedInput` replaces the
//! whole input, so every field goes back as it came; in `bypassPermissions`
//! some releases drop a rewrite that also says `allow`, so there it doesn't.

use boxery_router::{
    AgentId, Decision, EventKind, HookEvent, SessionId, ShellDialect, StartSource, ToolAction,
    ToolCall, ToolOutcome, UserVerdict,
};
use camino::{Utf8Path, Utf8PathBuf};

use crate::claude::{
    self, ClaudeRules, Facts, Sources, is_foreign_tool_event, reply_to_unreadable,
};
use crate::command_fields::{find_all_paths, find_command};
use crate::declared::declared;
use crate::payload::{self, Node};
use crate::{
    Adapter, DecodeError, HookEnvironment, InstallScope, Reply, SettingsPaths, Surroundings,
};

/// The adapter.
#[derive(Debug)]
pub struct ClaudeCode;

const NAME: &str = "claude-code";

/// In the order in which a session meets them.
const EVENTS: &[&str] = &[
    "SessionStart",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PreSkillShellCommand",
    "SessionEnd",
];

impl Adapter for ClaudeCode {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Claude Code"
    }

    fn decode(&self, payload: &[u8]) -> Result<HookEvent, DecodeError> {
        decode(payload).map_err(|problem| DecodeError::Payload {
            agent: "Claude Code",
            problem,
        })
    }

    fn encode(&self, payload: &[u8], decision: &Decision) -> Reply {
        match Facts::of(payload) {
            Ok(facts) => facts.reply(decision),
            Err(problem) => reply_to_unreadable(decision, &problem),
        }
    }

    fn user_rules(
        &self,
        surroundings: &Surroundings<'_>,
        tool: &str,
        command: &str,
    ) -> UserVerdict {
        ClaudeRules::read(&Sources::read(surroundings), surroundings).judge(tool, command)
    }

    fn edits(&self, command: &str) -> bool {
        claude::edits(command)
    }

    fn keeps_folder(&self) -> bool {
        // Claude Code 2.1 notes `pwd -P` after each call. Of a rewritten one that is
        // the laptop's, which no `cd` on the VM moves.
        true
    }

    fn hook_events(&self) -> (&'static [&'static str], u32) {
        // Far more than boxery's own deadline, far less than Claude Code's 600.
        (EVENTS, 10)
    }

    fn settings_file(
        &self,
        surroundings: &Surroundings<'_>,
        scope: InstallScope,
    ) -> Option<Utf8PathBuf> {
        claude::settings_file(surroundings, scope)
    }

    fn hook_environment(&self, surroundings: &Surroundings<'_>) -> HookEnvironment {
        claude::read_hooks(surroundings, &Sources::read(surroundings))
    }

    fn own_server(&self, surroundings: &Surroundings<'_>, binary: &Utf8Path) -> bool {
        claude::own_server(surroundings, &Sources::read(surroundings), binary)
    }

    fn settings_paths(&self, surroundings: &Surroundings<'_>) -> SettingsPaths {
        claude::settings_paths(surroundings)
    }
}

fn decode(payload: &[u8]) -> Result<HookEvent, String> {
    let root = payload::parse_json(payload::parse_text(payload)?)?;
    if root.members().is_none() {
        return Err("it isn't an object".to_owned());
    }
    let text = |key: &str| match root.get(key) {
        Some(Node::Text(text)) if !text.is_empty() => Ok(Some(text.clone())),
        None | Some(Node::Null | Node::Text(_)) => Ok(None),
        Some(_) => Err(format!("`{key}` isn't a string")),
    };
    let event = text("hook_event_name")?.ok_or("it has no `hook_event_name`")?;
    let call = || tool_call(&root, text("tool_name")?, text("tool_use_id")?);
    let kind = match event.as_str() {
        "PreToolUse" => EventKind::BeforeTool(call()?),
        "PostToolUse" => EventKind::AfterTool {
            call: call()?,
            outcome: ToolOutcome::Success,
        },
        "PostToolUseFailure" => EventKind::AfterTool {
            call: call()?,
            outcome: ToolOutcome::Failure {
                exit: text("error")?.as_deref().and_then(exit_status),
            },
        },
        "PreSkillShellCommand" => EventKind::SkillShell(call()?),
        "SessionStart" => EventKind::SessionStart(match text("source")?.as_deref() {
            Some("startup") => StartSource::Startup,
            Some("resume") => StartSource::Resume,
            Some("fork") => StartSource::Fork,
            Some("clear") => StartSource::Clear,
            Some("compact") => StartSource::Compact,
            other => StartSource::Other(other.unwrap_or_default().to_owned()),
        }),
        "SessionEnd" => EventKind::SessionEnd,
        other if is_foreign_tool_event(other) => {
            return Err(format!("`{other}` is another agent's event"));
        }
        other => EventKind::Other(other.to_owned()),
    };
    Ok(HookEvent {
        agent: AgentId(NAME.to_owned()),
        session: text("session_id")?.map(SessionId),
        subagent: text("agent_id")?,
        folder: text("cwd")?.map(Utf8PathBuf::from),
        permission_mode: text("permission_mode")?,
        kind,
    })
}

/// `Exit code 3` and what follows it.
fn exit_status(error: &str) -> Option<i32> {
    let digits = error.strip_prefix("Exit code ")?;
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end].parse().ok()
}

fn tool_call(
    root: &Node,
    tool: Option<String>,
    call_id: Option<String>,
) -> Result<ToolCall, String> {
    let tool = tool.ok_or("it has no `tool_name`")?;
    let input = root.get("tool_input").ok_or("it has no `tool_input`")?;
    Ok(ToolCall {
        action: action(root, &tool, input)?,
        tool,
        call_id,
    })
}

fn action(root: &Node, tool: &str, input: &Node) -> Result<ToolAction, String> {
    let shell = |dialect, rewritable| match input.get("command") {
        Some(Node::Text(command)) => Ok(ToolAction::Shell {
            command: command.clone(),
            dialect,
            rewritable,
        }),
        _ => Err(format!("`{tool}` has no `command` that is a string")),
    };
    // The `command` of `fs_write` is the name of an operation, that of `apply_patch` a patch.
    if let Some(declared) = declared(NAME, tool, input) {
        return declared;
    }
    match tool {
        // Its other form watches a web socket and has no command.
        "Monitor" if input.get("command").is_none() && input.members().is_some() => {
            Ok(ToolAction::Other)
        }
        "Bash" | "Monitor" => shell(ShellDialect::Posix, true),
        "PowerShell" => shell(ShellDialect::PowerShell, false),
        _ if is_own_tool(tool) && is_own_server(root.get("mcp_server")) => Ok(ToolAction::OwnMcp),
        _ => Ok(match find_command(input) {
            Some((field, command)) => ToolAction::Carrier { field, command },
            None if tool.starts_with("mcp__") => match find_all_paths(input) {
                paths if paths.is_empty() => ToolAction::Other,
                paths => ToolAction::Files { paths },
            },
            None => ToolAction::Other,
        }),
    }
}

/// A server `boxery__x` or `boxery_` has tools whose names begin like ours.
fn is_own_tool(tool: &str) -> bool {
    tool.strip_prefix("mcp__boxery__")
        .is_some_and(|name| !name.starts_with('_') && !name.contains("__"))
}

/// Releases before `mcp_server` was sent tell the server only in the tool's name.
fn is_own_server(server: Option<&Node>) -> bool {
    server.is_none_or(|server| server.get("name").and_then(Node::text) == Some("boxery"))
}

#[cfg(test)]
mod tests {
    use boxery_router::Grant;
    use rstest::rstest;

    use super::*;

    fn payload(tool: &str, input: &str) -> String {
        format!(
            r#"{{"session_id":"s","cwd":"/p","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"{tool}","tool_input":{input},"tool_use_id":"t"}}"#
        )
    }

    fn action_of(payload: &str) -> Result<ToolAction, String> {
        match decode(payload.as_bytes())?.kind {
            EventKind::BeforeTool(call) => Ok(call.action),
            other => Err(format!("{other:?}")),
        }
    }

    #[rstest]
    #[case::no_object("[]")]
    #[case::nothing("")]
    #[case::no_event("{}")]
    #[case::an_event_that_is_no_string(r#"{"hook_event_name":7}"#)]
    #[case::no_tool(r#"{"hook_event_name":"PreToolUse","tool_input":{}}"#)]
    #[case::no_input(r#"{"hook_event_name":"PreToolUse","tool_name":"Bash"}"#)]
    #[case::cursor(
        r#"{"hook_event_name":"preToolUse","tool_name":"Shell","tool_input":{"command":"id"}}"#
    )]
    #[case::cursor_shell(r#"{"hook_event_name":"beforeShellExecution","command":"id"}"#)]
    #[case::hermes(r#"{"hook_event_name":"pre_tool_call","tool_name":"terminal","tool_input":{}}"#)]
    #[case::gemini(
        r#"{"hook_event_name":"BeforeTool","tool_name":"run_shell_command","tool_input":{}}"#
    )]
    #[case::windsurf(
        r#"{"agent_action_name":"pre_run_command","tool_info":{"command_line":"id"}}"#
    )]
    #[case::session_no_string(r#"{"hook_event_name":"SessionEnd","session_id":7}"#)]
    #[case::two_documents(r#"{"hook_event_name":"SessionEnd"}{"hook_event_name":"Stop"}"#)]
    #[case::another_key_twice(r#"{"hook_event_name":"SessionEnd","hook_event_name":"Stop"}"#)]
    fn what_claude_code_does_not_send_is_an_error(#[case] payload: &str) {
        assert!(decode(payload.as_bytes()).is_err());
    }

    #[rstest]
    #[case::missing("Bash", "{}")]
    #[case::null("Bash", r#"{"command":null}"#)]
    #[case::a_number("Bash", r#"{"command":7}"#)]
    #[case::a_list("Bash", r#"{"command":["id"]}"#)]
    #[case::no_object("Bash", r#""id""#)]
    #[case::twice("Bash", r#"{"command":"true","command":"id"}"#)]
    #[case::twice_by_an_escape("Bash", r#"{"command":"true","comm\u0061nd":"id"}"#)]
    #[case::a_lone_surrogate("Bash", r#"{"command":"\ud83d"}"#)]
    #[case::monitor_null("Monitor", r#"{"command":null}"#)]
    #[case::monitor_no_object("Monitor", "[]")]
    #[case::powershell_missing("PowerShell", "{}")]
    #[case::write_without_a_path("Write", r#"{"content":"x"}"#)]
    #[case::patch_without_a_path("apply_patch", r#"{"command":"no patch"}"#)]
    fn a_call_whose_meaning_is_unclear_is_an_error(#[case] tool: &str, #[case] input: &str) {
        assert!(action_of(&payload(tool, input)).is_err());
    }

    fn shell(command: &str, dialect: ShellDialect, rewritable: bool) -> ToolAction {
        ToolAction::Shell {
            command: command.to_owned(),
            dialect,
            rewritable,
        }
    }

    fn carrier(field: &str, command: &str) -> ToolAction {
        ToolAction::Carrier {
            field: field.to_owned(),
            command: command.to_owned(),
        }
    }

    fn files(paths: &[&str]) -> ToolAction {
        ToolAction::Files {
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        }
    }

    #[rstest]
    #[case::bash(
        "Bash",
        r#"{"command":"a\r\nb\u2028"}"#,
        shell("a\r\nb\u{2028}", ShellDialect::Posix, true)
    )]
    #[case::empty("Bash", r#"{"command":""}"#, shell("", ShellDialect::Posix, true))]
    #[case::monitor(
        "Monitor",
        r#"{"command":"id"}"#,
        shell("id", ShellDialect::Posix, true)
    )]
    #[case::monitor_ws("Monitor", r#"{"ws":{"url":"wss://x"}}"#, ToolAction::Other)]
    #[case::powershell(
        "PowerShell",
        r#"{"command":"ls"}"#,
        shell("ls", ShellDialect::PowerShell, false)
    )]
    #[case::lower_case_is_another_tool("bash", r#"{"command":"id"}"#, carrier("command", "id"))]
    #[case::unknown("Future", r#"{"x":[{"script":"id"}]}"#, carrier("script", "id"))]
    #[case::foreign_mcp("mcp__box__run", r#"{"cmd":"id"}"#, carrier("cmd", "id"))]
    #[case::nearly_own_mcp(
        "mcp__boxery_x__vm_bash",
        r#"{"command":"id"}"#,
        carrier("command", "id")
    )]
    #[case::begins_like_ours(
        "mcp__boxery__x__run",
        r#"{"command":"id"}"#,
        carrier("command", "id")
    )]
    #[case::an_underscore_more(
        "mcp__boxery___run",
        r#"{"command":"id"}"#,
        carrier("command", "id")
    )]
    #[case::own_mcp("mcp__boxery__vm_bash", r#"{"command":"id"}"#, ToolAction::OwnMcp)]
    #[case::a_question(
        "AskUserQuestion",
        r#"{"questions":["which command?"]}"#,
        ToolAction::Other
    )]
    #[case::multi_edit("MultiEdit", r#"{"file_path":"/a","edits":[]}"#, files(&["/a"]))]
    #[case::notebook("NotebookEdit", r#"{"notebook_path":"n.ipynb"}"#, files(&["n.ipynb"]))]
    #[case::fs_write("fs_write", r#"{"command":"create","path":"x"}"#, files(&["x"]))]
    #[case::patch("apply_patch", r#"{"command":"*** Add File: a\n+x"}"#, files(&["a"]))]
    fn a_tool_is_known_by_what_it_can_do(
        #[case] tool: &str,
        #[case] input: &str,
        #[case] want: ToolAction,
    ) {
        assert_eq!(action_of(&payload(tool, input)), Ok(want));
    }

    #[rstest]
    #[case::ours(r#"{"name":"boxery","source":"user"}"#, ToolAction::OwnMcp)]
    #[case::another(r#"{"name":"boxery__x"}"#, carrier("command", "id"))]
    #[case::a_plugin(r#"{"name":"plugin:evil:boxery"}"#, carrier("command", "id"))]
    #[case::no_name("{}", carrier("command", "id"))]
    #[case::no_object("7", carrier("command", "id"))]
    fn a_server_that_only_looks_like_ours_is_a_stranger(
        #[case] server: &str,
        #[case] want: ToolAction,
    ) {
        let payload = payload("mcp__boxery__vm_bash", r#"{"command":"id"}"#);
        let payload = payload.replacen('{', &format!(r#"{{"mcp_server":{server},"#), 1);
        assert_eq!(action_of(&payload), Ok(want));
    }

    #[rstest]
    #[case::with_output("Exit code 7\nno such file", Some(7))]
    #[case::alone("Exit code 127", Some(127))]
    #[case::other_words("Command timed out", None)]
    #[case::no_number("Exit code ", None)]
    fn the_exit_status_is_in_the_error(#[case] error: &str, #[case] want: Option<i32>) {
        assert_eq!(exit_status(error), want);
    }

    #[rstest]
    fn a_denied_event_of_another_agent_is_blocked_by_the_exit_status(
        #[values(
            "preToolUse",
            "pre_tool_call",
            "beforeShellExecution",
            "BeforeTool",
            "PreToolUse "
        )]
        event: &str,
    ) {
        let payload = payload("Shell", r#"{"command":"id"}"#).replace(
            r#""hook_event_name":"PreToolUse""#,
            &format!(r#""hook_event_name":"{event}""#),
        );
        assert!(decode(payload.as_bytes()).is_err());
        let denied = Decision::Deny {
            rule: "payload",
            reason: "No.".to_owned(),
        };
        assert_eq!(ClaudeCode.encode(payload.as_bytes(), &denied).exit, 2);
        let passed = ClaudeCode.encode(payload.as_bytes(), &Decision::Pass);
        assert_eq!(passed, Reply::default());
    }

    #[test]
    fn a_byte_order_mark_is_no_error() {
        let payload = format!("\u{feff}{}", payload("Bash", r#"{"command":"id"}"#));
        assert!(decode(payload.as_bytes()).is_ok());
        let reply = ClaudeCode.encode(
            payload.as_bytes(),
            &Decision::Rewrite {
                command: "x".to_owned(),
                grant: Grant::None,
            },
        );
        assert_eq!(
            reply.stdout,
            "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"updatedInput\":{\"command\":\"x\"}}}\n"
        );
    }

    #[test]
    fn a_rewrite_changes_no_other_byte_of_the_input() {
        let input = r#"{"timeout":12345678901234567890123,"command":"id","x":{"command":"y","\u00e9":1.0},"run_in_background":true}"#;
        let reply = ClaudeCode.encode(
            payload("Bash", input).as_bytes(),
            &Decision::Rewrite {
                command: "new \"text\"".to_owned(),
                grant: Grant::Allow,
            },
        );
        let want = input.replacen(r#""id""#, r#""new \"text\"""#, 1);
        assert!(reply.stdout.contains(&want), "{}", reply.stdout);
    }

    #[rstest]
    #[case::powershell("PowerShell", r#"{"command":"ls"}"#)]
    #[case::a_carrier("Future", r#"{"command":"id"}"#)]
    #[case::no_command("Monitor", r#"{"ws":{}}"#)]
    fn what_cannot_be_rewritten_is_denied(#[case] tool: &str, #[case] input: &str) {
        let reply = ClaudeCode.encode(
            payload(tool, input).as_bytes(),
            &Decision::Rewrite {
                command: "x".to_owned(),
                grant: Grant::Allow,
            },
        );
        assert!(reply.stdout.contains(r#""permissionDecision":"deny""#));
    }

    #[rstest]
    #[case::not_json(b"{".as_slice())]
    #[case::not_utf8(b"\xff\xfe{\0}\0".as_slice())]
    #[case::empty(b"".as_slice())]
    fn an_unreadable_payload_is_denied_in_the_form_that_every_event_takes(#[case] payload: &[u8]) {
        let reply = ClaudeCode.encode(
            payload,
            &Decision::Deny {
                rule: "payload",
                reason: "No.".to_owned(),
            },
        );
        assert_eq!(
            reply,
            Reply {
                stdout: "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"No.\"}}\n".to_owned(),
                stderr: "No.\n".to_owned(),
                exit: 2,
            }
        );
        assert_eq!(
            ClaudeCode.encode(payload, &Decision::Pass),
            Reply::default()
        );
    }
}
