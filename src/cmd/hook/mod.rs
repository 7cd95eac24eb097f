//! `boxery hook …`: the entry in agents' settings.
//!
//! A new verb of this group is a file here, a line in the `mod` list, a line in
//! [`Verb`] and a line in [`run()`].

pub(crate) mod install;
pub(crate) mod print;
pub(crate) mod prove;
pub(crate) mod run;
pub(crate) mod status;
mod target;
pub(crate) mod uninstall;

pub(crate) use target::{AGENT_NAMES, Places};
pub(crate) use uninstall::{has_entry, remove_entry};

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;

/// Install, check and remove the hook in agents' settings
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

/// What to do with the hook.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    Install(install::Args),
    Print(print::Args),
    Prove(prove::Args),
    Run(run::Args),
    Status(status::Args),
    Uninstall(uninstall::Args),
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    match &args.verb {
        Verb::Install(args) => install::run(args, app),
        Verb::Print(args) => print::run(args, app),
        Verb::Prove(args) => prove::run(args, app),
        Verb::Run(args) => run::run(args, app),
        Verb::Status(args) => status::run(args, app),
        Verb::Uninstall(args) => uninstall::run(args, app),
    }
}
