//! The begin and the end of a session.

use std::time::Duration;

use boxery_pin::{Mode, SessionStart, StartKind, rekey};
use boxery_record::Kind;
use boxery_router::{Alarms, Calls, Decision, Seen, Spool, StartSource, Ticket, quote_word};

use super::agent_process::agent_process;
use super::answer::{Hook, line};
use super::effects::{session_event, tickets};
use super::gather::{Pinned, in_force};
use super::tripwire;
use crate::app::App;
use crate::env;
use crate::error::Failure;
use crate::policy::Told;

/// Alarms and notes of calls outlive a session by this many seconds.
const KEPT: u64 = 30 * 24 * 3600;

/// Note that the session was seen, let its pin follow it to a new id, and clean up;
/// what the user should know of it.
pub(crate) fn begin(hook: &Hook<'_>, source: &StartSource) -> Option<String> {
    let seen = Seen::new(hook.app.env.state_path("seen"));
    // It only tells when this hook was last called.
    seen.note(&hook.event.agent, hook.event.session.as_ref(), hook.now)
        .ok();
    let (Some(session), Some(folder)) = (&hook.event.session, &hook.folder) else {
        return None;
    };
    let start = SessionStart {
        agent: &hook.event.agent,
        session,
        kind: match source {
            StartSource::Startup | StartSource::Other(_) => StartKind::New,
            StartSource::Resume | StartSource::Fork => StartKind::Continued,
            StartSource::Clear | StartSource::Compact => StartKind::SameProcess,
        },
        previous: None,
        process: agent_process(&hook.ancestors),
        ancestors: &hook.ancestors,
        folder,
        now: hook.now,
    };
    match rekey(&hook.pins(), &start) {
        Ok(rekeyed) => rekeyed.note().map(|note| format!("boxery: {note}")),
        Err(error) => Some(format!(
            "boxery: a pin could not follow this session: {}.",
            line(&Failure::from(error))
        )),
    }
}

/// What a pinned session is told when it begins.
pub(crate) fn told(hook: &Hook<'_>, pinned: &Pinned, rekeyed: Option<String>) -> Decision {
    let vm = &pinned.resolved.vm;
    let mut event = session_event(hook, Kind::SessionStart);
    event.vm = Some(vm.to_string());
    event.mode = Some(pinned.mode.to_string());
    hook.app.log().append(&event).ok();
    let binary = env::own_binary()
        .ok()
        .and_then(|binary| quote_word(binary.as_str()));
    let binary = binary.unwrap_or_else(|| "boxery".to_owned());
    let mut lines = vec![match pinned.mode {
        Mode::Guard => format!(
            "boxery: this session is pinned to VM {vm}; the local shell is closed (guard). Run commands \
             with vm_bash, or vm_jobs for long-running ones; without those tools with \
             `{binary} run {vm} -- bash -c 'COMMAND'`."
        ),
        Mode::Redirect => format!(
            "boxery: this session is pinned to VM {vm}; shell commands run there, not on this machine (redirect)."
        ),
    }];
    lines.push(match &pinned.map {
        Ok(map) if map.copy.as_str() == map.project.as_str() => format!(
            "boxery: files are edited here in {}; the VM works on its copy at the same path.",
            map.project
        ),
        Ok(map) => format!(
            "boxery: files are edited here in {}; the VM works on its copy in {}.",
            map.project, map.copy
        ),
        Err(why) => format!("boxery: this folder has no counterpart on the VM: {why}."),
    });
    match in_force(hook, pinned) {
        Ok(in_force) if in_force.policy.is_default() => {
            Told::new(hook.app).first(&hook.event.agent, hook.event.session.as_ref());
            lines.push(format!("boxery: {}.", Told::TEXT));
        }
        Ok(in_force) => lines.push(format!("boxery: the policy is {}.", in_force.summary())),
        Err(failure) => lines.push(format!(
            "boxery: the policy can't be used, so no command runs: {}.",
            line(&failure)
        )),
    }
    lines.extend(rekeyed);
    Decision::Tell {
        context: lines.join("\n"),
    }
}

/// Record the end of a pinned session and remove what nobody needs any more.
pub(crate) fn end(hook: &Hook<'_>, pinned: &Pinned) -> Decision {
    let mut event = session_event(hook, Kind::SessionEnd);
    event.vm = Some(pinned.resolved.vm.to_string());
    hook.app.log().append(&event).ok();
    // The last chance to notice a call that never arrived.
    tripwire::look_at_overdue(hook, pinned).ok();
    // What can't be removed now is removed another time.
    clean_up(hook.app, hook.now).ok();
    Decision::Pass
}

fn clean_up(app: &App, now: u64) -> Result<(), Failure> {
    tickets(app).expire(now)?;
    Spool::new(app.env.state_path("spool")).expire(now.saturating_sub(Ticket::LIFETIME))?;
    Calls::new(app.env.state_path("calls")).expire(now.saturating_sub(KEPT))?;
    Alarms::new(app.env.state_path("alarms")).expire(now.saturating_sub(KEPT))?;
    Told::new(app).expire(Duration::from_secs(KEPT));
    app.pins().expire(now)?;
    Ok(())
}
