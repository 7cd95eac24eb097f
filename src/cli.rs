//! The command line: `boxery VERB …`.

use std::error::Error as _;
use std::ffi::OsString;
use std::process::ExitCode;

use boxery_pin::NameError;
use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser};

use crate::app::App;
use crate::cmd::Verb;
use crate::env;
use crate::error::Failure;
use crate::exit::Exit;
use crate::ui::Ui;

/// Run a coding agent's shell commands in a VM, never on this laptop
///
/// Pin a project or a session to a VM; from then on the agent's own shell tool is
/// denied (guard) or its commands run in the VM over SSH (redirect). Nothing
/// pinned: nothing changes.
#[derive(Debug, Parser)]
#[command(
    name = "boxery",
    version,
    disable_help_subcommand = true,
    after_help = "Exit status: 0 yes or done, 1 the answer is no, 2 can't say, 64 usage, \
                  125 boxery's own failure; `run` passes the command's own."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

/// The whole command line, for completions and the man page.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Read the command line, run its verb, report how it ended.
pub(crate) fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let ui = Ui::new(env::no_color());
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            if !error.use_stderr() {
                error.print().ok();
                return Exit::Done.into();
            }
            if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
                ui.say(error.render());
                return Exit::Usage.into();
            }
            return report(ui, &usage(&error));
        }
    };
    let ended = App::new().and_then(|app| {
        // Pins that have ended go whenever somebody comes by; one that can't be
        // removed ends all the same.
        app.pins().expire(env::now()).ok();
        cli.verb.run(&app)
    });
    match ended {
        Ok(exit) => exit.into(),
        // Beside a command's own words, boxery's are one line that says whose it is.
        Err(failure) if matches!(cli.verb, Verb::Run(_)) => {
            ui.note(failure.one_line());
            failure.status().into()
        }
        Err(failure) => report(ui, &failure),
    }
}

/// clap's complaint in the house's form: its first paragraph, its tips as hints. A
/// name that breaks the rules of its kind is told these rules.
fn usage(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let message = text.split("\n\n").next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let tip = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("tip: "));
    let hint = if let Some(cause) = error.source()
        && let Some(name) = cause.downcast_ref::<NameError>()
    {
        name.hint().to_owned()
    } else {
        tip.map_or_else(|| help_of(&text), str::to_owned)
    };
    Failure::usage(message.split_whitespace().collect::<Vec<_>>().join(" ")).hint(hint)
}

/// Where the verb that clap's complaint shows the usage of is explained.
fn help_of(complaint: &str) -> String {
    let verb = complaint
        .lines()
        .find_map(|line| line.strip_prefix("Usage: boxery "))
        .unwrap_or_default();
    let words = verb
        .split_whitespace()
        .take_while(|word| word.starts_with(|first: char| first.is_ascii_lowercase()));
    let words: String = words.flat_map(|word| [word, " "]).collect();
    format!("see `boxery {words}--help`")
}

fn report(ui: Ui, failure: &Failure) -> ExitCode {
    ui.failure(&failure.render());
    failure.status().into()
}
