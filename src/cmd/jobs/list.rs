//! `boxery jobs list`.

use boxery_pin::VmName;
use boxery_remote::jobs::{self, Job, JobState};
use serde_json::json;

use super::words;
use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;
use crate::place::Here;
use crate::reach;

/// Digits of a job's name that are shown.
const SHOWN: usize = 8;

/// List the jobs of a VM
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM; the pinned one by default
    #[arg(value_name = "NAME")]
    vm: Option<VmName>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let name = Here::look(app)?.vm(args.vm.as_ref())?;
    let config = app.config()?;
    let vm = config.vm(&name)?;
    let found = reach::block_on(async {
        let way = reach::open(app, &name, vm).await?;
        jobs::list(&way)
            .await
            .map_err(|error| reach::failure(&name, error))
    })??;
    if args.json {
        let rows: Vec<_> = found
            .iter()
            .map(|job| {
                json!({
                    "job": job.run.to_string(), "command": command(job),
                    "cwd": String::from_utf8_lossy(&job.cwd), "session": job.session,
                    "started": job.started / 1000, "state": state(job),
                    "running": matches!(job.state, JobState::Running | JobState::Background(_)),
                })
            })
            .collect();
        app.ui.line(serde_json::to_string(&rows)?);
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        app.ui.say(format_args!("{name} has no jobs"));
        return Ok(Exit::Done);
    }
    let mut rows = vec![["JOB", "STATE", "COMMAND"].map(str::to_owned).to_vec()];
    for job in &found {
        let id = job.run.to_string();
        rows.push(vec![id[..SHOWN].to_owned(), state(job), command(job)]);
    }
    app.ui.table(&rows);
    Ok(Exit::Done)
}

fn state(job: &Job) -> String {
    match job.state {
        JobState::Running => "runs".to_owned(),
        JobState::Background(_) => "runs on in the background".to_owned(),
        JobState::Ended(outcome) => words(outcome),
    }
}

fn command(job: &Job) -> String {
    let words: Vec<String> = job
        .argv
        .iter()
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    let text = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default();
    text.replace(char::is_control, " ")
}
