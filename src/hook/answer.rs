//! The answer to one payload while a pin may apply.

use std::sync::OnceLock;

use boxery_agents::{Adapter, Reply, Surroundings};
use boxery_pin::{Lookup, PinStore, ProcessId, ancestors, any_may_apply, resolve, with_settings};
use boxery_router::{
    Decision, EventKind, HookEvent, Refusal, Ruling, Scope, decide, decide_unresolved,
};
use camino::{Utf8Path, Utf8PathBuf};

use super::agent_process::agent_process;
use super::arguments::{Depth, HookCall};
use super::effects;
use super::gather::{Answers, Pinned, read_pinned, with_situation};
use super::{session, tripwire};
use crate::app::App;
use crate::env;
use crate::error::Failure;
use crate::random;

/// One hook event and what is known around it.
pub(crate) struct Hook<'a> {
    pub(crate) app: &'a App,
    pub(crate) adapter: &'static dyn Adapter,
    pub(crate) event: HookEvent,
    /// The call's own folder, else the hook's.
    pub(crate) folder: Option<Utf8PathBuf>,
    /// The processes above the hook.
    pub(crate) ancestors: Vec<ProcessId>,
    /// Where the agent keeps its settings, by its own variables.
    pub(crate) settings: Option<Utf8PathBuf>,
    /// Where the agent was started, by its own variable.
    pub(crate) project: Option<Utf8PathBuf>,
    /// The agent's command line, once it is asked for.
    pub(crate) arguments: OnceLock<Vec<String>>,
    /// Seconds since 1970.
    pub(crate) now: u64,
}

impl Hook<'_> {
    /// What an adapter is told besides the payload.
    pub(crate) fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            home: &self.app.env.home,
            settings: self.settings.as_deref(),
            project: self.project.as_deref(),
            folder: self.folder.as_deref(),
            machine: Utf8Path::new("/"),
            arguments: self.arguments.get_or_init(|| {
                agent_process(&self.ancestors)
                    .map(ProcessId::arguments)
                    .unwrap_or_default()
            }),
        }
    }

    /// The call's folder, links resolved; the top of the disk when it names none.
    pub(crate) fn real_folder(&self) -> Utf8PathBuf {
        match &self.folder {
            Some(folder) => folder
                .canonicalize_utf8()
                .unwrap_or_else(|_| folder.clone()),
            None => Utf8PathBuf::from("/"),
        }
    }

    /// The pin files.
    pub(crate) fn pins(&self) -> PinStore {
        self.app.pins()
    }
}

/// The reply to `payload`.
pub(crate) fn answer(call: &HookCall, adapter: &'static dyn Adapter, payload: &[u8]) -> Reply {
    let decision = match App::new() {
        Ok(app) => decision(call, adapter, payload, &app),
        Err(failure) => deny(format!(
            "boxery can't work here ({}), and a pin may apply",
            line(&failure)
        )),
    };
    adapter.encode(payload, &decision)
}

fn decision(call: &HookCall, adapter: &'static dyn Adapter, payload: &[u8], app: &App) -> Decision {
    let folder = env::current_folder().ok();
    let event = match adapter.decode(payload) {
        Ok(event) => event,
        Err(error) => {
            let agent = boxery_pin::AgentId(adapter.name().to_owned());
            if !may_be_pinned(app, &agent) {
                return Decision::Pass;
            }
            return effects::unreadable(app, &agent, &error.to_string());
        }
    };
    let start = match call.depth {
        Depth::Outer => std::process::id(),
        // The process above is boxery, not the agent.
        Depth::Inner => rustix::process::getppid()
            .and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok())
            .unwrap_or_else(std::process::id),
    };
    let hook = Hook {
        app,
        adapter,
        folder: event.folder.clone().or(folder),
        event,
        ancestors: ancestors(start),
        settings: env::claude_config_dir(),
        project: env::claude_project_dir(),
        arguments: OnceLock::new(),
        now: env::now(),
    };
    hook_decision(&hook)
}

fn hook_decision(hook: &Hook<'_>) -> Decision {
    let rekeyed = match &hook.event.kind {
        EventKind::SessionStart(source) => session::begin(hook, source),
        EventKind::BeforeTool(_)
        | EventKind::AfterTool { .. }
        | EventKind::SkillShell(_)
        | EventKind::SessionEnd
        | EventKind::Other(_) => None,
    };
    let variable = env::boxery_vm();
    let lookup = Lookup {
        environment: variable.own.as_deref(),
        agent: Some(&hook.event.agent),
        session: hook.event.session.as_ref(),
        ancestors: &hook.ancestors,
        folder: hook.folder.as_deref(),
        now: hook.now,
    };
    let found = resolve(&hook.pins(), &lookup).and_then(|found| {
        // A session whose folder moved out of its pinned project is still the project's.
        match hook.project.as_deref().filter(|folder| folder.is_dir()) {
            Some(project) if found.is_none() => resolve(
                &hook.pins(),
                &Lookup {
                    folder: Some(project),
                    ..lookup
                },
            ),
            Some(_) | None => Ok(found),
        }
    });
    let found = found.and_then(|found| with_settings(found, variable.settings.as_deref()));
    let resolved = match found {
        Ok(None) if is_call_of_no_session(hook) && may_be_pinned(hook.app, &hook.event.agent) => {
            let failure = Failure::from("the call names no session".to_owned());
            return unresolved(hook, &failure, None, None);
        }
        Ok(None) => return rekeyed.map_or(Decision::Pass, |context| Decision::Tell { context }),
        Ok(Some(resolved)) => resolved,
        Err(error) => {
            let hint = error.hint();
            return unresolved(hook, &Failure::from(error), hint.as_deref(), None);
        }
    };
    match read_pinned(hook, resolved) {
        Ok(pinned) => pinned_decision(hook, &pinned, rekeyed),
        Err((failure, vm)) => unresolved(hook, &failure, None, Some(vm.as_str())),
    }
}

/// Whether this is a call whose session pin might be missed.
fn is_call_of_no_session(hook: &Hook<'_>) -> bool {
    hook.event.session.is_none()
        && matches!(
            hook.event.kind,
            EventKind::BeforeTool(_) | EventKind::SkillShell(_)
        )
}

/// Whether a pin may apply to a call of `agent` of which only the hook's own
/// surroundings are known.
pub(crate) fn may_be_pinned(app: &App, agent: &boxery_pin::AgentId) -> bool {
    let variable = env::boxery_vm();
    let vm = variable.own.as_deref().or(variable.settings.as_deref());
    let project = env::claude_project_dir().filter(|folder| folder.is_dir());
    let folder = env::current_folder().ok();
    let applies = |folder: Option<&Utf8Path>| any_may_apply(&app.pins(), vm, agent, folder);
    applies(folder.as_deref()) || project.is_some_and(|project| applies(Some(&project)))
}

fn pinned_decision(hook: &Hook<'_>, pinned: &Pinned, rekeyed: Option<String>) -> Decision {
    match &hook.event.kind {
        EventKind::BeforeTool(call) | EventKind::SkillShell(call) => {
            let overdue = tripwire::look_at_overdue(hook, pinned);
            let token = match random::hex() {
                Ok(token) => token,
                Err(problem) => {
                    return deny(format!("boxery can't make a random number ({problem})"));
                }
            };
            let ruling = with_situation(hook, pinned, &token, |situation| {
                decide(&hook.event, situation)
            });
            match overdue.and_then(|()| effects::carry_out(hook, pinned, call, &ruling, &token)) {
                Ok(()) => ruling.decision,
                Err(failure) => keep_denial(call, ruling, &failure),
            }
        }
        EventKind::AfterTool { call, outcome } => tripwire::after(hook, pinned, call, outcome),
        EventKind::SessionStart(_) => session::told(hook, pinned, rekeyed),
        EventKind::SessionEnd => session::end(hook, pinned),
        EventKind::Other(_) => Decision::Pass,
    }
}

/// What is left of a ruling that could not be noted or recorded: only a denial,
/// and a tool that carries no command.
fn keep_denial(call: &boxery_router::ToolCall, ruling: Ruling, failure: &Failure) -> Decision {
    use boxery_router::ToolAction;
    match (&ruling.decision, &call.action) {
        (Decision::Deny { .. }, _)
        | (
            Decision::Pass | Decision::Tell { .. },
            ToolAction::Files { .. }
            | ToolAction::Fetch { .. }
            | ToolAction::OwnMcp
            | ToolAction::Other,
        ) => ruling.decision,
        (
            Decision::Pass
            | Decision::Tell { .. }
            | Decision::Ask { .. }
            | Decision::Rewrite { .. },
            _,
        ) => deny(format!(
            "boxery can't keep what it needs to run this safely: {}; ask the user to look at it",
            line(failure)
        )),
    }
}

/// The answer when a pin may apply and can't be used.
fn unresolved(
    hook: &Hook<'_>,
    failure: &Failure,
    hint: Option<&str>,
    vm: Option<&str>,
) -> Decision {
    let mut reason = format!(
        "a pin applies to this session and boxery can't use it, so no command runs: {}",
        line(failure)
    );
    if let Some(hint) = hint {
        reason.push_str("; hint for the user: ");
        reason.push_str(hint);
    }
    let refusal = Refusal {
        rule: "pin",
        reason,
        scope: Scope::Commands,
    };
    let answers = Answers::new(hook, None, None);
    // The allowlist of tools is in the configuration, which may be what can't be read.
    let ruling = decide_unresolved(&hook.event, &refusal, &[], &answers);
    match &hook.event.kind {
        EventKind::BeforeTool(call) | EventKind::SkillShell(call) => {
            // The decision stands whether or not it can be recorded.
            effects::record_unresolved(hook, call, &ruling, vm, &line(failure)).ok();
        }
        EventKind::SessionStart(_) => {
            return Decision::Tell {
                context: format!("boxery: {}.", refusal.reason),
            };
        }
        EventKind::AfterTool { .. } | EventKind::SessionEnd | EventKind::Other(_) => {}
    }
    ruling.decision
}

fn deny(reason: String) -> Decision {
    Decision::Deny {
        rule: "failure",
        reason,
    }
}

/// A failure and its causes in one line, without the words for a terminal.
pub(crate) fn line(failure: &Failure) -> String {
    let text = failure.render();
    let parts: Vec<&str> = text
        .lines()
        .map(|line| {
            line.trim_start_matches("error: ")
                .trim_start_matches("caused by: ")
        })
        .collect();
    parts.join("; ")
}
