//! The decision.

use boxery_pin::Mode;
use boxery_policy::{Action, Policy};

use crate::allow::allowed;
use crate::judge::{self, Judgement, judge, judge_declared};
use crate::own::{Naming, OwnCall, OwnContext, parse_own_call};
use crate::words::quote_word;
use crate::{
    Approval, Carriage, Decision, Due, EventKind, Grant, HookEvent, LocalShell, Place, ProofState,
    Questions, Refusal, Ruling, Scope, ShellDialect, Situation, ToolAction, ToolCall, UserVerdict,
    reason,
};

/// The longest text that the VM's bash is given.
pub const LONGEST_TEXT: usize = 1 << 20;

/// Linux takes 128 KiB for one argument; agents quote the command once more
/// and add words of their own around it.
const LONGEST_ARGUMENT: usize = 96 << 10;

/// What happens to the call that a hook tells of while a pin applies.
///
/// Touches nothing but what [`Questions`] looks up. Events that no answer can
/// stop are passed; what they mean is [`review`](crate::review())'s question.
pub fn decide(event: &HookEvent, situation: &Situation<'_>) -> Ruling {
    match &event.kind {
        EventKind::BeforeTool(call) => before_tool(call, situation),
        EventKind::SkillShell(call) => skill_shell(call, situation),
        EventKind::AfterTool { .. }
        | EventKind::SessionStart(_)
        | EventKind::SessionEnd
        | EventKind::Other(_) => Ruling::pass("event"),
    }
}

/// What happens to a call when a pin may apply and can't be used: whatever
/// carries a command is denied with `refusal`, protected files stay protected.
pub fn decide_unresolved(
    event: &HookEvent,
    refusal: &Refusal,
    allow_tools: &[String],
    questions: &dyn Questions,
) -> Ruling {
    let call = match &event.kind {
        EventKind::BeforeTool(call) | EventKind::SkillShell(call) => call,
        EventKind::AfterTool { .. }
        | EventKind::SessionStart(_)
        | EventKind::SessionEnd
        | EventKind::Other(_) => return Ruling::pass("event"),
    };
    match &call.action {
        ToolAction::Carrier { .. } | ToolAction::Files { .. }
            if allow_tools.contains(&call.tool) =>
        {
            Ruling::pass("allow-tools")
        }
        ToolAction::Shell { .. } | ToolAction::Carrier { .. } => {
            Ruling::deny(refusal.rule, refusal.reason.clone())
        }
        ToolAction::Files { paths } => files(paths, questions),
        ToolAction::Fetch { .. } | ToolAction::OwnMcp | ToolAction::Other => match refusal.scope {
            Scope::Everything => Ruling::deny(refusal.rule, refusal.reason.clone()),
            Scope::Commands => Ruling::pass("other-tool"),
        },
    }
}

fn before_tool(call: &ToolCall, situation: &Situation<'_>) -> Ruling {
    if let Some(refusal) = stops(call, situation) {
        return Ruling::deny(refusal.rule, refusal.reason.clone());
    }
    match &call.action {
        ToolAction::OwnMcp if situation.questions.own_server() => Ruling::pass("own-mcp"),
        ToolAction::OwnMcp => Ruling::deny(
            "false-server",
            format!(
                "the tool {} belongs to a server that calls itself boxery and isn't this program, \
                 so nobody knows where it would run a command; ask the user to look at it",
                call.tool
            ),
        ),
        ToolAction::Other => Ruling::pass("other-tool"),
        ToolAction::Files { .. } if situation.allow_tools.contains(&call.tool) => {
            Ruling::pass("allow-tools")
        }
        ToolAction::Files { paths } => match files(paths, situation.questions) {
            Ruling {
                decision: Decision::Pass,
                ..
            } => declared_writes(paths, situation.questions),
            refused => refused,
        },
        ToolAction::Fetch { urls } => declared_urls(urls, situation.questions),
        ToolAction::Carrier { field, command } => carrier(call, field, command, situation),
        ToolAction::Shell {
            command,
            dialect,
            rewritable,
        } => shell(call, command, *dialect, *rewritable, situation),
    }
}

/// The refusal that stops this call, if one does.
fn stops<'a>(call: &ToolCall, situation: &'a Situation<'_>) -> Option<&'a Refusal> {
    let refusal = situation.refusal.as_ref()?;
    let runs_commands = match &call.action {
        ToolAction::Shell { .. } => true,
        ToolAction::Carrier { .. } => !situation.allow_tools.contains(&call.tool),
        ToolAction::Files { .. }
        | ToolAction::Fetch { .. }
        | ToolAction::OwnMcp
        | ToolAction::Other => false,
    };
    match refusal.scope {
        Scope::Everything => Some(refusal),
        Scope::Commands if runs_commands => Some(refusal),
        Scope::Commands => None,
    }
}

fn files(paths: &[String], questions: &dyn Questions) -> Ruling {
    for path in paths {
        if let Some(what) = questions.protected(path) {
            return Ruling::deny(
                "protected-file",
                format!(
                    "`{path}` is {what}; while the session is pinned the agent can't change it, ask the user"
                ),
            );
        }
    }
    Ruling::pass("file-tool")
}

/// The policy's word on paths that a tool writes, where the user wants it.
fn declared_writes(paths: &[String], questions: &dyn Questions) -> Ruling {
    let preflight = questions.preflight();
    if !preflight.files {
        return Ruling::pass("file-tool");
    }
    let folder = preflight.folder.as_deref();
    let writes = paths.iter().map(|path| Action::Write { path, folder });
    declared(writes, questions).unwrap_or_else(|| Ruling::pass("file-tool"))
}

/// The policy's word on URLs that a tool reaches, where the user wants it.
fn declared_urls(urls: &[String], questions: &dyn Questions) -> Ruling {
    let refused = questions
        .preflight()
        .urls
        .then(|| declared(urls.iter().map(|url| Action::Url(url)), questions));
    refused
        .flatten()
        .unwrap_or_else(|| Ruling::pass("other-tool"))
}

fn declared<'a>(
    actions: impl IntoIterator<Item = Action<'a>>,
    questions: &dyn Questions,
) -> Option<Ruling> {
    let denial = match questions.policy() {
        Ok(policy) => judge_declared(policy, actions)?,
        Err(why) => judge::broken(&why),
    };
    Some(Ruling::refuse(denial))
}

fn carrier(call: &ToolCall, field: &str, command: &str, situation: &Situation<'_>) -> Ruling {
    let judged = judged(command, situation);
    if situation.allow_tools.contains(&call.tool) {
        return match judged {
            // The user's own word on this tool; what it carries need not be shell.
            Judgement::Clear | Judgement::Open { .. } => Ruling::pass("allow-tools"),
            Judgement::Refused(denial) if denial.rule == judge::UNCLEAR => {
                Ruling::pass("allow-tools")
            }
            Judgement::Refused(denial) => Ruling::refuse(denial),
        };
    }
    if let Judgement::Refused(denial) = judged {
        return Ruling::refuse(denial);
    }
    if situation.place == Place::Vm {
        return Ruling::pass("on-the-vm");
    }
    Ruling::deny(
        "unknown-tool",
        format!(
            "{}; the tool {} has a command under `{field}`, and boxery can't tell where it would run it",
            reason::guard(situation.binary, situation.vm, command),
            call.tool
        ),
    )
}

fn skill_shell(call: &ToolCall, situation: &Situation<'_>) -> Ruling {
    if let Some(refusal) = stops(call, situation) {
        return Ruling::deny(refusal.rule, refusal.reason.clone());
    }
    let command = match &call.action {
        ToolAction::Shell { command, .. } | ToolAction::Carrier { command, .. } => command.as_str(),
        ToolAction::Files { .. }
        | ToolAction::Fetch { .. }
        | ToolAction::OwnMcp
        | ToolAction::Other => "COMMAND",
    };
    if let Judgement::Refused(denial) = judged(command, situation) {
        return Ruling::refuse(denial);
    }
    if situation.place == Place::Vm {
        return Ruling::pass("on-the-vm");
    }
    Ruling::deny(
        "skill-shell",
        format!(
            "{}; a skill's own shell lines can't be sent to the VM",
            reason::guard(situation.binary, situation.vm, command)
        ),
    )
}

fn shell(
    call: &ToolCall,
    command: &str,
    dialect: ShellDialect,
    rewritable: bool,
    situation: &Situation<'_>,
) -> Ruling {
    if command.is_empty() {
        return Ruling::pass("empty-command");
    }
    if situation.place == Place::Vm {
        return on_the_vm(command, dialect, situation);
    }
    match dialect {
        ShellDialect::Posix => {}
        ShellDialect::PowerShell => {
            return Ruling::deny(
                "powershell",
                format!(
                    "{}; PowerShell text can't be sent to the VM's bash",
                    reason::guard(situation.binary, situation.vm, "COMMAND")
                ),
            );
        }
    }
    if command.contains('\0') {
        return Ruling::deny(
            "nul",
            "the command holds a NUL character, which no shell can run".to_owned(),
        );
    }
    let judged = judged(command, situation);
    if let Judgement::Refused(denial) = judged {
        return Ruling::refuse(denial);
    }
    let redirect = redirect_state(rewritable, situation);
    let own = OwnContext {
        binary: situation.binary,
        vm: situation.vm,
        other_vms: situation.other_vms,
        copy: situation.copy,
        questions: situation.questions,
    };
    match parse_own_call(command, &own) {
        Some(OwnCall::Refused { rule, reason }) => return Ruling::deny(rule, reason),
        Some(OwnCall::Harmless {
            naming,
            inner,
            absolute,
        }) => {
            if let Some(inner) = &inner
                && let Judgement::Refused(denial) = self::judged(inner, situation)
            {
                return Ruling::refuse(denial);
            }
            return own_call(
                call,
                naming,
                inner.as_deref(),
                absolute,
                &redirect,
                situation,
            );
        }
        None => {}
    }
    if allowed(command, situation.allow, situation.questions).is_some() {
        return match judged {
            Judgement::Open { reason } => Ruling::deny(
                judge::UNCLEAR,
                format!(
                    "what can't be judged before it runs doesn't stay on this machine: {reason}; {}",
                    reason::guard(situation.binary, situation.vm, command)
                ),
            ),
            Judgement::Clear | Judgement::Refused(_) => Ruling::pass("allowlist"),
        };
    }
    match redirect {
        Redirect::Live => rewrite(call, command, situation),
        Redirect::NotAsked => Ruling::deny(
            "guard",
            reason::guard(situation.binary, situation.vm, command),
        ),
        Redirect::Off { rule, why } => Ruling::deny(
            rule,
            format!(
                "{}; boxery doesn't rewrite this call: {why}",
                reason::guard(situation.binary, situation.vm, command)
            ),
        ),
    }
}

/// What the policy says of `command`; one that can't be used refuses everything.
fn judged(command: &str, situation: &Situation<'_>) -> Judgement {
    match situation.questions.policy() {
        Ok(policy) => judge(policy, command),
        Err(why) => Judgement::Refused(judge::broken(&why)),
    }
}

/// On the pinned VM itself only the policy has a say.
fn on_the_vm(command: &str, dialect: ShellDialect, situation: &Situation<'_>) -> Ruling {
    let judged = match (dialect, situation.questions.policy()) {
        (ShellDialect::Posix, _) | (ShellDialect::PowerShell, Err(_)) => judged(command, situation),
        (ShellDialect::PowerShell, Ok(policy)) if policy.is_default() => Judgement::Clear,
        (ShellDialect::PowerShell, Ok(policy)) => {
            Judgement::Refused(judge::unclear(policy, "it is PowerShell text"))
        }
    };
    match judged {
        Judgement::Refused(denial) => Ruling::refuse(denial),
        Judgement::Clear | Judgement::Open { .. } => Ruling::pass("on-the-vm"),
    }
}

/// Whether this call may be rewritten.
enum Redirect {
    Live,
    NotAsked,
    Off { rule: &'static str, why: String },
}

fn redirect_state(rewritable: bool, situation: &Situation<'_>) -> Redirect {
    match situation.mode {
        Mode::Guard => return Redirect::NotAsked,
        Mode::Redirect => {}
    }
    let off = |rule, why| Redirect::Off { rule, why };
    if let Some(reason) = &situation.alarm {
        return off(
            "alarm",
            format!("redirect is off for this session, because {reason}"),
        );
    }
    if let ProofState::Unproven { why } = &situation.proof {
        return off("unproven", format!("redirect isn't proven here ({why})"));
    }
    if let Some(first) = situation.rewriters.first() {
        return off(
            "second-rewriter",
            format!("the hook `{first}` may rewrite it too"),
        );
    }
    if !rewritable {
        return off(
            "not-rewritable",
            "the agent takes no rewrite for this tool".to_owned(),
        );
    }
    Redirect::Live
}

fn own_call(
    call: &ToolCall,
    naming: Naming,
    inner: Option<&str>,
    absolute: String,
    redirect: &Redirect,
    situation: &Situation<'_>,
) -> Ruling {
    let verdict = match inner {
        Some(text) => situation.questions.user_rules(&call.tool, text),
        None => UserVerdict::None,
    };
    if let UserVerdict::Deny { rule } = &verdict {
        return Ruling::deny("user-deny", user_deny(rule));
    }
    match (naming, redirect) {
        (Naming::Bare, Redirect::NotAsked | Redirect::Off { .. }) => Ruling::deny(
            "bare-boxery",
            format!(
                "name boxery by its absolute path, so that no other program can answer: `{absolute}`"
            ),
        ),
        (Naming::Bare, Redirect::Live) => match verdict {
            UserVerdict::Ask { rule } => user_ask(&rule, absolute, None),
            UserVerdict::Allow { .. } | UserVerdict::None | UserVerdict::Deny { .. } => Ruling {
                decision: Decision::Rewrite {
                    command: absolute,
                    grant: grant(&verdict, situation.approval),
                },
                rule: "bare-boxery",
                detail: None,
                due: None,
            },
        },
        (Naming::Absolute, _) => match verdict {
            UserVerdict::Ask { rule } => user_ask(&rule, absolute, None),
            UserVerdict::Allow { .. } | UserVerdict::None | UserVerdict::Deny { .. } => {
                Ruling::pass("own-call")
            }
        },
    }
}

fn user_deny(rule: &str) -> String {
    format!("the user's own rule `{rule}` denies this command, in the VM as on the laptop")
}

/// The user is asked, and what runs after a yes is `command`.
fn user_ask(rule: &str, command: String, due: Option<Due>) -> Ruling {
    Ruling {
        decision: Decision::Ask {
            rule: "user-ask",
            reason: format!("the user's own rule `{rule}` wants to be asked about this command"),
            command,
        },
        rule: "user-ask",
        detail: None,
        due,
    }
}

fn grant(verdict: &UserVerdict, approval: Approval) -> Grant {
    match (verdict, approval) {
        (UserVerdict::Allow { .. }, _) | (UserVerdict::None, Approval::Auto) => Grant::Allow,
        (UserVerdict::None, Approval::AsEver)
        | (UserVerdict::Ask { .. } | UserVerdict::Deny { .. }, _) => Grant::None,
    }
}

fn rewrite(call: &ToolCall, command: &str, situation: &Situation<'_>) -> Ruling {
    let folder = match &situation.folder {
        Ok(folder) => folder,
        Err(why) => {
            return Ruling::deny(
                "unmapped",
                format!(
                    "this session is pinned to VM {}, and the call's folder has no counterpart there: {why}",
                    situation.vm
                ),
            );
        }
    };
    if command.len() > LONGEST_TEXT {
        return Ruling::deny(
            "too-long",
            "the command is longer than 1 MiB; write it to a file of the project and run that file"
                .to_owned(),
        );
    }
    let verdict = situation.questions.user_rules(&call.tool, command);
    if let UserVerdict::Deny { rule } = &verdict {
        return Ruling::deny("user-deny", user_deny(rule));
    }
    let Some((text, carriage)) = rewritten_text(command, folder.as_str(), situation) else {
        return Ruling::deny(
            "nul",
            "the command or a path holds a NUL character".to_owned(),
        );
    };
    let due = Some(Due {
        folder: folder.clone(),
        text: command.to_owned(),
        carriage,
        policy: situation.questions.policy().ok().map(Policy::digest),
    });
    match verdict {
        UserVerdict::Ask { rule } => user_ask(&rule, text, due),
        UserVerdict::Allow { .. } | UserVerdict::None | UserVerdict::Deny { .. } => Ruling {
            decision: Decision::Rewrite {
                command: text,
                grant: grant(&verdict, situation.approval),
            },
            rule: "redirect",
            detail: None,
            due,
        },
    }
}

fn rewritten_text(
    command: &str,
    folder: &str,
    situation: &Situation<'_>,
) -> Option<(String, Carriage)> {
    let head = format!(
        "{} run {} --cwd {}",
        quote_word(situation.binary.as_str())?,
        situation.vm,
        quote_word(folder)?
    );
    if situation.shell == LocalShell::Posix {
        let text = format!("{head} -- bash -c {}", quote_word(command)?);
        // The clumsiest quoting that an agent may use makes four bytes of one quote.
        let quoted_again = text.len() + 3 * text.matches('\'').count() + 2;
        if quoted_again <= LONGEST_ARGUMENT && !situation.questions.edits(&text) {
            return Some((text, Carriage::Argument));
        }
    }
    Some((
        format!("{head} --spool {}", situation.token),
        Carriage::Spool,
    ))
}
