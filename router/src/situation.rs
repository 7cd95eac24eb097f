//! What an answer depends on besides the event.

use boxery_pin::{Mode, RemotePath, VmName};
use boxery_policy::Policy;
use camino::Utf8Path;

/// Everything that a decision for a pinned call depends on, gathered by the caller.
pub struct Situation<'a> {
    /// boxery's own binary, absolute.
    pub binary: &'a Utf8Path,
    /// The VM that the call is pinned to.
    pub vm: &'a VmName,
    /// The other VMs that the user has.
    pub other_vms: &'a [VmName],
    /// Whether this machine is that VM.
    pub place: Place,
    /// The mode that the pin or the user's config asks for.
    pub mode: Mode,
    /// The top folder of the project's copy on the VM, when the project has one.
    pub copy: Option<&'a RemotePath>,
    /// The folder on the VM that corresponds to the call's own, or why there is none.
    pub folder: Result<RemotePath, String>,
    /// The agent's local shell.
    pub shell: LocalShell,
    /// Whether this agent was seen to honour a rewrite.
    pub proof: ProofState,
    /// Why the session was dropped to guard, if it was.
    pub alarm: Option<String>,
    /// Other hooks that may rewrite the same call, by name.
    pub rewriters: &'a [String],
    /// Why nothing may run at all, if so.
    pub refusal: Option<Refusal>,
    /// The user's allowlist of local commands.
    pub allow: &'a [String],
    /// Tools that may carry a command although boxery doesn't know them.
    pub allow_tools: &'a [String],
    /// Whether the user chose `--auto-approve`.
    pub approval: Approval,
    /// 32 hex digits, fresh for this call: the name of a spool file.
    pub token: &'a str,
    /// What is looked up only when it matters.
    pub questions: &'a dyn Questions,
}

/// Where this process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// On the laptop.
    Laptop,
    /// On the pinned VM itself.
    Vm,
}

/// The agent's local shell, as far as quoting goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalShell {
    /// It reads POSIX quoting.
    Posix,
    /// Not known.
    Unknown,
}

/// What a rewrite says of the permission when the user's rules say nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// The agent asks as ever.
    AsEver,
    /// Every rewrite is approved: the user's choice at install.
    Auto,
}

/// Whether redirect was shown to work for this agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProofState {
    /// A rewritten call of this executable, in these modes, reached a VM.
    Proven,
    /// Not shown.
    Unproven {
        /// Why not, as a clause.
        why: String,
    },
}

/// A reason for which nothing may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// A stable word for the record.
    pub rule: &'static str,
    /// Full sentences for the model.
    pub reason: String,
    /// Which calls it stops.
    pub scope: Scope,
}

/// Which calls a [`Refusal`] stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those that run a command.
    Commands,
    /// All of them.
    Everything,
}

/// The user's own permission rules on a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserVerdict {
    /// A rule denies it.
    Deny {
        /// The rule, as the user wrote it.
        rule: String,
    },
    /// A rule wants the user asked.
    Ask {
        /// The rule, as the user wrote it.
        rule: String,
    },
    /// A rule allows it.
    Allow {
        /// The rule, as the user wrote it.
        rule: String,
    },
    /// No rule speaks of it.
    None,
}

/// What agents' own file and fetch tools declare, as far as the policy has a say in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preflight {
    /// Whether the paths that they write are judged.
    pub files: bool,
    /// Whether the URLs that they reach are.
    pub urls: bool,
    /// The folder that relative paths stand in.
    pub folder: Option<String>,
}

/// Looked up only when the answer decides something.
pub trait Questions {
    /// Which of other tools' inputs the policy judges: the user's choice.
    fn preflight(&self) -> Preflight;

    /// The policy that holds for the call, or why it can't be used.
    fn policy(&self) -> Result<&Policy, String>;

    /// The agent's own permission rules on `command` as a call of `tool`.
    fn user_rules(&self, tool: &str, command: &str) -> UserVerdict;

    /// Whether the agent itself would change `text` before it runs it.
    fn edits(&self, text: &str) -> bool;

    /// Why a local `git` could run another program here, if it could.
    fn git_hazard(&self) -> Option<String>;

    /// What `path` (as given; relative to the call's folder) belongs to, when
    /// the agent must not write it while pinned.
    fn protected(&self, path: &str) -> Option<String>;

    /// Whether every MCP server that is configured under boxery's name, and at
    /// least one, is this very program.
    fn own_server(&self) -> bool;

    /// Whether `path` (as given) lies inside the project, links resolved.
    fn in_project(&self, path: &str) -> bool;
}
