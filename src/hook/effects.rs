//! What must be on disk before a decision is told.

use boxery_pin::{AgentId, PinFile, PinKey, PinOrigin, Project};
use boxery_record::{Event, Kind};
use boxery_router::{
    CallKey, CallNote, Calls, Carriage, Decision, Due, JudgedBy, Ruling, Spool, Ticket, TicketName,
    Tickets, ToolAction, ToolCall,
};

use super::agent_process::agent_process;
use super::answer::Hook;
use super::gather::Pinned;
use crate::app::App;
use crate::error::Failure;
use crate::{env, place, random};

/// Leave the ticket, the spooled text and the note of `call`, and record `ruling`.
pub(crate) fn carry_out(
    hook: &Hook<'_>,
    pinned: &Pinned,
    call: &ToolCall,
    ruling: &Ruling,
    token: &str,
) -> Result<(), Failure> {
    if let PinOrigin::File(key) = &pinned.resolved.origin {
        hook.pins().touch(key, hook.now)?;
        if pinned.resolved.project.is_none() {
            settle(hook, key)?;
        }
    }
    let ticket = match &ruling.due {
        Some(due) => Some(leave_ticket(hook, pinned, call, due, token)?),
        None => None,
    };
    if let (Some(key), Some(text)) = (CallKey::of(&hook.event, call), command(call)) {
        let note = CallNote::new(key, ruling, text, ticket, hook.now);
        Calls::new(hook.app.env.state_path("calls")).write(&note)?;
    }
    let mut event = decision_event(hook, call, ruling);
    event.vm = Some(pinned.resolved.vm.to_string());
    event.mode = Some(pinned.mode.to_string());
    hook.app.log().append(&event)?;
    Ok(())
}

/// Note in the pin of a session, which the user named from elsewhere, where it works
/// and in which process, so that it is found again under the session's next id.
fn settle(hook: &Hook<'_>, key: &PinKey) -> Result<(), Failure> {
    let started_in = hook.project.as_ref().filter(|folder| folder.is_dir());
    let (PinKey::Session { .. }, Some(folder)) = (key, started_in.or(hook.folder.as_ref())) else {
        return Ok(());
    };
    let store = hook.pins();
    let Some(stored) = store.read(key)? else {
        return Ok(());
    };
    let project = Project::of(folder)?;
    store.write(&PinFile {
        project: Some(project.root),
        git_common: project.git_common,
        process: agent_process(&hook.ancestors).or(stored.file.process),
        ..stored.file
    })?;
    Ok(())
}

fn leave_ticket(
    hook: &Hook<'_>,
    pinned: &Pinned,
    call: &ToolCall,
    due: &Due,
    token: &str,
) -> Result<TicketName, Failure> {
    match due.carriage {
        Carriage::Argument => {}
        Carriage::Spool => {
            Spool::new(hook.app.env.state_path("spool")).put(token, &due.text)?;
        }
    }
    let ticket = Ticket {
        version: Ticket::VERSION,
        agent: hook.event.agent.clone(),
        session: hook.event.session.clone(),
        subagent: hook.event.subagent.clone(),
        call: call.call_id.clone(),
        vm: pinned.resolved.vm.clone(),
        folder: due.folder.clone(),
        keeps_folder: hook.adapter.keeps_folder(),
        drift: pinned.resolved.drift,
        policy: due.policy.clone().map(|digest| JudgedBy {
            digest,
            folder: Some(hook.real_folder()),
            project: place::pinned_project(&pinned.resolved),
        }),
        text_sha256: Ticket::digest(&due.text),
        written_at: hook.now,
        expires_at: hook.now + Ticket::LIFETIME,
    };
    // The token of a spool file stands in the rewritten text, so the ticket has its own.
    Ok(tickets(hook.app).write(&ticket, &random::hex()?)?)
}

/// The tickets.
pub(crate) fn tickets(app: &App) -> Tickets {
    Tickets::new(app.env.state_path("tickets"))
}

/// An event about this hook's session.
pub(crate) fn session_event(hook: &Hook<'_>, kind: Kind) -> Event {
    Event {
        agent: Some(hook.event.agent.to_string()),
        session: hook.event.session.as_ref().map(ToString::to_string),
        subagent: hook.event.subagent.clone(),
        ..Event::new(hook.now, kind)
    }
}

/// An event about a call.
pub(crate) fn call_event(hook: &Hook<'_>, call: &ToolCall, kind: Kind) -> Event {
    Event {
        call: call.call_id.clone(),
        tool: Some(call.tool.clone()),
        command_sha256: command(call).map(|text| boxery_record::sha256_hex(text.as_bytes())),
        ..session_event(hook, kind)
    }
}

fn decision_event(hook: &Hook<'_>, call: &ToolCall, ruling: &Ruling) -> Event {
    let decision = match &ruling.decision {
        Decision::Pass | Decision::Tell { .. } => "pass",
        Decision::Deny { .. } => "deny",
        Decision::Ask { .. } => "ask",
        Decision::Rewrite { .. } => "rewrite",
    };
    Event {
        decision: Some(decision.to_owned()),
        rule: Some(ruling.rule.to_owned()),
        detail: ruling.detail.clone(),
        ..call_event(hook, call, Kind::Decision)
    }
}

/// The text of a call that carries a command.
fn command(call: &ToolCall) -> Option<&str> {
    match &call.action {
        ToolAction::Shell { command, .. } | ToolAction::Carrier { command, .. } => Some(command),
        ToolAction::Files { .. }
        | ToolAction::Fetch { .. }
        | ToolAction::OwnMcp
        | ToolAction::Other => None,
    }
}

/// Record a ruling under a pin that can't be used, and note the call.
pub(crate) fn record_unresolved(
    hook: &Hook<'_>,
    call: &ToolCall,
    ruling: &Ruling,
    vm: Option<&str>,
    problem: &str,
) -> Result<(), Failure> {
    if let (Some(key), Some(text)) = (CallKey::of(&hook.event, call), command(call)) {
        let note = CallNote::new(key, ruling, text, None, hook.now);
        Calls::new(hook.app.env.state_path("calls")).write(&note)?;
    }
    let mut event = decision_event(hook, call, ruling);
    event.vm = vm.map(str::to_owned);
    event.detail = Some(problem.to_owned());
    hook.app.log().append(&event)?;
    Ok(())
}

/// The denial of a payload that can't be read.
pub(crate) fn unreadable(app: &App, agent: &AgentId, problem: &str) -> Decision {
    let rule = "payload";
    let event = Event {
        agent: Some(agent.to_string()),
        decision: Some("deny".to_owned()),
        rule: Some(rule.to_owned()),
        detail: Some(problem.to_owned()),
        ..Event::new(env::now(), Kind::Decision)
    };
    // The denial stands whether or not it can be recorded.
    app.log().append(&event).ok();
    Decision::Deny {
        rule,
        reason: format!(
            "boxery can't read this call, and a pin may apply, so it is denied: {problem}"
        ),
    }
}
