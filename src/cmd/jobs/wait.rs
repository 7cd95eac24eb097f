//! `boxery jobs wait`.

use boxery_remote::jobs;

use super::{Named, as_json, status};
use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;
use crate::reach;

/// Wait until a job ends; the exit status is the command's own
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    named: Named,
    /// Print one JSON object too
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    reach::block_on(async {
        let (name, way, job) = args.named.find(app).await?;
        let end = jobs::wait(&way, job)
            .await
            .map_err(|error| reach::failure(&name, error))?;
        if args.json {
            app.ui.line(as_json(&name, job, Some(end.outcome)));
        }
        Ok(Exit::Command(status(end.outcome)))
    })?
}
