//! `boxery drift`.

use boxery_pin::{PathMap, VmName};
use boxery_sync::DriftClass;
use serde_json::json;

use crate::app::App;
use crate::copy::{self, Comparison};
use crate::error::Failure;
use crate::exit::Exit;
use crate::place::{self, Here};
use crate::reach;
use crate::ui::counted;

/// Tell what differs between the project and its copy on a VM
///
/// Every file that counts is compared by content: in a git repository the tracked
/// ones and the untracked ones that aren't ignored, elsewhere all that aren't
/// ignored. Exit status: 0 the same, 1 something differs, 2 can't say.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM; the pinned one by default
    #[arg(value_name = "NAME")]
    vm: Option<VmName>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let (vm, map) = target(app, args.vm.as_ref())?;
    let config = app.config()?;
    let found = reach::block_on(async {
        let way = reach::open(app, &vm, config.vm(&vm)?).await?;
        copy::compare(app, &vm, &way, &map).await
    })?;
    let found = match found {
        Ok(found) => found,
        Err(failure) => {
            if args.json {
                app.ui.line(json!({"vm": vm, "verdict": "unknown"}));
            }
            return Err(failure.exit(Exit::CannotSay));
        }
    };
    let exit = match (found.drift.is_empty(), found.unsettled.is_empty()) {
        (true, true) => Exit::Done,
        (true, false) => Exit::CannotSay,
        (false, _) => Exit::No,
    };
    if args.json {
        app.ui.line(to_json(&vm, &map, &found, exit));
    } else {
        show(app, &vm, &found);
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

fn show(app: &App, vm: &VmName, found: &Comparison) {
    for (path, class) in &found.drift.paths {
        app.ui.line(format_args!("{} {path}", sign(*class)));
    }
    if found.drift.is_empty() {
        app.ui.say(format_args!(
            "the copy on {vm} is the same as the project ({})",
            counted(found.files, "file")
        ));
    } else {
        let count = |class| found.drift.count(class);
        app.ui.say(format_args!(
            "{} differ (~), {} only on the laptop (+), {} only on {vm} (-)",
            count(DriftClass::Differs),
            count(DriftClass::OnlyLaptop),
            count(DriftClass::OnlyVm),
        ));
    }
    for name in &found.unsettled {
        app.ui
            .say(format_args!("changed while it was compared: {name}"));
    }
}

fn sign(class: DriftClass) -> char {
    match class {
        DriftClass::Differs => '~',
        DriftClass::OnlyLaptop => '+',
        DriftClass::OnlyVm => '-',
    }
}

fn to_json(vm: &VmName, map: &PathMap, found: &Comparison, exit: Exit) -> serde_json::Value {
    let paths = |wanted: DriftClass| -> Vec<String> {
        let of = found
            .drift
            .paths
            .iter()
            .filter(|(_, class)| *class == wanted);
        of.map(|(path, _)| path.to_string()).collect()
    };
    json!({
        "vm": vm,
        "project": map.project,
        "copy": map.copy,
        "verdict": match exit {
            Exit::Done => "same",
            Exit::No => "drift",
            Exit::CannotSay | Exit::Usage | Exit::Own | Exit::Command(_) => "unknown",
        },
        "files": found.files,
        "differs": paths(DriftClass::Differs),
        "only_laptop": paths(DriftClass::OnlyLaptop),
        "only_vm": paths(DriftClass::OnlyVm),
        "unsettled": found.unsettled,
    })
}
