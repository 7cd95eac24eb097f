//! `boxery daemon log`.

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;
use crate::reach;

/// Print what the daemon had to say
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, app: &App) -> Result<Exit, Failure> {
    let path = reach::daemon_site(app).log();
    match std::fs::read_to_string(&path) {
        Ok(text) => app.ui.raw(&text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            app.ui.say("the daemon never ran");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(Exit::Done)
}
