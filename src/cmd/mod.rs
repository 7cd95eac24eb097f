//! The verbs, one file each: arguments, then `run`.
//!
//! A new verb is a file here, a line in the `mod` list, a line in [`Verb`] and a
//! line in [`Verb::run`]; `tests/tidy.rs` fails when one of them is missing.

pub(crate) mod completions;
pub(crate) mod embedded_server;
pub(crate) mod man;
pub(crate) mod run;
pub(crate) mod vm;

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;

/// What the user asked for.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    Completions(completions::Args),
    #[command(hide = true)]
    EmbeddedServer(embedded_server::Args),
    Man(man::Args),
    Run(run::Args),
    Vm(vm::Args),
}

impl Verb {
    /// Run the verb.
    pub(crate) fn run(&self, app: &App) -> Result<Exit, Failure> {
        match self {
            Self::Completions(args) => completions::run(args, app),
            Self::EmbeddedServer(args) => embedded_server::run(args, app),
            Self::Man(args) => man::run(args, app),
            Self::Run(args) => run::run(args, app),
            Self::Vm(args) => vm::run(args, app),
        }
    }
}
