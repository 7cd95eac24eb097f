//! Answers one question: how does each agent speak, what are its own rules, and
//! where are its settings?
//!
//! Start at [`Adapter`] and the list [`ADAPTERS`]. An adapter turns the agent's
//! payload into a [`HookEvent`] and a [`Decision`] into a [`Reply`]; nothing
//! outside this crate knows any agent's JSON.
//!
//! Invariant: a reply holds only what the agent documents, in exactly one
//! document, because every agent runs the original command when it doesn't
//! understand the answer.

pub mod adapter;

mod claude;
mod command_fields;
mod declared;
mod entry;
mod payload;
mod places;
mod protected;
mod settings;
mod shell;

use boxery_router::{Decision, HookEvent, UserVerdict};
use camino::{Utf8Path, Utf8PathBuf};

pub use adapter::ADAPTERS;
pub use entry::{UnquotableError, hook_command, is_own, parse_own};
pub use places::{FoundHook, HookEnvironment, InstallScope, Unreadable};
pub use protected::settings_paths;
pub use settings::{HookEntry, Plan, SettingsError};

/// What the hook process writes and how it ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reply {
    /// Standard output, exactly.
    pub stdout: String,
    /// Standard error, exactly.
    pub stderr: String,
    /// The exit status.
    pub exit: u8,
}

/// A payload that cannot be read. While a pin may apply it is a denial.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON, or not the JSON this agent sends.
    #[error("the payload is not what {agent} sends: {problem}")]
    Payload {
        /// The agent.
        agent: &'static str,
        /// What is wrong.
        problem: String,
    },
}

/// Where an agent's files lie and where it works, found out by the caller.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The user's home.
    pub home: &'a Utf8Path,
    /// The agent's settings folder, when its own variable names one (`CLAUDE_CONFIG_DIR`).
    pub settings: Option<&'a Utf8Path>,
    /// The folder that the agent was started in (`CLAUDE_PROJECT_DIR`).
    pub project: Option<&'a Utf8Path>,
    /// The call's own folder.
    pub folder: Option<&'a Utf8Path>,
    /// The folder that stands for `/`, where the machine's own settings lie.
    pub machine: &'a Utf8Path,
    /// The agent's command line, when it is known.
    pub arguments: &'a [String],
}

/// Files that an agent reads its settings, hooks, plugins or MCP servers from.
#[derive(Debug, Clone, Default)]
pub struct SettingsPaths {
    /// Files and folders, absolute, each with what it is, such as `an agent's settings`.
    pub paths: Vec<(Utf8PathBuf, &'static str)>,
    /// Ends of paths that count in any folder, such as `.claude/settings.json`; the
    /// last component may end in `*`. A folder's covers what is below it.
    pub tails: Vec<(String, &'static str)>,
    /// Files and folders that hold the model's own notes, which it may write.
    pub own: Vec<Utf8PathBuf>,
}

/// One agent: a payload's meaning, a reply's form, the user's rules and settings.
pub trait Adapter: Sync {
    /// The agent's name on the command line, such as `claude-code`.
    fn name(&self) -> &'static str;

    /// The agent's name in sentences, such as `Claude Code`.
    fn title(&self) -> &'static str;

    /// What the payload says. The payload is kept by the caller for [`Adapter::encode`].
    fn decode(&self, payload: &[u8]) -> Result<HookEvent, DecodeError>;

    /// The agent's own form of `decision` for the event in `payload`.
    /// With a payload that can't be read, a denial in the form that most events take.
    fn encode(&self, payload: &[u8], decision: &Decision) -> Reply;

    /// The user's own permission rules, from all scopes, on `command` as a call of
    /// `tool`. What can't be read or parsed counts for deny and ask, never for allow.
    fn user_rules(&self, surroundings: &Surroundings<'_>, tool: &str, command: &str)
    -> UserVerdict;

    /// Whether the agent itself would change `command` before it runs it, so that
    /// what a hook wrote wouldn't arrive as it was written.
    fn edits(&self, _command: &str) -> bool {
        false
    }

    /// Whether a call of the agent's own shell begins in the folder in which the last
    /// one ended, unless the agent itself moved to another.
    fn keeps_folder(&self) -> bool {
        false
    }

    /// The events that the hook must see, and after how many seconds the agent
    /// gives up on it.
    fn hook_events(&self) -> (&'static [&'static str], u32);

    /// The settings file of a scope that an install writes; `None` without a project.
    fn settings_file(
        &self,
        surroundings: &Surroundings<'_>,
        scope: InstallScope,
    ) -> Option<Utf8PathBuf>;

    /// What the settings say of hooks and of the agent's own sandbox.
    fn hook_environment(&self, surroundings: &Surroundings<'_>) -> HookEnvironment;

    /// Other hooks that may rewrite a shell call, by name; boxery's own isn't one.
    /// Settings that can't be read may hold such a hook.
    fn rewriters(&self, surroundings: &Surroundings<'_>) -> Vec<String> {
        let environment = self.hook_environment(surroundings);
        let hooks = environment.rewriters.iter().map(FoundHook::to_string);
        let unreadable = environment.unreadable.iter();
        hooks
            .chain(unreadable.map(|settings| format!("unknown hooks in {settings}")))
            .collect()
    }

    /// The agent's sandbox mode by its settings, in a word for proofs such as `off`.
    fn sandbox_mode(&self, surroundings: &Surroundings<'_>) -> String {
        let sandboxed = self.hook_environment(surroundings).sandboxed;
        if sandboxed { "on" } else { "off" }.to_owned()
    }

    /// Whether every MCP server that the agent's configuration calls `boxery`, and
    /// at least one, is the program `binary`.
    fn own_server(&self, surroundings: &Surroundings<'_>, binary: &Utf8Path) -> bool;

    /// The files that this agent's own settings come from, under every name it takes.
    fn settings_paths(&self, surroundings: &Surroundings<'_>) -> SettingsPaths;
}
