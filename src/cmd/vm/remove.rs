//! `boxery vm remove`.

use boxery_pin::VmName;
use boxery_remote::embedded::EmbeddedVm;

use crate::app::App;
use crate::config;
use crate::copy;
use crate::error::Failure;
use crate::exit::Exit;

/// Forget a VM
///
/// Nothing on the VM is touched; one on this machine is ended and removed. Pins that
/// name it stay, and deny every call until they are removed, so that nothing runs on
/// this laptop by accident.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM
    name: VmName,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    app.refuse_agents("vm remove")?;
    let known = app.config()?;
    let embedded = known.vm(&args.name)?.is_embedded();
    config::edit(&app.config_path(), |document| {
        config::remove_vm(document, &args.name);
    })?;
    if embedded {
        EmbeddedVm::new(app.embedded_folder(&args.name)).remove()?;
    }
    copy::forget_states(app, &args.name)?;
    app.ui.say(format_args!("forgot VM {}", args.name));
    let pins = app.pins().list()?;
    let left = pins
        .iter()
        .flatten()
        .filter(|pin| pin.file.vm == args.name)
        .count();
    if left > 0 {
        app.ui.say(format_args!(
            "{left} pins still name it and deny every call; `boxery unpin` in each of those projects removes them"
        ));
    }
    Ok(Exit::Done)
}
