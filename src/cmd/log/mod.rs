//! `boxery log …`: what was asked, what was answered, and why.

pub(crate) mod check;
pub(crate) mod list;

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;

/// Show the record of decisions, or check that nobody changed it
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: list::Args,
}

/// What to do with the record.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    Check(check::Args),
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    match &args.verb {
        Some(Verb::Check(args)) => check::run(args, app),
        None => list::run(&args.list, app),
    }
}
