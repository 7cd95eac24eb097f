//! `boxery jobs …`: commands that outlive their call.
//!
//! A new verb of this group is a file here, a line in the `mod` list, a line in
//! [`Verb`] and a line in [`run`].

pub(crate) mod list;
pub(crate) mod start;
pub(crate) mod stop;
pub(crate) mod tail;
pub(crate) mod wait;

use boxery_pin::VmName;
use boxery_remote::Way;
use boxery_remote::jobs::{self, JobId, Outcome};

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;
use crate::place::Here;
use crate::reach;

/// Start commands on a VM that go on without you, and look after them
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

/// What to do with jobs.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    List(list::Args),
    Start(start::Args),
    Stop(stop::Args),
    Tail(tail::Args),
    Wait(wait::Args),
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    match &args.verb {
        Verb::List(args) => list::run(args, app),
        Verb::Start(args) => start::run(args, app),
        Verb::Stop(args) => stop::run(args, app),
        Verb::Tail(args) => tail::run(args, app),
        Verb::Wait(args) => wait::run(args, app),
    }
}

/// A job of a VM, as a verb names it.
#[derive(Debug, clap::Args)]
pub(crate) struct Named {
    /// The job: its first digits, as `boxery jobs list` shows them
    job: String,
    /// The VM; the pinned one by default
    #[arg(value_name = "NAME")]
    vm: Option<VmName>,
}

impl Named {
    /// The way to its VM, and the job there.
    async fn find(&self, app: &App) -> Result<(VmName, Way, JobId), Failure> {
        let here = Here::look(app)?;
        let name = here.vm(self.vm.as_ref())?;
        let config = app.config()?;
        let way = reach::open(app, &name, config.vm(&name)?).await?;
        let known = jobs::list(&way)
            .await
            .map_err(|error| reach::failure(&name, error))?;
        let job = jobs::resolve(&self.job, &known).ok_or_else(|| {
            Failure::from(format!("no job of {name} is named `{}`", self.job))
                .hint(format!("`boxery jobs list {name}` shows them"))
        })?;
        Ok((name, way, job))
    }
}

/// The exit status of a command that ended so.
fn status(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Exited(code) => code,
        Outcome::Signalled(signal) => signal.saturating_add(128),
        Outcome::Cancelled(jobs::Why::TimedOut) => 124,
        Outcome::Cancelled(jobs::Why::Asked) => 143,
        Outcome::Lost(_) => Exit::Own.code(),
    }
}

/// What a verb says of a job's end, as one JSON object.
fn as_json(vm: &VmName, job: JobId, outcome: Option<Outcome>) -> serde_json::Value {
    serde_json::json!({
        "vm": vm, "job": job.to_string(), "ended": outcome.is_some(),
        "exit": outcome.map(status), "state": outcome.map(words),
    })
}

/// How a command ended, in words.
fn words(outcome: Outcome) -> String {
    match outcome {
        Outcome::Exited(code) => format!("ended with {code}"),
        Outcome::Signalled(signal) => format!("ended by signal {signal}"),
        Outcome::Cancelled(jobs::Why::TimedOut) => "ended when its time was up".to_owned(),
        Outcome::Cancelled(jobs::Why::Asked) => "stopped".to_owned(),
        Outcome::Lost(jobs::Loss::Restarted) => "lost: the VM was restarted".to_owned(),
        Outcome::Lost(jobs::Loss::Broken) => "lost: something killed its shell".to_owned(),
        Outcome::Lost(jobs::Loss::GracePassed | jobs::Loss::Unknown | jobs::Loss::Acknowledged) => {
            "lost".to_owned()
        }
    }
}
