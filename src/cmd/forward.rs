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
#[command(override_usage = "boxery forward [NAME] [LOCAL:]PORT")]
pub(crate) struct Args {
    /// The VM, the pinned one by default, then its port, or both ports as LOCAL:PORT
    #[arg(value_name = "[NAME] [LOCAL:]PORT", num_args = 1..=2, required = true)]
    what: Vec<String>,
}

impl Args {
    /// The VM and the ports. No VM's name is a number, so they can't be mistaken.
    fn parse(&self) -> Result<(Option<VmName>, (u16, u16)), Failure> {
        let (name, ports) = match self.what.as_slice() {
            [name, ports] => (Some(name), ports),
            [ports] => (None, ports),
            _ => return Err(Failure::usage("give [NAME] [LOCAL:]PORT")),
        };
        let name = name.map(|name| name.parse::<VmName>()).transpose();
        let name = name.map_err(|error| {
            let hint = error.hint();
            Failure::usage(error.to_string()).hint(hint)
        })?;
        let ports = parse_ports(ports).map_err(|why| {
            let failure = Failure::usage(format!("`{ports}` is no port"));
            failure.hint(why)
        })?;
        Ok((name, ports))
    }
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
    let (named, (local, port)) = args.parse()?;
    let name = Here::look(app)?.vm(named.as_ref())?;
    let config = app.config()?;
    let vm = config.vm(&name)?;
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
