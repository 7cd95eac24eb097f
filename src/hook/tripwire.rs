//! Whether the agent did what it was told.

use boxery_pin::Mode;
use boxery_record::Kind;
use boxery_router::{
    Alarm, Alarms, CallKey, CallNote, Calls, Decision, Finding, ToolCall, ToolOutcome, review,
};

use super::answer::Hook;
use super::effects::{call_event, session_event, tickets};
use super::gather::Pinned;
use crate::error::Failure;

/// The end of a call.
pub(crate) fn after(
    hook: &Hook<'_>,
    pinned: &Pinned,
    call: &ToolCall,
    outcome: &ToolOutcome,
) -> Decision {
    match finding(hook, call, outcome) {
        Ok(Finding::Fine) => Decision::Pass,
        Ok(Finding::Answered(plain)) => Decision::Tell {
            context: format!("boxery: {}.", plain.meaning_of_one()),
        },
        Ok(Finding::Unseen) => {
            let mut event = call_event(hook, call, Kind::Other("unseen".to_owned()));
            event.vm = Some(pinned.resolved.vm.to_string());
            hook.app.log().append(&event).ok();
            Decision::Pass
        }
        Ok(Finding::Escaped { reason }) => {
            let mut event = call_event(hook, call, Kind::Escaped);
            event.vm = Some(pinned.resolved.vm.to_string());
            event.detail = Some(reason.clone());
            hook.app.log().append(&event).ok();
            told(hook, pinned, &reason)
        }
        Err(failure) => told(hook, pinned, &super::answer::line(&failure)),
    }
}

fn finding(hook: &Hook<'_>, call: &ToolCall, outcome: &ToolOutcome) -> Result<Finding, Failure> {
    let calls = Calls::new(hook.app.env.state_path("calls"));
    let Some(key) = CallKey::of(&hook.event, call) else {
        return Ok(Finding::Fine);
    };
    let note = calls.read(&key)?;
    let finding = review(call, outcome, note.as_ref());
    if let Some(note) = note {
        if *outcome == ToolOutcome::Success && is_waiting(hook, &note)? {
            // A run in the background may not have begun yet.
            calls.watch(&note, hook.now)?;
        }
        calls.remove(&key)?;
    }
    Ok(finding)
}

fn is_waiting(hook: &Hook<'_>, note: &CallNote) -> Result<bool, Failure> {
    match note.ticket() {
        Some(ticket) => Ok(tickets(hook.app).is_waiting(ticket)?),
        None => Ok(false),
    }
}

/// Raise the alarm and say so.
fn told(hook: &Hook<'_>, pinned: &Pinned, reason: &str) -> Decision {
    let raised = raise(hook, reason);
    let mut context = format!(
        "boxery: ALARM: {reason}. The command may have run on this machine and not in VM {}. Tell the user.",
        pinned.resolved.vm
    );
    match (pinned.mode, raised) {
        (Mode::Redirect, Ok(())) => {
            context.push_str(" Redirect is off for the rest of this session.");
        }
        (Mode::Guard, Ok(())) => {}
        (_, Err(failure)) => {
            context.push_str(" The alarm can't be kept: ");
            context.push_str(&super::answer::line(&failure));
        }
    }
    Decision::Tell { context }
}

fn raise(hook: &Hook<'_>, reason: &str) -> Result<(), Failure> {
    Alarms::new(hook.app.env.state_path("alarms")).raise(&Alarm {
        version: 1,
        agent: hook.event.agent.clone(),
        session: hook.event.session.clone(),
        reason: reason.to_owned(),
        raised_at: hook.now,
    })?;
    Ok(())
}

/// Raise the alarm for calls of this session that the agent called a success
/// some time ago and that never arrived at `boxery run`.
pub(crate) fn look_at_overdue(hook: &Hook<'_>, pinned: &Pinned) -> Result<(), Failure> {
    let calls = Calls::new(hook.app.env.state_path("calls"));
    for note in calls.watched(&hook.event.agent, hook.event.session.as_ref())? {
        let waiting = is_waiting(hook, &note)?;
        let due = note
            .succeeded_at
            .is_some_and(|at| hook.now >= at + Calls::GRACE);
        if waiting && due {
            let reason =
                "the agent called a rewritten call a success, and it never arrived at boxery";
            let mut event = session_event(hook, Kind::Escaped);
            event.call = Some(note.key.call.clone());
            event.vm = Some(pinned.resolved.vm.to_string());
            event.detail = Some(reason.to_owned());
            hook.app.log().append(&event)?;
            raise(hook, reason)?;
        }
        if !waiting || due {
            calls.unwatch(&note.key)?;
        }
    }
    Ok(())
}
