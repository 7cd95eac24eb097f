//! `boxery hook print`.

use super::target::{self, Agents};
use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;

/// Print what an install would write into settings that hold nothing else
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    agents: Agents,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    target::for_each_agent(app, &args.agents, |adapter| {
        app.ui.raw(&target::entry(adapter)?.document());
        Ok(())
    })?;
    Ok(Exit::Done)
}
