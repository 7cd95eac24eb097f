//! `boxery demo`.

use crate::app::App;
use crate::demo::Story;
use crate::error::Failure;
use crate::exit::Exit;
use crate::ui::Tone;

/// Show the whole story on this machine, with nothing left behind
///
/// A VM on this machine, a sample project, a pin, and the call of an agent as Claude
/// Code sends it: passed, denied, and run in the VM instead. No account, no network,
/// and nothing of yours is touched.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args, app: &App) -> Result<Exit, Failure> {
    let story = Story::begin(app.ui)?;
    let told = story.tell();
    // Whatever went wrong after a Ctrl-C went wrong because of it.
    story.check()?;
    told?;
    story.end()?;
    app.ui.line(format_args!(
        "\n{}",
        app.ui
            .paint(Tone::Good, "Everything held, and nothing is left.")
    ));
    Ok(Exit::Done)
}
