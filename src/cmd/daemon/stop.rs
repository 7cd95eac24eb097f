//! `boxery daemon stop`.

use boxery_remote::daemon;

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;
use crate::reach;

/// End the daemon; commands that run go on, and their clients connect again
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, app: &App) -> Result<Exit, Failure> {
    let ended = reach::block_on(daemon::stop(&reach::daemon_site(app)))??;
    app.ui.say(if ended {
        "the daemon has ended"
    } else {
        "no daemon runs"
    });
    Ok(Exit::Done)
}
