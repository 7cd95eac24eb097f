//! `boxery daemon …`: the process that keeps the connections to VMs.
//!
//! A new verb of this group is a file here, a line in the `mod` list, a line in
//! [`Verb`] and a line in [`run`].

pub(crate) mod guard;
pub(crate) mod log;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod stop;

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;

/// Look after the process that keeps the connections to VMs
///
/// It starts by itself with the first command and ends 30 minutes after the last one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

/// What to do with the daemon.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    #[command(hide = true)]
    Guard(guard::Args),
    Log(log::Args),
    #[command(hide = true)]
    Serve(serve::Args),
    Status(status::Args),
    Stop(stop::Args),
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    match &args.verb {
        Verb::Guard(args) => guard::run(args, app),
        Verb::Log(args) => log::run(args, app),
        Verb::Serve(args) => serve::run(args, app),
        Verb::Status(args) => status::run(args, app),
        Verb::Stop(args) => stop::run(args, app),
    }
}
