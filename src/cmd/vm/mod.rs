//! `boxery vm …`: the machines that commands run on.
//!
//! A new verb of this group is a file here, a line in the `mod` list, a line in
//! [`Verb`] and a line in [`run`].

pub(crate) mod add;
pub(crate) mod connect;
pub(crate) mod doctor;
pub(crate) mod list;
pub(crate) mod remove;
pub(crate) mod renew;
pub(crate) mod seed;
pub(crate) mod show;

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;

/// Add, list, check and remove VMs
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

/// What to do with VMs.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    Add(add::Args),
    Connect(connect::Args),
    Doctor(doctor::Args),
    List(list::Args),
    Remove(remove::Args),
    Renew(renew::Args),
    Seed(seed::Args),
    Show(show::Args),
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    match &args.verb {
        Verb::Add(args) => add::run(args, app),
        Verb::Connect(args) => connect::run(args, app),
        Verb::Doctor(args) => doctor::run(args, app),
        Verb::List(args) => list::run(args, app),
        Verb::Remove(args) => remove::run(args, app),
        Verb::Renew(args) => renew::run(args, app),
        Verb::Seed(args) => seed::run(args, app),
        Verb::Show(args) => show::run(args, app),
    }
}
