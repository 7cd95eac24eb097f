//! `boxery man`.

use camino::Utf8PathBuf;

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;

/// Print a manual page in roff
///
/// For example `boxery man | man -l -`, or `boxery man hook install | man -l -`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The verb; without one the page of boxery itself
    #[arg(value_name = "VERB", conflicts_with = "out")]
    verb: Vec<String>,
    /// Write every page into a folder instead, as `boxery.1`, `boxery-pin.1`, …
    #[arg(long, value_name = "DIR")]
    out: Option<Utf8PathBuf>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let mut command = crate::cli::command();
    // Gives each verb its whole name, such as `boxery-hook-install`.
    command.build();
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(command, folder)?;
        return Ok(Exit::Done);
    }
    let mut page = &command;
    for verb in &args.verb {
        page = page
            .get_subcommands()
            .find(|candidate| candidate.get_name() == verb && !candidate.is_hide_set())
            .ok_or_else(|| {
                Failure::usage(format!("no verb is named `{}`", args.verb.join(" ")))
                    .hint("`boxery --help` lists the verbs")
            })?;
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(page.clone()).render(&mut text)?;
    app.ui.raw(&String::from_utf8_lossy(&text));
    Ok(Exit::Done)
}
