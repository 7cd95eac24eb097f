//! `boxery vm renew`.

use boxery_pin::VmName;
use boxery_remote::{PipeChoice, RemoteError, Route, Way, doctor, replace};
use camino::Utf8PathBuf;

use crate::app::App;
use crate::config::{self, Vm};
use crate::error::Failure;
use crate::exit::Exit;
use crate::{copy, env, reach};

/// Take a VM that was rebuilt for the one of that name
///
/// Shows its old and new host key and machine id and asks once, on a terminal. What is
/// known of copies on the old machine is forgotten; pins stay. Until then commands for it
/// are refused, since it may be another machine.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM
    name: VmName,
}

/// What a VM shows of itself.
struct Shown {
    host_key: Option<String>,
    machine_id: String,
    /// The line of its key, where that isn't known yet.
    line: Option<String>,
    /// Where the user's own ssh knows another key.
    elsewhere: Option<String>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    app.refuse_agents("vm renew")?;
    let name = &args.name;
    let known = app.config()?;
    let vm = known.vm(name)?;
    if vm.is_embedded() {
        return Err(
            Failure::usage(format!("VM {name} is this machine, which nobody rebuilds"))
                .hint(format!("`boxery vm remove {name}`, then add it again")),
        );
    }
    if !app.ui.can_ask() {
        return Err(Failure::from(
            "only a person can tell whether a VM was rebuilt, and nobody can be asked".to_owned(),
        )
        .hint(format!("run `boxery vm renew {name}` in a terminal"))
        .exit(Exit::No));
    }
    // A passphrase is this laptop's affair; a password that ssh asks for isn't, as long as
    // nobody has said whose key that is.
    let (pipe, _) = reach::way(app, name, vm)?;
    let asking = pipe == PipeChoice::Native;
    let shown = reach::block_on(look(app, name, vm, asking))??;
    // As `vm add` has it: an id that is this laptop's tells nothing.
    let own = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let machine_id =
        Some(shown.machine_id.as_str()).filter(|id| !id.is_empty() && *id != own.trim());
    let same = shown.line.is_none() && vm.machine_id.as_deref() == machine_id;
    if same {
        app.ui.say(format_args!(
            "VM {name} is the machine that it was; there is nothing to renew"
        ));
        return Ok(Exit::Done);
    }
    let none = "none";
    app.ui.say(format_args!("VM {name}, {}:", vm.target));
    for (label, old, new) in [
        (
            "host key",
            vm.host_key.as_deref(),
            shown.host_key.as_deref(),
        ),
        ("machine id", vm.machine_id.as_deref(), machine_id),
    ] {
        let (old, new) = (old.unwrap_or(none), new.unwrap_or(none));
        app.ui.say(format_args!("  {label:<10}  was {old}"));
        app.ui.say(format_args!("  {:<10}  is  {new}", ""));
    }
    if app.ui.confirm("Was it rebuilt, and is that its key?") != Some(true) {
        app.ui.say("nothing was changed");
        return Ok(Exit::No);
    }
    if let Some(line) = &shown.line {
        replace(&app.known_hosts_path(), line).map_err(|error| reach::failure(name, error))?;
    }
    config::edit(&app.config_path(), |document| {
        config::set_identity(document, name, machine_id, shown.host_key.as_deref());
    })?;
    copy::forget_all(app, name)?;
    let folder = vm.dir.as_str();
    reach::block_on(async {
        let known = app.config()?;
        let way = reach::open(app, name, known.vm(name)?).await?;
        doctor::check_folder(&way, folder)
            .await
            .map_err(|error| reach::failure(name, error))
    })??;
    if let Some(at) = &shown.elsewhere {
        app.ui.say(format_args!(
            "your own ssh still knows the old key, from {at}: `ssh-keygen -R` removes it"
        ));
    }
    app.ui.say(format_args!(
        "VM {name} is this machine from now on; send your projects anew: `boxery sync {name}`"
    ));
    Ok(Exit::Done)
}

/// Connect to whatever is there, trusting its key for this one look only.
async fn look(app: &App, name: &VmName, vm: &Vm, asking: bool) -> Result<Shown, Failure> {
    let failed = |error| reach::failure(name, error);
    let mut route = reach::route(app, name, vm)?;
    route.machine_id = None;
    let ui = app.ui;
    let ask = move |prompt: &str| ui.secret(prompt);
    let ask: boxery_remote::Ask<'_> = if asking { Some(&ask) } else { None };
    let mut elsewhere = None;
    let unknown = match Way::open(route.clone(), None, ask).await {
        Ok(way) => Ok(way),
        Err(RemoteError::HostKeyChanged { line, known, .. }) if !line.is_empty() => {
            elsewhere = Some(known).filter(|at| !at.starts_with(app.known_hosts_path().as_str()));
            Err(line)
        }
        Err(RemoteError::HostKeyUnknown { line, .. }) if !line.is_empty() => Err(line),
        Err(error) => return Err(failed(error)),
    };
    let (way, line, _scratch) = match unknown {
        Ok(way) => (way, None, None),
        Err(line) => {
            let scratch = tempfile::tempdir()?;
            let path = Utf8PathBuf::try_from(scratch.path().join("known_hosts"))?;
            replace(&path, &line).map_err(failed)?;
            let route = Route {
                laptop: boxery_remote::Laptop {
                    known_hosts: path,
                    ..route.laptop
                },
                ..route
            };
            let way = Way::open(route, None, ask).await.map_err(failed)?;
            (way, Some(line), Some(scratch))
        }
    };
    let probe = doctor::probe(&way, env::now()).await.map_err(failed)?;
    Ok(Shown {
        host_key: way.host_key().await.map(|key| key.fingerprint),
        machine_id: probe.machine_id,
        line,
        elsewhere,
    })
}
