//! A command on its way out, asked about once more.

use std::fmt::Write as _;

use boxery_policy::Section;
use boxery_record::{Event, Kind, sha256_hex};
use boxery_router::{Judgement, Ticket, judge, quote_words};

use super::accept::{Accept, Shortfall};
use super::force::{Caller, InForce};
use super::told::Told;
use crate::app::App;
use crate::config::Config;
use crate::env;
use crate::error::Failure;
use crate::inside::Inside;
use crate::place::{Here, pinned_project};

/// A command that is about to run in a VM.
pub(crate) struct Asked<'a> {
    /// Where the verb was started.
    pub(crate) here: &'a Here,
    /// The VM.
    pub(crate) vm: &'a str,
    /// The command.
    pub(crate) argv: &'a [Vec<u8>],
    /// What the hook left for it.
    pub(crate) ticket: Option<&'a Ticket>,
}

/// A command that may run.
pub(crate) struct Cleared {
    /// What is told before the command's first byte.
    pub(crate) notes: Vec<String>,
    /// What the record says of the policy.
    pub(crate) detail: Option<String>,
}

/// Whether the policy lets `asked` run; a refusal is on record.
pub(crate) fn clear(app: &App, config: &Config, asked: &Asked<'_>) -> Result<Cleared, Failure> {
    let inside = match asked.ticket {
        Some(_) => None,
        None => Inside::look(),
    };
    let agent = match asked.ticket {
        Some(ticket) => Some(&ticket.agent),
        None => inside.as_ref().map(|inside| &inside.agent),
    };
    let judged_by = asked.ticket.and_then(|ticket| ticket.policy.as_ref());
    let folder = judged_by
        .and_then(|judged| judged.folder.as_deref())
        .unwrap_or(&asked.here.folder);
    let project = match judged_by {
        Some(judged) => judged.project.clone(),
        None => asked.here.pin.as_ref().and_then(pinned_project),
    };
    let in_force = InForce::find(
        app,
        config,
        Caller {
            agent,
            folder,
            project: project.as_deref(),
        },
    )?;
    let refuse = |rule: &str, detail: &str, failure: Failure| {
        let mut event = Event::new(env::now(), Kind::RunRefused);
        event.vm = Some(asked.vm.to_owned());
        event.agent = agent.map(ToString::to_string);
        let ticket = asked.ticket;
        event.session = ticket
            .and_then(|ticket| ticket.session.as_ref())
            .map(ToString::to_string);
        event.call = ticket.and_then(|ticket| ticket.call.clone());
        event.decision = Some("deny".to_owned());
        event.rule = Some(rule.to_owned());
        event.detail = Some(detail.to_owned());
        event.command_sha256 = Some(sha256_hex(text_of(asked.argv).as_bytes()));
        app.record(&event);
        Err(failure)
    };
    if let Some(judged) = judged_by
        && judged.digest != in_force.policy.digest()
    {
        return refuse(
            "policy-changed",
            &in_force.summary(),
            Failure::from(format!(
                "the policy changed between the hook and this run, so the command was not run; it is now: {}",
                in_force.summary()
            ))
            .hint("let the agent make the call again"),
        );
    }
    let text = text_of(asked.argv);
    let is_whole = asked
        .argv
        .iter()
        .all(|word| std::str::from_utf8(word).is_ok());
    match judge(&in_force.policy, &text) {
        Judgement::Refused(denial) => {
            return refuse(denial.rule, &denial.detail, Failure::from(denial.reason));
        }
        Judgement::Clear if !is_whole && !in_force.policy.is_default() => {
            return refuse(
                "policy-unclear",
                "not UTF-8",
                Failure::from(format!(
                    "the policy {} lets nothing run that can't be judged, and the command isn't UTF-8",
                    in_force.summary()
                )),
            );
        }
        Judgement::Clear | Judgement::Open { .. } => {}
    }
    let (accepted, refused): (Vec<_>, Vec<_>) = in_force
        .sections()
        .into_iter()
        .partition(|(section, _)| accepts(&config.accept, *section));
    if let Some((_, source)) = refused.first() {
        let sections: Vec<Section> = refused.iter().map(|(section, _)| *section).collect();
        return refuse(
            "policy-section",
            &names(&sections),
            Failure::from(not_enforced(source, &sections)).hint(format!(
                "the user can accept that with `{}` in {}",
                accept_line(&sections),
                app.config_path()
            )),
        );
    }
    let mut notes = Vec::new();
    let first = asked
        .ticket
        .is_none_or(|ticket| Told::new(app).first(&ticket.agent, ticket.session.as_ref()));
    if first {
        notes.extend(in_force.warnings());
        if in_force.policy.is_default() && asked.ticket.is_some() {
            notes.push(Told::TEXT.to_owned());
        }
    }
    let accepted: Vec<Section> = accepted.into_iter().map(|(section, _)| section).collect();
    Ok(Cleared {
        notes,
        detail: (!accepted.is_empty())
            .then(|| format!("not enforced, as the user accepts: {}", names(&accepted))),
    })
}

/// A command as the text of shell that would run it.
fn text_of(argv: &[Vec<u8>]) -> String {
    let words: Vec<String> = argv
        .iter()
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    match words.as_slice() {
        // The text itself, as the hook judges it.
        [shell, flag, text] if shell == "bash" && flag == "-c" => text.clone(),
        // A word with NUL is none that could run.
        words => quote_words(words).unwrap_or_else(|| words.join(" ").replace('\0', " ")),
    }
}

/// Whether the user accepts that `section` isn't enforced.
pub(crate) fn accepts(accept: &[Accept], section: Section) -> bool {
    accept.contains(&Accept {
        section,
        shortfall: Shortfall::Unavailable,
    })
}

/// The line of the configuration that accepts it.
pub(crate) fn accept_line(sections: &[Section]) -> String {
    let mut line = "accept = [".to_owned();
    for (number, section) in sections.iter().enumerate() {
        let accept = Accept {
            section: *section,
            shortfall: Shortfall::Unavailable,
        };
        let comma = if number == 0 { "" } else { ", " };
        let _ = write!(line, "{comma}\"{accept}\"");
    }
    line.push(']');
    line
}

fn names(sections: &[Section]) -> String {
    let names: Vec<&str> = sections.iter().map(|section| section.name()).collect();
    names.join(", ")
}

fn not_enforced(source: &str, sections: &[Section]) -> String {
    format!(
        "the policy `{source}` has rules on {}, which aren't enforced on VMs yet, so the command was not run",
        names(sections)
    )
}
