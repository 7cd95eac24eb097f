//! `boxery daemon serve`: the daemon itself; not for people.

use std::time::Duration;

use boxery_record::time_text;

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;
use crate::{env, reach};

/// Nobody came for so long: the daemon ends.
const IDLE: Duration = Duration::from_mins(30);

/// Keep the connections; started on demand by the other verbs
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// End when nobody has come for this time
    #[arg(long, hide = true, value_name = "D", value_parser = crate::cmd::run::parse_duration)]
    idle: Option<Duration>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let site = reach::daemon_site(app);
    let idle = args.idle.unwrap_or(IDLE);
    let ui = app.ui;
    // Standard error is its log.
    let say = move |line: &str| ui.say(format_args!("{} {line}", time_text(env::now())));
    let version = env!("CARGO_PKG_VERSION");
    reach::block_on(boxery_remote::daemon::serve(&site, idle, version, say))??;
    Ok(Exit::Done)
}
