//! Whether an agent's shell tool started this program, and which process that agent is.

use boxery_pin::{AgentId, ProcessId, SessionId, ancestors};

use crate::env;
use crate::hook::agent_process;

/// The names under which agents' programs run, and the agents' own.
const PROGRAMS: &[(&str, &str)] = &[
    ("claude", CLAUDE),
    ("codex", "codex"),
    ("opencode", "opencode"),
    ("gemini", "gemini"),
    ("qwen", "qwen"),
    ("copilot", "copilot"),
    ("cursor-agent", "cursor"),
    ("hermes", "hermes"),
];

const CLAUDE: &str = "claude-code";

/// The agent in whose shell this program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inside {
    /// The agent.
    pub(crate) agent: AgentId,
    /// Its session, when it says which.
    pub(crate) session: Option<SessionId>,
    /// Its process, when it is among those above.
    pub(crate) process: Option<ProcessId>,
}

impl Inside {
    /// Look at the environment and at the processes above. An agent that hides its
    /// variables is still found by its program; one that hides both isn't.
    pub(crate) fn look() -> Option<Self> {
        let above = ancestors(std::process::id());
        let named = above
            .iter()
            .find_map(|process| Some((*process, agent_of(*process)?)));
        if env::inside_agent() {
            let told = env::claude_pid();
            let process = above
                .iter()
                .copied()
                .find(|process| Some(process.pid) == told)
                .or_else(|| named.map(|(process, _)| process))
                .or_else(|| agent_process(&above));
            return Some(Self {
                agent: AgentId(CLAUDE.to_owned()),
                session: env::claude_session_id().map(SessionId),
                process,
            });
        }
        let (process, agent) = named?;
        Some(Self {
            agent: AgentId(agent.to_owned()),
            session: None,
            process: Some(process),
        })
    }
}

/// The agent whose program `process` runs: by the kernel's name for it, by its first
/// argument, or by its second where an interpreter runs it.
fn agent_of(process: ProcessId) -> Option<&'static str> {
    let name = process.name();
    let arguments = process.arguments();
    let arguments = arguments.iter().take(2).map(String::as_str);
    arguments.chain(name.as_deref()).find_map(agent_named)
}

fn agent_named(word: &str) -> Option<&'static str> {
    let file = word.rsplit('/').next().unwrap_or(word);
    let known = PROGRAMS.iter().find(|(program, _)| *program == file);
    known.map(|(_, agent)| *agent)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::name("claude", Some(CLAUDE))]
    #[case::path("/usr/lib/node_modules/.bin/claude", Some(CLAUDE))]
    #[case::another_agent("/opt/codex", Some("codex"))]
    #[case::longer("claude-notes", None)]
    #[case::folder("/home/claude/bin/make", None)]
    #[case::shell("bash", None)]
    #[case::empty("", None)]
    fn an_agents_program_is_known_by_its_file_name(#[case] word: &str, #[case] want: Option<&str>) {
        assert_eq!(agent_named(word), want);
    }
}
