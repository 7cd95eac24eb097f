//! `boxery copies …`: the copies of projects that lie on VMs.

pub(crate) mod list;
pub(crate) mod prune;

use boxery_pin::VmName;

use crate::app::App;
use crate::config::Config;
use crate::error::Failure;
use crate::exit::Exit;

/// List the copies of projects on VMs, or remove those whose project is gone
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: list::Args,
}

/// What to do with copies.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    Prune(prune::Args),
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    match &args.verb {
        Some(Verb::Prune(args)) => prune::run(args, app),
        None => list::run(&args.list, app),
    }
}

/// The VM that is named, else every one.
fn meant(config: &Config, named: Option<&VmName>) -> Result<Vec<VmName>, Failure> {
    match named {
        Some(name) => config.vm(name).map(|_| vec![name.clone()]),
        None => Ok(config.vm.keys().cloned().collect()),
    }
}
