//! `boxery vm seed`.

use std::sync::Arc;

use boxery_pin::VmName;
use boxery_sync::talk::Report;
use boxery_sync::{Direction, EntryPath, Side, Take};

use crate::app::App;
use crate::cmd::drift::target;
use crate::copy::{
    Creation, GitOptions, Making, Pair, Show, Wish, exchange, look_at, make, moved, size,
    synchronise,
};
use crate::error::Failure;
use crate::exit::Exit;
use crate::reach;
use crate::ui::counted;

/// Send this project to a VM, once
///
/// Makes the project's copy there from every file that counts (see `boxery drift`).
/// A folder that isn't empty and that boxery didn't make is refused. `boxery sync` does
/// that too, and keeps both sides the same from then on.
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
    if args.over {
        app.refuse_agents("vm seed --over")?;
    }
    let (vm, map) = target(app, Some(&args.name))?;
    let config = app.config()?;
    let making = match (args.over, args.moved) {
        (true, _) => Making::Over,
        (false, true) => Making::Move,
        (false, false) => Making::Once,
    };
    let pair = Arc::new(Pair::new(app, &vm, &map)?);
    let show = Show::of(app.ui, false);
    let report = reach::block_on(async {
        let way = reach::open(app, &vm, config.vm(&vm)?).await?;
        make(&pair, &way, making).await?;
        let mut wish = Wish {
            direction: Direction::Mirror,
            making: Creation::Refused,
            ..Wish::default()
        };
        match making {
            Making::Move => return Ok(None),
            Making::Once => {}
            Making::Over => wish.takes = over(&look_at(app, &pair, &way, &wish).await?),
        }
        let sent = synchronise(app, &pair, &way, &wish, show.tell(app.ui)).await;
        if show == Show::Bar {
            app.ui.progress(None);
        }
        let sent = sent?;
        let options = GitOptions {
            direction: Direction::Mirror,
            ..GitOptions::default()
        };
        let repository = exchange(app, &pair, &way, options).await?;
        Ok::<_, Failure>(Some((sent, repository)))
    })??;
    let Some((report, repository)) = report else {
        app.ui.say(format_args!(
            "moved `{}` on {vm} to `{}`",
            pair.other, map.folder
        ));
        return Ok(Exit::Done);
    };
    let sent = moved(&report, Side::Vm);
    app.ui.say(format_args!(
        "sent {}, {} to `{}` on {vm}",
        counted(sent.files, "file"),
        size(sent.bytes),
        map.folder
    ));
    if map.view().is_some() {
        app.ui
            .say(format_args!("commands see it as `{}`", map.copy));
    }
    for name in &report.skipped {
        app.ui
            .say(format_args!("stays here, since it is no file: {name}"));
    }
    for name in &report.unsettled {
        app.ui
            .say(format_args!("changed while it was sent: {name}"));
    }
    for said in repository.conflicts.iter().chain(&repository.notes) {
        app.ui.say(said);
    }
    Ok(Exit::Done)
}

/// The laptop's version of everything that it has and that differs.
fn over(found: &Report) -> Vec<Take> {
    let conflicts = found.plan.conflicts.iter().map(|conflict| &conflict.path);
    let all = conflicts.chain(&found.plan.kept);
    let is_here = |path: &&EntryPath| found.project.at(path) != boxery_sync::State::Absent;
    all.filter(is_here)
        .map(|path| Take {
            side: Side::Laptop,
            path: Some(path.clone()),
        })
        .collect()
}
