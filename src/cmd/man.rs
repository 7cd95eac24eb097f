//! `boxery man`.

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;

/// Print the manual page in roff
///
/// For example `boxery man | man -l -`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, app: &App) -> Result<Exit, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(crate::cli::command()).render(&mut page)?;
    app.ui.raw(&String::from_utf8_lossy(&page));
    Ok(Exit::Done)
}
