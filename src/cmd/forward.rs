//! `boxery forward`.

use boxery_pin::VmName;
use boxery_remote::{Forward, jobs};

use crate::app::App;
use crate::cmd::run::cancelled;
use crate::error::Failure;
use crate::exit::Exit;
use crate::place::Here;
use crate::reach;

/// Offer a TCP port of a VM on this laptop
///
/// Until Ctrl-C, what connects to 127.0.0.1 here reaches the VM's loopback there.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM's port, or both as LOCAL:PORT
    #[arg(value_name = "[LOCAL:]PORT", value_parser = parse_ports)]
    ports: (u16, u16),
    /// The VM; the pinned one by default
    #[arg(value_name = "NAME")]
    vm: Option<VmName>,
}

fn parse_ports(text: &str) -> Result<(u16, u16), String> {
    let port = |text: &str| match text.parse::<u16>() {
        Ok(port @ 1..) => Ok(port),
        Ok(0) | Err(_) => Err("give PORT or LOCAL:PORT, each from 1 to 65535".to_owned()),
    };
    match text.split_once(':') {
        Some((local, remote)) => Ok((port(local)?, port(remote)?)),
        None => port(text).map(|port| (port, port)),
    }
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let name = Here::look(app)?.vm(args.vm.as_ref())?;
    let config = app.config()?;
    let vm = config.vm(&name)?;
    let (local, port) = args.ports;
    reach::block_on(async {
        let way = reach::open(app, &name, vm).await?;
        // So that a way that leads nowhere is said now.
        jobs::machine(&way)
            .await
            .map_err(|error| reach::failure(&name, error))?;
        let forward = if local == port {
            Forward::listen_near(local, port, None).await?
        } else {
            Forward::listen(local, port).await?
        };
        app.ui.say(format_args!(
            "127.0.0.1:{} is port {port} of {name}; Ctrl-C ends it",
            forward.local()?
        ));
        let ui = app.ui;
        tokio::select! {
            ended = forward.serve(&way, |error| ui.note(error)) => ended?,
            _ = cancelled() => {}
        }
        Ok(Exit::Done)
    })?
}
