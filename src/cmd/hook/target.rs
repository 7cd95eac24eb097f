//! Which agents and which settings files a verb is about.

use std::sync::LazyLock;

use boxery_agents::{ADAPTERS, Adapter, HookEntry, InstallScope, Surroundings, hook_command};
use boxery_record::{Event, Kind};
use camino::{Utf8Path, Utf8PathBuf};
use clap::builder::PossibleValuesParser;

use crate::app::App;
use crate::env;
use crate::error::Failure;
use crate::exit::Exit;
use crate::policy;

/// The names of the agents, for arguments.
pub(crate) static AGENT_NAMES: LazyLock<PossibleValuesParser> =
    LazyLock::new(|| PossibleValuesParser::new(ADAPTERS.iter().map(|adapter| adapter.name())));

/// The agents that a verb is about.
#[derive(Debug, clap::Args)]
pub(super) struct Agents {
    /// The agents
    #[arg(value_name = "AGENT", value_parser = AGENT_NAMES.clone(), required_unless_present = "all")]
    agents: Vec<String>,
    /// Every agent that boxery knows
    #[arg(long, conflicts_with = "agents")]
    all: bool,
}

impl Agents {
    /// Each one once, in the order of the list.
    pub(super) fn adapters(&self) -> Vec<&'static dyn Adapter> {
        let is_meant = |name: &str| self.all || self.agents.iter().any(|agent| agent == name);
        ADAPTERS
            .iter()
            .copied()
            .filter(|adapter| is_meant(adapter.name()))
            .collect()
    }
}

/// Whose settings, as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Scope {
    /// Yours, for every project
    User,
    /// This project's, shared with others
    Project,
    /// Yours, for this project
    Local,
}

impl From<Scope> for InstallScope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::User => Self::User,
            Scope::Project => Self::Project,
            Scope::Local => Self::Local,
        }
    }
}

/// The policy that hooks are held to, whatever lies in a project.
#[derive(Debug, clap::Args)]
pub(super) struct Policy {
    /// Hold what these agents run to a policy file, whatever a project's own says
    #[arg(long, value_name = "FILE", conflicts_with = "template")]
    settings: Option<Utf8PathBuf>,
    /// Hold what these agents run to a policy template
    #[arg(long, value_name = "NAME")]
    template: Option<String>,
}

impl Policy {
    /// As the configuration names it, when it can be used; what it warns of is told.
    pub(super) fn name(&self, app: &App) -> Result<Option<String>, Failure> {
        let name = match (&self.settings, &self.template) {
            (Some(file), _) => file
                .canonicalize_utf8()
                .map_err(|error| {
                    Failure::from(format!("cannot find the policy `{file}`: {error}"))
                        .exit(Exit::CannotSay)
                })?
                .into_string(),
            (None, Some(name)) if name.contains('/') => {
                return Err(Failure::usage(format!("`{name}` is not a template's name"))
                    .hint("a file is named with `--settings`"));
            }
            (None, Some(name)) => name.clone(),
            (None, None) => return Ok(None),
        };
        let resolved = policy::read(app, &name)?;
        for warning in &resolved.warnings {
            app.ui.say(format_args!("careful: {warning}"));
        }
        Ok(Some(name))
    }
}

/// The entry for an agent.
pub(super) fn entry(adapter: &dyn Adapter) -> Result<HookEntry, Failure> {
    let (events, timeout) = adapter.hook_events();
    Ok(HookEntry {
        agent: adapter.name(),
        command: hook_command(&lasting_binary()?, adapter.name())?,
        events,
        timeout,
    })
}

/// This program under the name that stays when it is updated: where PATH leads to
/// it through a link, that link.
fn lasting_binary() -> Result<Utf8PathBuf, Failure> {
    let own = env::own_binary()?;
    let found = env::on_path("boxery")
        .into_iter()
        .find(|candidate| candidate.canonicalize_utf8().is_ok_and(|real| real == own));
    Ok(found.unwrap_or(own))
}

/// Where an agent's settings are, for a verb that a person started in `folder`.
pub(crate) struct Places {
    home: Utf8PathBuf,
    settings: Option<Utf8PathBuf>,
    pub(super) folder: Utf8PathBuf,
}

impl Places {
    pub(crate) fn read(app: &App) -> Result<Self, Failure> {
        let folder = env::current_folder()?;
        Ok(Self {
            home: app.env.home.clone(),
            settings: env::claude_config_dir().map(|config| folder.join(config)),
            folder,
        })
    }

    pub(super) fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            home: &self.home,
            settings: self.settings.as_deref(),
            project: Some(&self.folder),
            folder: Some(&self.folder),
            machine: Utf8Path::new("/"),
            arguments: &[],
        }
    }

    /// The settings file of each scope that there is.
    pub(crate) fn files(&self, adapter: &dyn Adapter) -> Vec<Utf8PathBuf> {
        let scopes = InstallScope::ALL.into_iter();
        let surroundings = self.surroundings();
        scopes
            .filter_map(|scope| adapter.settings_file(&surroundings, scope))
            .collect()
    }

    /// The settings file of a scope.
    pub(super) fn file(
        &self,
        adapter: &dyn Adapter,
        scope: InstallScope,
    ) -> Result<Utf8PathBuf, Failure> {
        adapter
            .settings_file(&self.surroundings(), scope)
            .ok_or_else(|| {
                let title = adapter.title();
                Failure::usage(format!("{title} has no settings of the scope {scope}"))
            })
    }
}

/// Put on record that a settings file was changed.
pub(super) fn record(app: &App, kind: Kind, adapter: &dyn Adapter, path: &Utf8Path) {
    app.record(&Event {
        agent: Some(adapter.name().to_owned()),
        detail: Some(path.to_string()),
        ..Event::new(env::now(), kind)
    });
}

/// Does `each` for every agent; one that fails keeps no other from its turn.
pub(super) fn for_each_agent(
    app: &App,
    agents: &Agents,
    mut each: impl FnMut(&'static dyn Adapter) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut failed: Option<Failure> = None;
    for adapter in agents.adapters() {
        if let Err(failure) = each(adapter)
            && let Some(earlier) = failed.replace(failure)
        {
            app.ui.failure(&earlier.render());
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Does what `plan` makes, again when another program was in between.
pub(super) fn apply(
    plan: impl Fn() -> Result<boxery_agents::Plan, boxery_agents::SettingsError>,
) -> Result<boxery_agents::Plan, Failure> {
    use boxery_agents::SettingsError;

    let refused = |error: SettingsError| {
        let hint = error.hint();
        Failure::from(error).hint(hint)
    };
    let mut tries = 3;
    loop {
        let plan = plan().map_err(refused)?;
        match plan.apply() {
            Ok(()) => return Ok(plan),
            Err(SettingsError::Changed { .. }) if tries > 1 => tries -= 1,
            Err(error) => return Err(refused(error)),
        }
    }
}
