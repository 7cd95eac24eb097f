//! `boxery completions SHELL`.

use clap::Command;

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
        &mut shown(Box::leak(Box::new(crate::cli::command()))),
        "boxery",
        &mut script,
    );
    app.ui.raw(&String::from_utf8_lossy(&script));
    Ok(Exit::Done)
}

/// The command line without the verbs that boxery starts by itself: `clap_complete`
/// offers hidden ones too. A command's name has to live as long as the process.
fn shown(command: &'static Command) -> Command {
    if command.get_subcommands().next().is_none() {
        return command.clone();
    }
    let mut copy = Command::new(command.get_name())
        .disable_help_subcommand(true)
        .args(command.get_arguments().cloned());
    if let Some(about) = command.get_about() {
        copy = copy.about(about.clone());
    }
    if let Some(version) = command.get_version() {
        copy = copy.version(version);
    }
    copy.subcommands(
        command
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set())
            .map(shown),
    )
}
