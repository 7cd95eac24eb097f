//! `boxery policy trust`.

use boxery_policy::{Content, Key, Origin};
use boxery_record::{Event, Kind};

use crate::app::App;
use crate::env;
use crate::error::Failure;
use crate::exit::Exit;
use crate::place::Here;
use crate::policy::{Caller, InForce, Part, Standing, Trusted};

/// Let the policy of this project replace your own
///
/// Until then it can only add to what holds without it. It is trusted as it stands:
/// when one of its files changes, it has to be trusted again.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Trust it no more
    #[arg(long)]
    revoke: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    app.refuse_agents("policy trust")?;
    let here = Here::look(app)?;
    let caller = Caller {
        agent: None,
        folder: &here.folder,
        project: None,
    };
    let in_force = InForce::find(app, &app.config()?, caller)?;
    let nearest = in_force.parts.first();
    let Some(part) = nearest.filter(|part| matches!(part.resolved.origin, Origin::Project(_)))
    else {
        app.ui.say(match nearest.map(|part| &part.resolved.origin) {
            Some(Origin::User(path)) => format!("{path} is your own, and needs no trust"),
            Some(Origin::Project(_) | Origin::Hook(_) | Origin::Nobody) | None => {
                "no policy file lies in this project".to_owned()
            }
        });
        return Ok(Exit::No);
    };
    let name = part.resolved.origin.name();
    let trusted = Trusted::new(app);
    match (args.revoke, part.standing) {
        (true, Standing::Trusted) => {
            trusted.remove(&part.key)?;
            record(app, "policy_distrust", part);
            app.ui.say(format_args!("{name} is trusted no more"));
        }
        (true, Standing::Untrusted | Standing::Own) => {
            app.ui.say(format_args!("{name} was not trusted"));
        }
        (false, Standing::Trusted | Standing::Own) => {
            app.ui.say(format_args!("{name} is trusted already"));
        }
        (false, Standing::Untrusted) => {
            for warning in &part.resolved.warnings {
                app.ui.say(format_args!("careful: {warning}"));
            }
            for line in loosened(&part.resolved.content) {
                app.ui.say(format_args!("it loosens: {line}"));
            }
            let others: Vec<&str> = in_force.parts[1..]
                .iter()
                .filter(|other| other.resolved.origin != Origin::Nobody)
                .map(|other| other.resolved.origin.name())
                .collect();
            if !others.is_empty() {
                app.ui.say(format_args!(
                    "it now stands in place of {}",
                    others.join(" and ")
                ));
            }
            trusted.add(&part.key, name)?;
            record(app, "policy_trust", part);
            app.ui.say(format_args!("trusted {name}"));
        }
    }
    Ok(Exit::Done)
}

/// What a policy allows that would be forbidden without it.
fn loosened(content: &Content) -> Vec<String> {
    let mut lines: Vec<String> = content
        .texts(Key::Allow)
        .iter()
        .map(|rule| format!("`{}` is allowed whatever denies it", rule.value))
        .collect();
    if content.switch(Key::UseDefaults) == Some(false) {
        lines.push("the default rules don't hold".to_owned());
    }
    lines
}

fn record(app: &App, what: &str, part: &Part) {
    app.record(&Event {
        detail: Some(part.resolved.origin.name().to_owned()),
        ..Event::new(env::now(), Kind::Other(what.to_owned()))
    });
}
