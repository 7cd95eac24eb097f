//! `boxery daemon guard`: what has the connections of one client; not for people.

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;
use crate::reach;

/// Keep the connections of the client at standard input; started where no daemon can be
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, _: &App) -> Result<Exit, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    reach::block_on(boxery_remote::daemon::guard(version))??;
    Ok(Exit::Done)
}
