//! `boxery demo-agent`, hidden: the agent of the demo.

use crate::app::App;
use crate::demo::Agent;
use crate::env;
use crate::error::Failure;
use crate::exit::Exit;
use crate::random;

/// Play the agent in `boxery demo`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to do
    #[arg(short, value_name = "PROMPT")]
    prompt: String,
    /// Claude's word for what happens to calls that no rule speaks of
    #[arg(long, value_name = "MODE", default_value = "default")]
    permission_mode: String,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let agent = Agent {
        model: env::anthropic_base_url().ok_or("ANTHROPIC_BASE_URL is not set")?,
        settings: env::claude_config_dir().unwrap_or_else(|| app.env.home.join(".claude")),
        folder: env::current_folder()?,
        permission_mode: args.permission_mode.clone(),
        session: random::hex()?,
    };
    app.ui.line(agent.run(&args.prompt)?);
    Ok(Exit::Done)
}
