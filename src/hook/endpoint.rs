//! From the start of the process to its reply.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use boxery_agents::{Adapter, Reply};
use boxery_router::{Decision, EventKind, Seen};

use super::answer::{answer, may_be_pinned};
use super::arguments::{Depth, HookCall};
use super::finish::{bare_denial, write_reply};
use super::isolate::reply_of_inner;
use super::mounts::SlowMounts;
use super::stdin::{Payload, read_payload};
use super::watchdog::Watchdog;
use crate::app::App;
use crate::env::{self, Env};
use crate::exit::Exit;

/// How long the endpoint works before it denies: far below the time-out of any
/// agent's hooks.
const DEADLINE: Duration = Duration::from_secs(2);

/// Answer `boxery hook run AGENT`; `None` when this process was started for
/// something else.
pub(crate) fn main_if_called() -> Option<ExitCode> {
    let call = HookCall::parse(std::env::args_os())?;
    if call.depth == Depth::Outer && rustix::termios::isatty(std::io::stdin()) {
        return None;
    }
    // A panic's text would stand beside the reply.
    std::panic::set_hook(Box::new(|_| {}));
    let reply = catch_unwind(AssertUnwindSafe(|| reply(&call)));
    Some(match reply {
        Ok(Ended::Reply(reply)) => write_reply(&reply),
        Ok(Ended::Usage(problem)) => {
            crate::ui::Ui::new(true).failure(&format!(
                "error: {problem}\nhint: see `boxery hook run --help`\n"
            ));
            Exit::Usage.into()
        }
        Err(_) => write_reply(&bare_denial(BROKEN)),
    })
}

const BROKEN: &str = "boxery failed inside its hook, and a pin may apply, so this call is denied; \
                      ask the user to run `boxery hook status` in a terminal";
const LATE: &str = "boxery's hook could not decide in time, and a pin may apply, so this call is \
                    denied; a folder on the way may not answer, ask the user to look at it";

enum Ended {
    Reply(Reply),
    /// The entry itself is wrong, and nothing is pinned.
    Usage(String),
}

fn reply(call: &HookCall) -> Ended {
    let deadline = Instant::now() + DEADLINE;
    let environment = Env::read().ok();
    let mounts = match call.depth {
        Depth::Outer => SlowMounts::read(),
        Depth::Inner => SlowMounts::default(),
    };
    let pins_answer = environment
        .as_ref()
        .is_none_or(|environment| mounts.spare(environment.state_path("pins").as_std_path()));
    if pins_answer && nothing_is_pinned(environment.as_ref()) {
        return unpinned(call, environment.as_ref(), deadline);
    }
    let adapter = match &call.adapter {
        Ok(adapter) => *adapter,
        Err(problem) => {
            return Ended::Reply(bare_denial(&format!(
                "boxery's hook entry is wrong ({problem}), and a pin may apply, so this call is denied"
            )));
        }
    };
    let payload = match read_payload(deadline) {
        Payload::Whole(payload) => payload,
        Payload::Broken(_) if mounts.is_empty() && !may_apply(adapter) => {
            return Ended::Reply(adapter.encode(b"{}", &Decision::Pass));
        }
        Payload::Broken(problem) => {
            return Ended::Reply(deny(
                adapter,
                b"",
                &format!(
                    "boxery can't read what {} told its hook: {problem}; a pin may apply, so this call is denied",
                    adapter.title()
                ),
            ));
        }
    };
    Ended::Reply(if mounts.is_empty() {
        watched(call, adapter, &payload, deadline)
    } else {
        reply_of_inner(adapter.name(), &payload, deadline)
            .unwrap_or_else(|| deny(adapter, &payload, LATE))
    })
}

/// Whether a pin may apply to a call that can't be read; what can't be told counts as yes.
fn may_apply(adapter: &dyn Adapter) -> bool {
    let agent = boxery_pin::AgentId(adapter.name().to_owned());
    App::new().map_or(true, |app| may_be_pinned(&app, &agent))
}

/// Whether no pin can apply to any call: one variable and one folder are looked at.
fn nothing_is_pinned(environment: Option<&Env>) -> bool {
    if env::boxery_vm().is_set() {
        return false;
    }
    // Without a home nobody can say where pins lie; the entry's own words deny then too.
    environment.is_some_and(
        |environment| match std::fs::read_dir(environment.state_path("pins")) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        },
    )
}

/// No opinion; only the begin of a session leaves a mark.
fn unpinned(call: &HookCall, environment: Option<&Env>, deadline: Instant) -> Ended {
    let adapter = match &call.adapter {
        Ok(adapter) => *adapter,
        Err(problem) => return Ended::Usage(problem.clone()),
    };
    if let Payload::Whole(payload) = read_payload(deadline)
        && payload.windows(12).any(|window| window == b"SessionStart")
        && let Ok(event) = adapter.decode(&payload)
        && matches!(event.kind, EventKind::SessionStart(_))
        && let Some(environment) = environment
    {
        let seen = Seen::new(environment.state_path("seen"));
        // It only tells when this hook was last called; a full disk is no reason to
        // disturb the user.
        seen.note(&event.agent, event.session.as_ref(), env::now())
            .ok();
    }
    Ended::Reply(adapter.encode(b"{}", &Decision::Pass))
}

/// The answer, or a denial when it panics or is late.
fn watched(
    call: &HookCall,
    adapter: &'static dyn Adapter,
    payload: &[u8],
    deadline: Instant,
) -> Reply {
    let late = payload.to_owned();
    // The inner process has a parent that keeps the deadline.
    let watchdog = match call.depth {
        Depth::Outer => match Watchdog::start(deadline, move || deny(adapter, &late, LATE)) {
            Ok(watchdog) => Some(watchdog),
            Err(_) => return deny(adapter, payload, BROKEN),
        },
        Depth::Inner => None,
    };
    let answered = catch_unwind(AssertUnwindSafe(|| answer(call, adapter, payload)));
    let reply = answered.unwrap_or_else(|_| deny(adapter, payload, BROKEN));
    if let Some(watchdog) = watchdog {
        watchdog.claim();
    }
    reply
}

fn deny(adapter: &dyn Adapter, payload: &[u8], reason: &str) -> Reply {
    let decision = Decision::Deny {
        rule: "failure",
        reason: reason.to_owned(),
    };
    adapter.encode(payload, &decision)
}
