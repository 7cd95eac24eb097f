//! `boxery policy …`: the Fence policy that commands are held to.
//!
//! A new verb of this group is a file here, a line in the `mod` list, a line in
//! [`Verb`] and a line in [`run`].

pub(crate) mod check;
pub(crate) mod explain;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod show;
pub(crate) mod trust;

use boxery_pin::AgentId;

use crate::app::App;
use crate::cmd::hook::AGENT_NAMES;
use crate::config::Config;
use crate::error::Failure;
use crate::exit::Exit;
use crate::inside::Inside;
use crate::place::{Here, pinned_project};
use crate::policy::{Caller, InForce};

/// Show, try, write and trust the policy that commands are held to
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

/// What to do with the policy.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    Check(check::Args),
    Explain(explain::Args),
    Import(import::Args),
    Init(init::Args),
    Show(show::Args),
    Trust(trust::Args),
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    match &args.verb {
        Verb::Check(args) => check::run(args, app),
        Verb::Explain(args) => explain::run(args, app),
        Verb::Import(args) => import::run(args, app),
        Verb::Init(args) => init::run(args, app),
        Verb::Show(args) => show::run(args, app),
        Verb::Trust(args) => trust::run(args, app),
    }
}

/// Whose policy a verb is about.
#[derive(Debug, clap::Args)]
pub(crate) struct Whose {
    /// The policy of this agent's calls, which its hook may be held to
    #[arg(long, value_name = "AGENT", value_parser = AGENT_NAMES.clone())]
    agent: Option<String>,
}

impl Whose {
    /// The policy that holds in the current folder, and the configuration beside it.
    fn find(&self, app: &App) -> Result<(Config, InForce), Failure> {
        let cannot_say = |failure: Failure| failure.exit(Exit::CannotSay);
        let here = Here::look(app).map_err(cannot_say)?;
        let config = app.config().map_err(cannot_say)?;
        let agent = match &self.agent {
            Some(name) => Some(AgentId(name.clone())),
            None => Inside::look().map(|inside| inside.agent),
        };
        let project = here.pin.as_ref().and_then(pinned_project);
        let caller = Caller {
            agent: agent.as_ref(),
            folder: &here.folder,
            project: project.as_deref(),
        };
        let in_force = InForce::find(app, &config, caller).map_err(cannot_say)?;
        Ok((config, in_force))
    }
}
