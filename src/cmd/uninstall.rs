//! `boxery uninstall`.

use std::fs;

use boxery_agents::{ADAPTERS, Adapter};
use boxery_pin::VmName;
use boxery_record::{Filter, Kind};
use boxery_remote::embedded::EmbeddedVm;
use boxery_remote::{Way, daemon, jobs};
use camino::{Utf8Path, Utf8PathBuf};

use crate::app::App;
use crate::cmd::hook::{Places, has_entry, remove_entry};
use crate::config::Vm;
use crate::error::Failure;
use crate::exit::Exit;
use crate::ui::counted;
use crate::{env, reach};

/// Take boxery off this laptop and off the VMs that it reaches
///
/// Every hook that it installed (each settings file is again what it was, byte for byte),
/// pins, state, record and daemon here; helpers and what runs left there. Copies of
/// projects stay on the VMs, and so does your configuration here (VMs, their host keys),
/// unless you say `--purge`. What can't be removed is listed with what to do by hand, and
/// the exit status is 1 then. The program itself is yours to remove.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show what would go, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Don't ask
    #[arg(long)]
    yes: bool,
    /// Remove the configuration too
    #[arg(long)]
    purge: bool,
}

/// Removes by hand on a VM what its helper would: where that itself may lie, and what
/// runs left.
const THERE: &str = "rm -rf ~/.cache/boxery ~/.boxery ~/.local/state/boxery \
    \"${XDG_CACHE_HOME:-$HOME/.cache}/boxery\" \
    \"${XDG_RUNTIME_DIR:-/run/user/$(id -u)}/boxery\" \
    /var/tmp/boxery-$(id -u) /tmp/boxery-$(id -u) /dev/shm/boxery-$(id -u) \
    /var/tmp/boxery-$(id -un) /tmp/boxery-$(id -un) /dev/shm/boxery-$(id -un)";

/// What could not be removed, and what to do about it.
struct Left {
    what: String,
    by_hand: String,
}

/// What there is to remove.
struct Found {
    hooks: Vec<(&'static dyn Adapter, Utf8PathBuf)>,
    pins: usize,
    vms: Vec<(VmName, Vm)>,
    /// The configuration can't be read, which may name more.
    unread: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    app.refuse_agents("uninstall")?;
    let mut left = Vec::new();
    let found = look(app, &mut left)?;
    show(args, app, &found);
    if args.dry_run {
        return Ok(tell(app, &left));
    }
    if !args.yes {
        match app.ui.confirm("Remove all of that?") {
            Some(true) => {}
            Some(false) => {
                app.ui.say("nothing was changed");
                return Ok(Exit::No);
            }
            None => {
                return Err(
                    Failure::from("nobody can be asked whether boxery may go".to_owned())
                        .hint("run it in a terminal, or say `--yes`")
                        .exit(Exit::No),
                );
            }
        }
    }
    // The hooks first: a call that comes meanwhile is denied by a pin, or passes.
    for (adapter, path) in &found.hooks {
        match remove_entry(app, path, *adapter) {
            Ok(_) => {}
            Err(failure) => left.push(Left {
                what: format!("the hook in {path}: {}", failure.one_line()),
                by_hand: format!(
                    "remove the entries with `boxery hook run {}` from {path}",
                    adapter.name()
                ),
            }),
        }
    }
    if let Err(error) = reach::block_on(daemon::stop(&reach::daemon_site(app)))? {
        left.push(Left {
            what: format!("the daemon: {error}"),
            by_hand: "end the process `boxery daemon serve`".to_owned(),
        });
    }
    let mut unreached: Vec<&str> = found.unread.then_some("each VM").into_iter().collect();
    for (name, vm) in &found.vms {
        if let Err(why) = leave(app, name, vm) {
            left.push(Left {
                what: format!("boxery's helper on {name}: {why}"),
                by_hand: format!("on {name}: {THERE}"),
            });
            unreached.push(name.as_str());
        } else {
            app.ui
                .say(format_args!("removed boxery's helper from {name}"));
        }
    }
    let mut folders = vec![&app.env.state];
    if args.purge && unreached.is_empty() {
        folders.push(&app.env.config);
    } else if args.purge {
        left.push(Left {
            what: format!(
                "{}, which says how to reach {}",
                app.env.config,
                unreached.join(", ")
            ),
            by_hand: format!(
                "`boxery uninstall --purge` once more when that can be done, or rm -rf {}",
                app.env.config
            ),
        });
    }
    for folder in folders {
        match fs::remove_dir_all(folder) {
            Ok(()) => app.ui.say(format_args!("removed {folder}")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => left.push(Left {
                what: format!("{folder}: {error}"),
                by_hand: format!("rm -rf {folder}"),
            }),
        }
    }
    if let Ok(binary) = env::own_binary() {
        app.ui.say(format_args!("the program itself is {binary}"));
    }
    Ok(tell(app, &left))
}

/// Name what was left; 1 if something was.
fn tell(app: &App, left: &[Left]) -> Exit {
    for Left { what, by_hand } in left {
        app.ui.say(format_args!("left: {what}"));
        app.ui.say(format_args!("  by hand: {by_hand}"));
    }
    if left.is_empty() {
        Exit::Done
    } else {
        Exit::No
    }
}

fn look(app: &App, left: &mut Vec<Left>) -> Result<Found, Failure> {
    let mut hooks: Vec<(&'static dyn Adapter, Utf8PathBuf)> = Vec::new();
    for (adapter, path) in settings(app)? {
        match has_entry(&path, adapter) {
            Ok(true) => hooks.push((adapter, path)),
            Ok(false) => {}
            Err(failure) => left.push(Left {
                what: format!("{path}, which may hold a hook: {}", failure.one_line()),
                by_hand: format!(
                    "remove the entries with `boxery hook run {}` from {path}, if there are some",
                    adapter.name()
                ),
            }),
        }
    }
    let mut unread = false;
    let vms = match app.config() {
        Ok(config) => config.vm.into_iter().collect(),
        Err(failure) => {
            left.push(Left {
                what: format!("helpers on VMs: {}", failure.one_line()),
                by_hand: format!("on each VM: {THERE}"),
            });
            unread = true;
            Vec::new()
        }
    };
    Ok(Found {
        hooks,
        pins: app.pins().list().map_or(0, |pins| pins.len()),
        vms,
        unread,
    })
}

/// Every settings file that may hold a hook: the user's, those of the project here, and
/// those that the record names.
fn settings(app: &App) -> Result<Vec<(&'static dyn Adapter, Utf8PathBuf)>, Failure> {
    let places = Places::read(app)?;
    let mut found: Vec<(&'static dyn Adapter, Utf8PathBuf)> = Vec::new();
    let mut add = |adapter: &'static dyn Adapter, path: Utf8PathBuf| {
        if found.iter().all(|(_, known)| *known != path) {
            found.push((adapter, path));
        }
    };
    for adapter in ADAPTERS {
        for path in places.files(*adapter) {
            add(*adapter, path);
        }
    }
    // A record that can't be read names no more.
    let entries = app.log().entries(Filter::default()).ok();
    for entry in entries.into_iter().flatten().flatten() {
        let event = entry.event;
        let adapter = ADAPTERS
            .iter()
            .find(|adapter| Some(adapter.name()) == event.agent.as_deref());
        if let (Kind::Install, Some(adapter), Some(path)) = (event.kind, adapter, event.detail) {
            add(*adapter, path.into());
        }
    }
    Ok(found)
}

fn show(args: &Args, app: &App, found: &Found) {
    let verb = if args.dry_run {
        "would go"
    } else {
        "to remove"
    };
    for (adapter, path) in &found.hooks {
        app.ui.say(format_args!(
            "{verb}: the hook of {} in {path}",
            adapter.title()
        ));
    }
    if found.pins > 0 {
        app.ui
            .say(format_args!("{verb}: {}", counted(found.pins, "pin")));
    }
    for (name, vm) in &found.vms {
        if vm.is_embedded() {
            app.ui.say(format_args!(
                "{verb}: VM {name} on this machine, with all that is in it"
            ));
        } else {
            app.ui.say(format_args!(
                "{verb}: boxery's helper on {name}; copies of projects stay there in {}",
                vm.dir
            ));
        }
    }
    for (folder, goes) in [(&app.env.state, true), (&app.env.config, args.purge)] {
        if !Utf8Path::exists(folder) {
            continue;
        }
        if goes {
            app.ui.say(format_args!("{verb}: {folder}"));
        } else {
            app.ui
                .say(format_args!("stays: {folder} (`--purge` removes it)"));
        }
    }
}

/// Take the helper off a VM; why it stays, if so.
fn leave(app: &App, name: &VmName, vm: &Vm) -> Result<(), String> {
    let one_line = |failure: Failure| failure.one_line();
    if vm.is_embedded() {
        return EmbeddedVm::new(app.embedded_folder(name))
            .remove()
            .map_err(|error| reach::failure(name, error).one_line());
    }
    let route = reach::route(app, name, vm).map_err(one_line)?;
    let ui = app.ui;
    let ask = move |prompt: &str| ui.secret(prompt);
    let ask: boxery_remote::Ask<'_> = if ui.can_ask() { Some(&ask) } else { None };
    let running = reach::block_on(async {
        let way = Way::open(route, None, ask).await?;
        jobs::leave(&way).await
    })
    .map_err(one_line)?
    .map_err(|error| reach::failure(name, error).one_line())?;
    match running {
        0 => Ok(()),
        running => Err(format!(
            "{running} runs or jobs go on there (`boxery jobs list {name}`)"
        )),
    }
}
