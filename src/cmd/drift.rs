//! `boxery drift`.

use std::sync::Arc;

use boxery_pin::{PathMap, VmName};
use boxery_sync::talk::Report;
use boxery_sync::{EntryPath, Side};
use serde_json::json;

use crate::app::App;
use crate::copy::{Drift, Item, Pair, Wish, items, look_at};
use crate::error::Failure;
use crate::exit::Exit;
use crate::place::{self, Here};
use crate::reach;
use crate::ui::counted;

/// Tell what differs between the project and its copy on a VM
///
/// Every file that counts is compared by content: in a git repository the tracked
/// ones and the untracked ones that aren't ignored, elsewhere all that aren't
/// ignored. `>` is newer on the laptop, `<` newer on the VM, `!` changed on both sides,
/// `?` was never the same, so that it isn't known which is newer. Exit status: 0 the
/// same, 1 something differs, 2 can't say.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM; the pinned one by default
    #[arg(value_name = "NAME")]
    vm: Option<VmName>,
    /// Print every path that differs, and not only the first ones
    #[arg(long)]
    all: bool,
    /// Print the report as JSON, with every path
    #[arg(long)]
    json: bool,
}

/// How many paths are printed unless all are asked for.
const SOME: usize = 25;

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let (vm, map) = target(app, args.vm.as_ref())?;
    let config = app.config()?;
    let look = || -> Result<Report, Failure> {
        let pair = Arc::new(Pair::new(app, &vm, &map)?);
        reach::block_on(async {
            let way = reach::open(app, &vm, config.vm(&vm)?).await?;
            look_at(app, &pair, &way, &Wish::default()).await
        })?
    };
    let report = match look() {
        Ok(found) => found,
        Err(failure) => {
            if args.json {
                app.ui.line(json!({"vm": vm, "verdict": "unknown"}));
            }
            return Err(failure.exit(Exit::CannotSay));
        }
    };
    let drift = Drift::of(&report);
    let is_sure = drift.unknown.is_empty() && (report.unsettled.is_empty() || !drift.is_empty());
    let exit = match (drift.is_empty(), is_sure) {
        (_, false) => Exit::CannotSay,
        (true, true) => Exit::Done,
        (false, true) => Exit::No,
    };
    if args.json {
        app.ui.line(to_json(&vm, &map, &report, &drift, exit));
    } else {
        show(args, app, &vm, &report, &drift);
    }
    Ok(exit)
}

/// The VM that is named or pinned, and the project here with its copy there.
pub(crate) fn target(app: &App, named: Option<&VmName>) -> Result<(VmName, PathMap), Failure> {
    let here = Here::look(app)?;
    let vm = match (named, &here.pin) {
        (Some(named), _) => named.clone(),
        (None, Some(pin)) => pin.vm.clone(),
        (None, None) => {
            return Err(Failure::usage("no VM is named, and nothing is pinned here")
                .hint("name one, or pin this project: `boxery pin NAME`"));
        }
    };
    let pinned = here.pin.as_ref().is_some_and(|pin| pin.vm == vm);
    let root = here
        .project_root(pinned)?
        .unwrap_or_else(|| here.folder.clone());
    let config = app.config()?;
    let map = place::path_map(app, config.vm(&vm)?, &root)?;
    Ok((vm, map))
}

fn show(args: &Args, app: &App, vm: &VmName, report: &Report, drift: &Drift) {
    let changes = [Side::Vm, Side::Laptop].map(|side| items(report, side));
    let told: Vec<&EntryPath> = changes.iter().flatten().map(|item| &item.path).collect();
    let more = |sign: char, paths: &[EntryPath]| -> Vec<String> {
        let rest = paths.iter().filter(|path| !told.contains(path));
        rest.map(|path| format!("{sign} {path}")).collect()
    };
    let lines: Vec<String> = changes
        .iter()
        .flatten()
        .map(Item::to_string)
        .chain(more('>', &drift.laptop))
        .chain(more('<', &drift.vm))
        .chain(more('!', &drift.both))
        .chain(more('?', &drift.unknown))
        .collect();
    let shown = if args.all { lines.len() } else { SOME };
    for line in lines.iter().take(shown) {
        app.ui.line(line);
    }
    if let Some(more) = lines.len().checked_sub(shown + 1) {
        app.ui
            .say(format_args!("{} more; `--all` lists them", more + 1));
    }
    if drift.is_empty() {
        app.ui.say(format_args!(
            "the copy on {vm} is the same as the project ({})",
            counted(report.project.files(), "file")
        ));
    } else {
        app.ui.say(drift.counts(vm));
    }
    for name in &report.unsettled {
        app.ui
            .say(format_args!("changed while it was compared: {name}"));
    }
}

fn to_json(
    vm: &VmName,
    map: &PathMap,
    report: &Report,
    drift: &Drift,
    exit: Exit,
) -> serde_json::Value {
    let texts =
        |paths: &[EntryPath]| -> Vec<String> { paths.iter().map(ToString::to_string).collect() };
    json!({
        "vm": vm,
        "project": map.project,
        "copy": map.copy,
        "verdict": match exit {
            Exit::Done => "same",
            Exit::No => "drift",
            Exit::CannotSay | Exit::Usage | Exit::Own | Exit::Command(_) => "unknown",
        },
        "files": report.project.files(),
        "laptop_newer": texts(&drift.laptop),
        "vm_newer": texts(&drift.vm),
        "both_changed": texts(&drift.both),
        "unknown": texts(&drift.unknown),
        "withheld": texts(&report.plan.withheld),
        "unsettled": texts(&report.unsettled),
    })
}
