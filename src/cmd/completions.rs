//! `boxery completions SHELL`.

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;

/// Print the completion script of a shell
///
/// For example `boxery completions bash > ~/.local/share/bash-completion/completions/boxery`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut crate::cli::command(),
        "boxery",
        &mut script,
    );
    app.ui.raw(&String::from_utf8_lossy(&script));
    Ok(Exit::Done)
}
