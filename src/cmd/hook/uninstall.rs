//! `boxery hook uninstall`.

use boxery_agents::{Adapter, InstallScope, Plan};
use boxery_record::Kind;
use camino::{Utf8Path, Utf8PathBuf};

use super::install::show;
use super::target::{self, Agents, Places, Scope};
use crate::app::App;
use crate::config;
use crate::error::Failure;
use crate::exit::Exit;

/// Take boxery's hook out of agents' settings
///
/// Only boxery's own entries go, wherever in the file they are by now; a file that
/// the install made goes with them. Without `--scope` they go from your own
/// settings and from those of the project in the current folder.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    agents: Agents,
    /// Whose settings
    #[arg(long, conflicts_with = "file")]
    scope: Option<Scope>,
    /// Another settings file than the agent's own
    #[arg(long, value_name = "PATH")]
    file: Option<Utf8PathBuf>,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    app.refuse_agents("hook uninstall")?;
    let places = Places::read(app)?;
    if args.file.is_some() && args.agents.adapters().len() > 1 {
        return Err(Failure::usage("`--file` is for one agent"));
    }
    target::for_each_agent(app, &args.agents, |adapter| {
        uninstall(args, app, &places, adapter)?;
        release(args, app, &places, adapter)
    })?;
    Ok(Exit::Done)
}

fn uninstall(
    args: &Args,
    app: &App,
    places: &Places,
    adapter: &'static dyn Adapter,
) -> Result<(), Failure> {
    let scopes: Vec<InstallScope> = match args.scope {
        Some(scope) => vec![scope.into()],
        None => InstallScope::ALL.to_vec(),
    };
    let files = match &args.file {
        Some(file) => vec![places.folder.join(file)],
        None => scopes
            .into_iter()
            .map(|scope| places.file(adapter, scope))
            .collect::<Result<_, _>>()?,
    };
    let mut found = false;
    let mut failed: Option<Failure> = None;
    for path in files {
        match remove(args, app, &path, adapter) {
            Ok(changed) => found |= changed,
            Err(failure) => {
                if let Some(earlier) = failed.replace(failure) {
                    app.ui.failure(&earlier.render());
                }
            }
        }
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    if !found {
        let title = adapter.title();
        app.ui.say(format_args!(
            "boxery's hook for {title} is not installed here"
        ));
    }
    Ok(())
}

/// Once no entry is left, nothing is said of the agent's hook any more.
fn release(
    args: &Args,
    app: &App,
    places: &Places,
    adapter: &'static dyn Adapter,
) -> Result<(), Failure> {
    let name = adapter.name();
    let is_installed = !adapter
        .hook_environment(&places.surroundings())
        .own
        .is_empty();
    let is_held = app
        .config()
        .is_ok_and(|config| config.hook.contains_key(name));
    if args.dry_run || is_installed || !is_held {
        return Ok(());
    }
    config::edit(&app.config_path(), |document| {
        config::set_hook_policy(document, name, None);
        config::set_hook_preflight(document, name, &[]);
    })
}

/// Whether the file held an entry.
fn remove(args: &Args, app: &App, path: &Utf8Path, adapter: &dyn Adapter) -> Result<bool, Failure> {
    let plan = || Plan::uninstall(path, adapter.name());
    if args.dry_run {
        let changes = plan().is_ok_and(|plan| !plan.is_unchanged());
        if changes {
            show(app, path, plan())?;
        }
        return Ok(changes);
    }
    remove_entry(app, path, adapter)
}

/// Whether the settings file holds an entry of boxery's.
pub(crate) fn has_entry(path: &Utf8Path, adapter: &dyn Adapter) -> Result<bool, Failure> {
    let plan = Plan::uninstall(path, adapter.name()).map_err(|error| {
        let hint = error.hint();
        Failure::from(error).hint(hint)
    })?;
    Ok(!plan.is_unchanged())
}

/// Take the entries out of the settings file; whether there were some.
pub(crate) fn remove_entry(
    app: &App,
    path: &Utf8Path,
    adapter: &dyn Adapter,
) -> Result<bool, Failure> {
    let done = target::apply(|| Plan::uninstall(path, adapter.name()))?;
    if done.is_unchanged() {
        return Ok(false);
    }
    target::record(app, Kind::Uninstall, adapter, path);
    let title = adapter.title();
    app.ui.say(format_args!(
        "removed boxery's hook for {title} from {path}"
    ));
    Ok(true)
}
