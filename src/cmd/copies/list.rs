//! `boxery copies`.

use boxery_pin::VmName;
use serde_json::json;

use super::meant;
use crate::app::App;
use crate::copy::{self, FoundCopy, Owner, size};
use crate::error::Failure;
use crate::exit::Exit;
use crate::{env, reach};

/// What to list.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// The VM; every one that can be reached by default
    #[arg(value_name = "NAME")]
    vm: Option<VmName>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let config = app.config()?;
    let mut rows = vec![
        ["VM", "SIZE", "LAST USED", "FOLDER", "PROJECT"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let (mut objects, mut reached) = (Vec::new(), true);
    for name in meant(&config, args.vm.as_ref())? {
        let vm = config.vm(&name)?;
        let found = reach::block_on(async {
            let way = reach::open(app, &name, vm).await?;
            copy::list(app, &name, vm, &way).await
        })?;
        let found = match found {
            Ok(found) => found,
            Err(failure) if args.vm.is_some() => return Err(failure),
            Err(failure) => {
                reached = false;
                app.ui.say(format_args!("{name}: {}", failure.one_line()));
                continue;
            }
        };
        for copy in &found {
            rows.push(row(&name, copy));
            objects.push(object(&name, copy));
        }
    }
    if args.json {
        app.ui.line(serde_json::to_string(&objects)?);
    } else if rows.len() > 1 {
        app.ui.table(&rows);
    } else if reached {
        app.ui.say("there are no copies");
    }
    Ok(if reached { Exit::Done } else { Exit::CannotSay })
}

fn row(name: &VmName, found: &FoundCopy) -> Vec<String> {
    let project = match &found.owner {
        Owner::Project(project) => project.to_string(),
        Owner::Gone(project) => format!("{project} (gone)"),
        Owner::Unknown => "of another laptop, or unknown".to_owned(),
    };
    vec![
        name.to_string(),
        size(found.bytes),
        ago(env::now().saturating_sub(found.used)),
        found.copy.replace(char::is_control, "?"),
        project.replace(char::is_control, "?"),
    ]
}

fn ago(seconds: u64) -> String {
    match seconds {
        0..60 => "now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

fn object(name: &VmName, found: &FoundCopy) -> serde_json::Value {
    let (project, state) = match &found.owner {
        Owner::Project(project) => (Some(project), "project"),
        Owner::Gone(project) => (Some(project), "gone"),
        Owner::Unknown => (None, "unknown"),
    };
    json!({
        "vm": name, "folder": found.copy, "bytes": found.bytes, "used": found.used,
        "marker": found.marker, "project": project, "state": state,
    })
}
