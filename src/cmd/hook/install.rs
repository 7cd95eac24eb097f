//! `boxery hook install`.

use boxery_agents::{Adapter, Plan};
use boxery_pin::Mode;
use boxery_record::Kind;
use camino::{Utf8Path, Utf8PathBuf};
use toml_edit::value;

use super::target::{self, Agents, Places, Policy, Scope};
use crate::app::App;
use crate::config;
use crate::error::Failure;
use crate::exit::Exit;
use crate::prove::ensure_proven;

/// Put boxery's hook into agents' settings
///
/// One entry for each event, the same in every mode; the rest of the file stays as
/// it is, byte for byte. An older entry of boxery's is brought up to date in its
/// place. With nothing pinned the hook does nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    agents: Agents,
    /// Set your default mode, in boxery's own configuration
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeArg>,
    /// Whose settings
    #[arg(long, default_value = "user", conflicts_with = "file")]
    scope: Scope,
    /// Another settings file than the agent's own
    #[arg(long, value_name = "PATH")]
    file: Option<Utf8PathBuf>,
    /// In redirect, answer the agent's permission question with yes; your deny and
    /// ask rules still hold
    #[arg(long)]
    auto_approve: bool,
    /// Leave the MCP server out; this version has none
    #[arg(long)]
    no_mcp: bool,
    #[command(flatten)]
    policy: Policy,
    /// Have the policy judge what the agent's own file and fetch tools declare too
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    preflight: Vec<DeclaredArg>,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// A mode, as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ModeArg {
    /// Deny local shell calls, and say how to run them in the VM
    Guard,
    /// Run the agent's own shell calls in the VM
    Redirect,
}

/// What tools declare, as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DeclaredArg {
    /// The paths that they write
    Files,
    /// The URLs that they reach
    Urls,
    /// Nothing any more
    None,
}

impl DeclaredArg {
    /// Its word in the configuration.
    fn word(self) -> Option<&'static str> {
        match self {
            Self::Files => Some("files"),
            Self::Urls => Some("urls"),
            Self::None => None,
        }
    }
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Guard => Self::Guard,
            ModeArg::Redirect => Self::Redirect,
        }
    }
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    app.refuse_agents("hook install")?;
    let places = Places::read(app)?;
    // Refused before anything is written.
    drop(app.config()?);
    let policy = args.policy.name(app)?;
    if args.file.is_some() && args.agents.adapters().len() > 1 {
        return Err(Failure::usage("`--file` is for one agent"));
    }
    target::for_each_agent(app, &args.agents, |adapter| {
        install(args, app, &places, adapter)
    })?;
    set_config(args, policy.as_deref(), app)?;
    for adapter in args.agents.adapters() {
        warn(app, &places, adapter);
    }
    Ok(Exit::Done)
}

fn install(
    args: &Args,
    app: &App,
    places: &Places,
    adapter: &'static dyn Adapter,
) -> Result<(), Failure> {
    let entry = target::entry(adapter)?;
    let path = match &args.file {
        Some(file) => places.folder.join(file),
        None => places.file(adapter, args.scope.into())?,
    };
    let plan = || Plan::install(&path, &entry);
    if args.dry_run {
        return show(app, &path, plan());
    }
    let done = target::apply(plan)?;
    let title = adapter.title();
    if done.is_unchanged() {
        app.ui.say(format_args!(
            "boxery's hook for {title} is already in {path}"
        ));
    } else {
        target::record(app, Kind::Install, adapter, &path);
        app.ui.say(format_args!(
            "installed boxery's hook for {title} in {path}"
        ));
    }
    Ok(())
}

/// The diff of a dry run.
pub(super) fn show(
    app: &App,
    path: &Utf8Path,
    plan: Result<Plan, boxery_agents::SettingsError>,
) -> Result<(), Failure> {
    let plan = plan.map_err(|error| {
        let hint = error.hint();
        Failure::from(error).hint(hint)
    })?;
    if plan.is_unchanged() {
        app.ui.say(format_args!("nothing would change in {path}"));
    }
    app.ui.raw(&plan.diff());
    Ok(())
}

fn set_config(args: &Args, policy: Option<&str>, app: &App) -> Result<(), Failure> {
    let mode = args.mode.map(Mode::from);
    let path = app.config_path();
    let mut lines: Vec<String> = mode
        .iter()
        .map(|mode| format!("mode = \"{mode}\""))
        .collect();
    if args.auto_approve {
        lines.push("auto_approve = true".to_owned());
    }
    let agents = args.agents.adapters();
    if let Some(policy) = policy {
        let names = agents.iter().map(|adapter| adapter.name());
        lines.extend(names.map(|agent| format!("hook.{agent}.policy = \"{policy}\"")));
    }
    let declared: Vec<&str> = args
        .preflight
        .iter()
        .filter_map(|declared| declared.word())
        .collect();
    if !args.preflight.is_empty() {
        let names = agents.iter().map(|adapter| adapter.name());
        lines.extend(names.map(|agent| format!("hook.{agent}.preflight = {declared:?}")));
    }
    if lines.is_empty() {
        return Ok(());
    }
    if args.dry_run {
        for line in lines {
            app.ui.say(format_args!("would set `{line}` in {path}"));
        }
        return Ok(());
    }
    config::edit(&path, |document| {
        if let Some(mode) = mode {
            document.insert("mode", value(mode.to_string()));
        }
        if args.auto_approve {
            document.insert("auto_approve", value(true));
        }
        if !args.preflight.is_empty() {
            for adapter in &agents {
                config::set_hook_preflight(document, adapter.name(), &declared);
            }
        }
        if policy.is_some() {
            for adapter in &agents {
                config::set_hook_policy(document, adapter.name(), policy);
            }
        }
    })?;
    for line in lines {
        app.ui.say(format_args!("set `{line}` in {path}"));
    }
    if mode == Some(Mode::Redirect) {
        ensure_proven(app);
    }
    Ok(())
}

/// What keeps the hook from being called, or from having the last word.
fn warn(app: &App, places: &Places, adapter: &dyn Adapter) {
    let title = adapter.title();
    let environment = adapter.hook_environment(&places.surroundings());
    for settings in environment.disabled.iter().chain(&environment.managed_only) {
        app.ui.say(format_args!(
            "careful: {title} does not start this hook here, because of {settings}"
        ));
    }
    for hook in &environment.rewriters {
        app.ui.say(format_args!(
            "careful: another hook may rewrite the same call, so redirect stays guard: {hook}"
        ));
    }
    for settings in &environment.unreadable {
        app.ui.say(format_args!(
            "careful: {title} drops settings that it can't read, and they may hold hooks: {settings}"
        ));
    }
    let mut commands: Vec<&str> = environment
        .own
        .iter()
        .map(|hook| hook.command.as_str())
        .collect();
    commands.sort_unstable();
    commands.dedup();
    if commands.len() > 1 {
        let mut files: Vec<&str> = environment
            .own
            .iter()
            .map(|hook| hook.place.as_str())
            .collect();
        files.sort_unstable();
        files.dedup();
        app.ui.say(format_args!(
            "careful: different entries of boxery's are called for each event, from {}; install or uninstall them so that one is left",
            files.join(" and ")
        ));
    }
}
