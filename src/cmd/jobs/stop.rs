//! `boxery jobs stop`.

use boxery_remote::jobs::{self, JobState};

use super::{Named, words};
use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;
use crate::reach;

/// End a job and all of its processes
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    named: Named,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    reach::block_on(async {
        let (name, way, job) = args.named.find(app).await?;
        let end = jobs::stop(&way, job)
            .await
            .map_err(|error| reach::failure(&name, error))?;
        app.ui.say(words(end.outcome));
        let known = jobs::list(&way)
            .await
            .map_err(|error| reach::failure(&name, error))?;
        let runs = known.iter().any(|other| {
            other.run == job && matches!(other.state, JobState::Running | JobState::Background(_))
        });
        if runs {
            app.ui.say("some of its processes could not be ended");
        }
        Ok(if runs { Exit::No } else { Exit::Done })
    })?
}
