//! `boxery vm seed`.

use boxery_pin::VmName;

use crate::app::App;
use crate::cmd::drift::target;
use crate::copy::{self, SeedOptions, size};
use crate::error::Failure;
use crate::exit::Exit;
use crate::ui::counted;
use crate::{place, reach};

/// Send this project to a VM, once
///
/// Makes the project's copy there from every file that counts (see `boxery drift`).
/// A folder that isn't empty and that boxery didn't make is refused.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM
    name: VmName,
    /// Send it over a copy that is there: what differs on the VM is replaced, what is
    /// only on the VM stays
    #[arg(long)]
    over: bool,
    /// Send nothing: move the copy from where it lay before `paths` of the VM changed
    #[arg(long = "move", conflicts_with = "over")]
    moved: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let (vm, map) = target(app, Some(&args.name))?;
    let config = app.config()?;
    let options = match (args.over, args.moved) {
        (true, _) => SeedOptions::Over,
        (false, true) => SeedOptions::Move,
        (false, false) => SeedOptions::Once,
    };
    let other = place::other_folder(app, config.vm(&vm)?, &map)?;
    let seeded = reach::block_on(async {
        let way = reach::open(app, &vm, config.vm(&vm)?).await?;
        copy::seed(app, &vm, &way, &map, &other, options).await
    })??;
    let report = &seeded.report;
    if args.moved {
        app.ui
            .say(format_args!("moved `{other}` on {vm} to `{}`", map.folder));
        return Ok(Exit::Done);
    }
    app.ui.say(format_args!(
        "sent {}, {} to `{}` on {vm}",
        counted(report.files, "file"),
        size(report.bytes),
        map.folder
    ));
    if map.view().is_some() {
        app.ui
            .say(format_args!("commands see it as `{}`", map.copy));
    }
    for name in &seeded.skipped {
        app.ui
            .say(format_args!("stays here, since it is no file: {name}"));
    }
    for name in report.unsettled.iter().chain(&report.gone) {
        app.ui
            .say(format_args!("changed while it was sent: {name}"));
    }
    Ok(Exit::Done)
}
