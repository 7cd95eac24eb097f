//! What the hook keeps an agent from, for a verb that the agent started.

use std::sync::OnceLock;

use boxery_agents::ADAPTERS;
use boxery_pin::{AgentId, ancestors};
use boxery_router::{EventKind, HookEvent, ProtectedPaths};
use camino::Utf8Path;

use super::answer::Hook;
use super::protected::protected_paths;
use crate::app::App;
use crate::env;
use crate::policy::{Caller, policy_files};

/// The files that must not be written for an agent, in `folder` of the project at
/// `project`.
pub(crate) fn protected_for(
    app: &App,
    agent: Option<&AgentId>,
    folder: &Utf8Path,
    project: Option<&Utf8Path>,
) -> ProtectedPaths {
    let named = ADAPTERS
        .iter()
        .find(|adapter| agent.is_some_and(|agent| agent.0 == adapter.name()));
    // Whichever it is: the settings of all agents are kept from each.
    let adapter = named.unwrap_or(&ADAPTERS[0]);
    let hook = Hook {
        app,
        adapter: *adapter,
        event: HookEvent {
            agent: AgentId(adapter.name().to_owned()),
            session: None,
            subagent: None,
            folder: Some(folder.to_owned()),
            permission_mode: None,
            kind: EventKind::Other("verb".to_owned()),
        },
        folder: Some(folder.to_owned()),
        ancestors: ancestors(std::process::id()),
        settings: env::claude_config_dir(),
        project: env::claude_project_dir(),
        arguments: OnceLock::new(),
        now: env::now(),
    };
    let mut protected = protected_paths(&hook, project);
    let caller = Caller {
        agent: Some(&hook.event.agent),
        folder: &hook.real_folder(),
        project,
    };
    let files = policy_files(app, &app.config().unwrap_or_default(), caller);
    let files = files.into_iter().map(|path| (path, "a policy file"));
    protected.paths.extend(files);
    protected
}
