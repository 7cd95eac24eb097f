//! `boxery jobs list`.

use std::collections::HashMap;

use boxery_pin::VmName;
use boxery_remote::daemon::{self, Offered};
use boxery_remote::jobs::{self, Job, JobId, JobState, Port};
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
///
/// PORTS are those on which a job listens: `3000` is 127.0.0.1:3000 here too,
/// `3000>3001` is 127.0.0.1:3001 here, `(3000)` isn't offered here.
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
    let (found, ports) = reach::block_on(async {
        let way = reach::open(app, &name, vm).await?;
        let failure = |error| reach::failure(&name, error);
        let found = jobs::list(&way).await.map_err(failure)?;
        let listening = jobs::ports(&way).await.map_err(failure)?;
        // Without a daemon nothing of a job is offered here.
        let status = daemon::status(&reach::daemon_site(app))
            .await
            .ok()
            .flatten();
        let offered = status.map(|status| status.ports).unwrap_or_default();
        Ok::<_, Failure>((found, ports(&name, &listening, &offered)))
    })??;
    let ports = |job: &Job| ports.get(&job.run).map_or(&[][..], Vec::as_slice);
    if args.json {
        let rows: Vec<_> = found
            .iter()
            .map(|job| {
                json!({
                    "job": job.run.to_string(), "command": command(job),
                    "cwd": String::from_utf8_lossy(&job.cwd), "session": job.session,
                    "started": job.started / 1000, "state": state(job),
                    "ports": ports(job)
                        .iter()
                        .map(|(port, local)| json!({"port": port, "local": local}))
                        .collect::<Vec<_>>(),
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
    let mut rows = vec![
        ["JOB", "STATE", "PORTS", "COMMAND"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for job in &found {
        let id = job.run.to_string();
        let here: Vec<String> = ports(job).iter().copied().map(words_of_port).collect();
        let shown = id[..SHOWN].to_owned();
        rows.push(vec![shown, state(job), here.join(" "), command(job)]);
    }
    app.ui.table(&rows);
    Ok(Exit::Done)
}

/// On which ports each run listens, and where they are offered here.
fn ports(
    vm: &VmName,
    listening: &[Port],
    offered: &[Offered],
) -> HashMap<JobId, Vec<(u16, Option<u16>)>> {
    let mut found: HashMap<_, Vec<_>> = HashMap::new();
    for Port { port, run, .. } in listening {
        let job = run.to_string();
        let here = offered
            .iter()
            .find(|offer| offer.vm == vm.as_str() && offer.port == *port && offer.job == job);
        let local = here.map(|offer| offer.local);
        found.entry(*run).or_default().push((*port, local));
    }
    found
}

/// `3000` where it is offered under its own number, `3000>3001` under another one,
/// `(3000)` where it isn't.
fn words_of_port((port, local): (u16, Option<u16>)) -> String {
    match local {
        Some(local) if local == port => port.to_string(),
        Some(local) => format!("{port}>{local}"),
        None => format!("({port})"),
    }
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
