//! `boxery log`.

use std::time::Duration;

use boxery_record::{Entry, Filter};

use crate::app::App;
use crate::cmd::run::parse_duration;
use crate::env;
use crate::error::Failure;
use crate::exit::Exit;
use crate::ui::Tone;

/// What to show.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Only of this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only about this VM
    #[arg(long, value_name = "NAME")]
    vm: Option<String>,
    /// Only the last while, such as `2h`
    #[arg(long, value_name = "D", value_parser = parse_duration)]
    since: Option<Duration>,
    /// Only denials
    #[arg(long)]
    denied: bool,
    /// Print one JSON object per event
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let filter = Filter {
        session: args.session.clone(),
        agent: args.agent.clone(),
        vm: args.vm.clone(),
        since: args
            .since
            .map(|since| env::now().saturating_sub(since.as_secs())),
        denied: args.denied,
    };
    let mut nothing = true;
    for entry in app.log().entries(filter)? {
        nothing = false;
        match entry {
            Ok(entry) if args.json => app.ui.line(serde_json::to_string(&entry)?),
            Ok(entry) => app.ui.line(line(app, &entry)),
            // The rest can be read all the same.
            Err(error) => app
                .ui
                .say(format_args!("{error}; `boxery log check` tells more")),
        }
    }
    if nothing {
        app.ui.say("nothing of that is on record");
    }
    Ok(Exit::Done)
}

/// Time, what happened, and who and what it was about.
fn line(app: &App, entry: &Entry) -> String {
    let event = &entry.event;
    let what = match (event.decision.as_deref(), event.exit) {
        (Some(decision), _) => decision.to_owned(),
        (None, Some(exit)) => format!("{} {exit}", event.kind),
        (None, None) => event.kind.to_string(),
    };
    let what = match event.decision.as_deref() {
        Some("deny") => app.ui.paint(Tone::Bad, format_args!("{what:<13}")),
        Some("ask") => app.ui.paint(Tone::Care, format_args!("{what:<13}")),
        Some(_) | None => format!("{what:<13}"),
    };
    let mut text = format!("{}  {what}", event.time_text());
    let session = event.session.as_deref().map(|session| {
        let short: String = session.chars().take(8).collect();
        format!("session {short}")
    });
    let command = event.command_sha256.as_deref().map(|digest| {
        let short: String = digest.chars().take(8).collect();
        format!("text {short}")
    });
    for part in [
        event.agent.clone(),
        session,
        event.subagent.clone(),
        event.vm.as_ref().map(|vm| format!("VM {vm}")),
        event.mode.clone(),
        event.tool.clone(),
        event.rule.as_ref().map(|rule| format!("rule {rule}")),
        command,
        event.detail.clone(),
        event
            .gap
            .as_ref()
            .map(|gap| format!("the log was mended: {} bytes", gap.bytes)),
    ]
    .into_iter()
    .flatten()
    {
        text.push_str("  ");
        // What a program wrote must not move the cursor.
        text.extend(
            part.chars()
                .map(|letter| if letter.is_control() { '?' } else { letter }),
        );
    }
    text
}
