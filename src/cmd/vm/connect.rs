//! `boxery vm connect`.

use boxery_pin::VmName;

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;
use crate::{env, reach, trust};

/// Connect to a VM once, on a terminal, where it can ask
///
/// Agents' runs never ask. This asks what they can't: whether an unknown host key is
/// the VM's own, and the passphrase of a key, which it leaves with your SSH agent.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM
    name: VmName,
    /// Accept this host key without a question
    #[arg(long, value_name = "SHA256:…", value_parser = super::add::parse_fingerprint)]
    accept_fingerprint: Option<String>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    app.refuse_agents("vm connect")?;
    let config = app.config()?;
    let vm = config.vm(&args.name)?;
    let given = args.accept_fingerprint.as_deref();
    let (kind, key) = reach::block_on(async {
        let (way, key) = trust::open(app, &args.name, vm, given).await?;
        let kind = way.kind().await.unwrap_or_default();
        Ok::<_, Failure>((kind, key))
    })??;
    app.ui.say(format_args!(
        "connected to {} over the {kind} pipe, host key {}",
        args.name,
        key.as_deref().unwrap_or("trusted")
    ));
    if !vm.is_embedded() && env::ssh_auth_sock().is_none() {
        app.ui.say(
            "no SSH agent runs here: a key with a passphrase will be asked for again, and agents can't answer (`ssh-agent`, `ssh-add`)",
        );
    }
    Ok(Exit::Done)
}
