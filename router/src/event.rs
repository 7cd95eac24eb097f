//! What an agent told its hook, in words that fit every agent.

use boxery_pin::{AgentId, SessionId};
use camino::Utf8PathBuf;

/// One hook event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookEvent {
    /// The agent.
    pub agent: AgentId,
    /// Its own id of the session; some agents give none.
    pub session: Option<SessionId>,
    /// The subagent that makes the call, when it isn't the main one.
    pub subagent: Option<String>,
    /// The call's own directory, as the agent gave it.
    pub folder: Option<Utf8PathBuf>,
    /// The agent's permission mode, in its own word.
    pub permission_mode: Option<String>,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// A tool is about to be called; the answer can stop or change it.
    BeforeTool(ToolCall),
    /// A tool was called.
    AfterTool {
        /// The call, with the input that the agent says it ran.
        call: ToolCall,
        /// How it ended.
        outcome: ToolOutcome,
    },
    /// The agent is about to run a line of shell in a skill or a slash command.
    /// It can be stopped, not changed.
    SkillShell(ToolCall),
    /// A session begins or goes on.
    SessionStart(StartSource),
    /// A session ends.
    SessionEnd,
    /// Any other event, by its name.
    Other(String),
}

/// How a session came to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartSource {
    /// A new session.
    Startup,
    /// An earlier one goes on.
    Resume,
    /// A copy of another session.
    Fork,
    /// The conversation was cleared; the process goes on under a new id.
    Clear,
    /// The conversation was compacted.
    Compact,
    /// Another word.
    Other(String),
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The tool's name, as the agent spells it.
    pub tool: String,
    /// The call's id, when the agent gives one.
    pub call_id: Option<String>,
    /// What the call does.
    pub action: ToolAction,
}

/// What a tool call does, as far as boxery is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolAction {
    /// One of the agent's own shell tools.
    Shell {
        /// The command's text.
        command: String,
        /// The language it is in.
        dialect: ShellDialect,
        /// Whether this agent takes a rewrite for this tool.
        rewritable: bool,
    },
    /// A tool that boxery doesn't know, or another server's, with a command in its input.
    Carrier {
        /// The key under which the command stands.
        field: String,
        /// The command's text.
        command: String,
    },
    /// A tool that writes files on the laptop.
    Files {
        /// Every path that it names, as given; relative ones to the call's directory.
        paths: Vec<String>,
    },
    /// A tool that reaches what these URLs name.
    Fetch {
        /// Every URL that it names, as given.
        urls: Vec<String>,
    },
    /// A tool of boxery's own MCP server.
    OwnMcp,
    /// Anything else.
    Other,
}

/// The language of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellDialect {
    /// POSIX shell or bash.
    Posix,
    /// PowerShell.
    PowerShell,
}

/// How a tool call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolOutcome {
    /// The agent calls it a success.
    Success,
    /// The agent calls it a failure.
    Failure {
        /// The command's exit status, when the agent tells it.
        exit: Option<i32>,
    },
}
