//! The verbs, one file each: arguments, then `run`.
//!
//! A new verb is a file here, a line in the `mod` list, a line in [`Verb`] and a
//! line in [`Verb::run`]; `tests/tidy` fails when one of them is missing.

pub(crate) mod completions;
pub(crate) mod copies;
pub(crate) mod cp;
pub(crate) mod daemon;
pub(crate) mod demo;
pub(crate) mod demo_agent;
pub(crate) mod drift;
pub(crate) mod embedded_server;
pub(crate) mod env;
pub(crate) mod forward;
pub(crate) mod hook;
pub(crate) mod jobs;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod pin;
pub(crate) mod policy;
pub(crate) mod run;
pub(crate) mod shell;
pub(crate) mod sync;
pub(crate) mod uninstall;
pub(crate) mod unpin;
pub(crate) mod vm;

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;

/// What the user asked for.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    Completions(completions::Args),
    Copies(copies::Args),
    Cp(cp::Args),
    Daemon(daemon::Args),
    Demo(demo::Args),
    #[command(hide = true)]
    DemoAgent(demo_agent::Args),
    Drift(drift::Args),
    #[command(hide = true)]
    EmbeddedServer(embedded_server::Args),
    Env(env::Args),
    Forward(forward::Args),
    Hook(hook::Args),
    Jobs(jobs::Args),
    Log(log::Args),
    Man(man::Args),
    Pin(pin::Args),
    Policy(policy::Args),
    Run(run::Args),
    Shell(shell::Args),
    Sync(sync::Args),
    Uninstall(uninstall::Args),
    Unpin(unpin::Args),
    Vm(vm::Args),
}

impl Verb {
    /// Run the verb.
    pub(crate) fn run(&self, app: &App) -> Result<Exit, Failure> {
        match self {
            Self::Completions(args) => completions::run(args, app),
            Self::Copies(args) => copies::run(args, app),
            Self::Cp(args) => cp::run(args, app),
            Self::Daemon(args) => daemon::run(args, app),
            Self::Demo(args) => demo::run(args, app),
            Self::DemoAgent(args) => demo_agent::run(args, app),
            Self::Drift(args) => drift::run(args, app),
            Self::EmbeddedServer(args) => embedded_server::run(args, app),
            Self::Env(args) => env::run(args, app),
            Self::Forward(args) => forward::run(args, app),
            Self::Hook(args) => hook::run(args, app),
            Self::Jobs(args) => jobs::run(args, app),
            Self::Log(args) => log::run(args, app),
            Self::Man(args) => man::run(args, app),
            Self::Pin(args) => pin::run(args, app),
            Self::Policy(args) => policy::run(args, app),
            Self::Run(args) => run::run(args, app),
            Self::Shell(args) => shell::run(args, app),
            Self::Sync(args) => sync::run(args, app),
            Self::Uninstall(args) => uninstall::run(args, app),
            Self::Unpin(args) => unpin::run(args, app),
            Self::Vm(args) => vm::run(args, app),
        }
    }
}
