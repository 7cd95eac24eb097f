//! `boxery vm show`.

use serde_json::json;

use boxery_pin::VmName;

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;
use crate::reach;

/// Show what is known of a VM
///
/// Nothing is contacted; `boxery vm doctor` does that.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM
    name: VmName,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let config = app.config()?;
    let vm = config.vm(&args.name)?;
    let (way, reason) = reach::way(app, &args.name, vm)?;
    if args.json {
        app.ui.line(json!({
            "name": args.name, "target": vm.target, "dir": vm.dir, "pipe": vm.pipe,
            "way": way, "reason": reason, "machine_id": vm.machine_id, "host_key": vm.host_key,
            "this_machine": vm.is_embedded(),
        }));
        return Ok(Exit::Done);
    }
    let target = if vm.is_embedded() {
        "this machine, no security boundary"
    } else {
        &vm.target
    };
    let unknown = || "unknown".to_owned();
    let way = reason.map_or_else(
        || way.to_string(),
        |reason| format!("{way}, because {reason}"),
    );
    for (label, value) in [
        ("name", args.name.to_string()),
        ("target", target.to_owned()),
        ("folder", vm.dir.to_string()),
        ("pipe", way),
        ("host key", vm.host_key.clone().unwrap_or_else(unknown)),
        ("machine id", vm.machine_id.clone().unwrap_or_else(unknown)),
    ] {
        app.ui.line(format_args!("{label:<11} {value}"));
    }
    Ok(Exit::Done)
}
