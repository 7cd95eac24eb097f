//! `boxery vm list`.

use serde_json::json;

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;

/// List the VMs
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let config = app.config()?;
    if args.json {
        let vms: Vec<_> = config
            .vm
            .iter()
            .map(|(name, vm)| {
                json!({
                    "name": name, "target": vm.target, "dir": vm.dir,
                    "pipe": vm.pipe, "this_machine": vm.is_embedded(),
                })
            })
            .collect();
        app.ui.line(serde_json::to_string(&vms)?);
        return Ok(Exit::Done);
    }
    if config.vm.is_empty() {
        app.ui.say("no VM yet; add one with `boxery vm add NAME user@host`, or try one on this machine with `boxery vm add NAME --embedded`");
        return Ok(Exit::Done);
    }
    let mut rows = vec![
        ["NAME", "TARGET", "FOLDER", "PIPE"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (name, vm) in &config.vm {
        let target = if vm.is_embedded() {
            "this machine"
        } else {
            &vm.target
        };
        rows.push(vec![
            name.to_string(),
            target.to_owned(),
            vm.dir.to_string(),
            vm.pipe.to_string(),
        ]);
    }
    app.ui.table(&rows);
    Ok(Exit::Done)
}
