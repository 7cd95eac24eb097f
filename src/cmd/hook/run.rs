//! `boxery hook run`, as a person meets it.

use super::target::AGENT_NAMES;
use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;

/// Answer one hook event: what agents call, with the event on standard input
///
/// The reply is written in the agent's own form. On a terminal there is nobody to
/// answer, so this help is all there is.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The agent
    #[arg(value_name = "AGENT", value_parser = AGENT_NAMES.clone())]
    agent: String,
}

pub(crate) fn run(args: &Args, _app: &App) -> Result<Exit, Failure> {
    // Everything but a call on a terminal is answered before verbs are read.
    let Args { agent } = args;
    Err(Failure::usage(format!(
        "`boxery hook run {agent}` answers an agent, and this is a terminal"
    ))
    .hint("see `boxery hook run --help`; `boxery hook status` says what is installed"))
}
