//! Claude Code's form of an answer.

use boxery_router::{Decision, Grant};

use crate::Reply;
use crate::payload::{self, Node};

/// What a reply depends on.
pub(crate) struct Facts<'a> {
    event: String,
    tool: String,
    bypass: bool,
    input: Option<&'a str>,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(payload: &'a [u8]) -> Result<Self, String> {
        let text = payload::parse_text(payload)?;
        let root = payload::parse_json(text)?;
        let word = |key| root.get(key).and_then(Node::text);
        Ok(Self {
            event: word("hook_event_name")
                .ok_or("it has no `hook_event_name`")?
                .to_owned(),
            tool: word("tool_name").unwrap_or_default().to_owned(),
            bypass: word("permission_mode") == Some("bypassPermissions"),
            input: payload::raw_member(text, "tool_input"),
        })
    }

    pub(crate) fn reply(&self, decision: &Decision) -> Reply {
        let event = self.event.as_str();
        match decision {
            Decision::Pass => Reply::default(),
            Decision::Tell { context } => self.tell(context),
            Decision::Deny { reason, .. } => match event {
                "PreToolUse" | "PreSkillShellCommand" => permission(event, "deny", reason),
                _ if is_foreign_tool_event(event) => {
                    reply_to_unreadable(decision, "it is another agent's")
                }
                // The call is over, or never was: all that is left is to tell.
                _ => self.tell(reason),
            },
            Decision::Ask {
                reason, command, ..
            } => self.rewrite(Some(("ask", reason)), command),
            Decision::Rewrite { command, grant } => match grant {
                Grant::Allow if !self.bypass => {
                    self.rewrite(Some(("allow", "boxery runs this in the VM")), command)
                }
                Grant::Allow | Grant::None => self.rewrite(None, command),
            },
        }
    }

    /// Only these events take text for the model; in others an answer that
    /// doesn't fit the event's schema would be an error.
    fn tell(&self, context: &str) -> Reply {
        match self.event.as_str() {
            "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "PostToolBatch"
            | "SessionStart" | "SubagentStart" | "UserPromptSubmit" => answer(&format!(
                r#""hookEventName":{},"additionalContext":{}"#,
                quote(&self.event),
                quote(context)
            )),
            _ => Reply::default(),
        }
    }

    fn rewrite(&self, decision: Option<(&str, &str)>, command: &str) -> Reply {
        let event = self.event.as_str();
        if event != "PreToolUse" {
            let reason = "boxery would have to rewrite this command, and Claude Code takes no \
                          rewrite here. Use the Bash tool.";
            return match event {
                "PreSkillShellCommand" => permission(event, "deny", reason),
                _ => Reply::default(),
            };
        }
        let input = self
            .input
            .filter(|_| matches!(self.tool.as_str(), "Bash" | "Monitor"))
            .and_then(|input| payload::replace_member(input, "command", &quote(command)));
        let Some(input) = input else {
            let reason =
                "boxery can't rewrite this call: it isn't one of Bash or Monitor with a `command`.";
            return permission(event, "deny", reason);
        };
        let decision = decision.map_or_else(String::new, |(decision, reason)| {
            format!(
                r#""permissionDecision":{},"permissionDecisionReason":{},"#,
                quote(decision),
                quote(reason)
            )
        });
        answer(&format!(
            r#""hookEventName":"PreToolUse",{decision}"updatedInput":{input}"#
        ))
    }
}

/// A denial that every event which can be denied understands: Claude Code takes
/// the `PreToolUse` form for skill commands too, and exit 2 blocks whatever
/// standard output holds.
pub(crate) fn reply_to_unreadable(decision: &Decision, problem: &str) -> Reply {
    let reason = match decision {
        Decision::Pass | Decision::Tell { .. } => return Reply::default(),
        Decision::Deny { reason, .. } => reason.clone(),
        Decision::Ask { .. } | Decision::Rewrite { .. } => {
            format!("boxery can't rewrite a call it can't read: {problem}.")
        }
    };
    Reply {
        stderr: format!("{reason}\n"),
        exit: 2,
        ..permission("PreToolUse", "deny", &reason)
    }
}

fn permission(event: &str, decision: &str, reason: &str) -> Reply {
    answer(&format!(
        r#""hookEventName":{},"permissionDecision":{},"permissionDecisionReason":{}"#,
        quote(event),
        quote(decision),
        quote(reason)
    ))
}

fn answer(members: &str) -> Reply {
    Reply {
        stdout: format!("{{\"hookSpecificOutput\":{{{members}}}}}\n"),
        ..Reply::default()
    }
}

fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Cursor, Copilot, Devin and others start the hooks of Claude's settings file
/// too, each with its own word for a tool call. Passing one over would let the
/// call run.
pub(crate) fn is_foreign_tool_event(event: &str) -> bool {
    let word: String = event
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    matches!(
        word.as_str(),
        "pretooluse"
            | "pretoolcall"
            | "beforetool"
            | "beforeshellexecution"
            | "beforemcpexecution"
            | "preruncommand"
            | "toolcall"
    )
}
