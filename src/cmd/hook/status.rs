//! `boxery hook status`.

use std::os::unix::fs::PermissionsExt as _;

use boxery_agents::{Adapter, FoundHook, HookEnvironment, InstallScope, Unreadable, parse_own};
use boxery_pin::{AgentId, Mode};
use boxery_router::{Alarm, Alarms, ExecutableId, LastSeen, Proof, Proofs, Seen};
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};

use super::target::{AGENT_NAMES, Places};
use crate::app::App;
use crate::config::Config;
use crate::error::Failure;
use crate::exit::Exit;
use crate::ui::Tone;

/// Say whether the hook is installed, and what stands in its way
///
/// Looks at your own settings and at those of the project in the current folder.
/// Exit status: 0 installed and called, 1 not or a call escaped, 2 when settings
/// can't be read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The agents; all by default
    #[arg(value_name = "AGENT", value_parser = AGENT_NAMES.clone())]
    agents: Vec<String>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// What is known of one agent.
struct Report {
    adapter: &'static dyn Adapter,
    scopes: Vec<ScopeReport>,
    environment: HookEnvironment,
    mode: Mode,
    /// What it is held to whatever a project says.
    policy: Option<String>,
    proofs: Vec<(Proof, bool)>,
    /// Its last session that told its begin.
    seen: Option<LastSeen>,
    /// Sessions in which a call escaped.
    alarms: Vec<Alarm>,
}

/// What is in one settings file.
struct ScopeReport {
    scope: InstallScope,
    path: Utf8PathBuf,
    state: State,
}

enum State {
    /// No entry of boxery's.
    Absent,
    /// The file can't be read.
    Unreadable(String),
    /// An entry for each event.
    Installed { binary: String, works: bool },
    /// An entry for some events only.
    Partial {
        binary: String,
        missing: Vec<String>,
    },
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let places = Places::read(app)?;
    let config = app.config()?;
    let is_meant =
        |name: &str| args.agents.is_empty() || args.agents.iter().any(|agent| agent == name);
    let reports: Vec<Report> = boxery_agents::ADAPTERS
        .iter()
        .filter(|adapter| is_meant(adapter.name()))
        .map(|adapter| Report::read(*adapter, &places, &config, app))
        .collect::<Result<_, _>>()?;
    if args.json {
        let all: Vec<Value> = reports.iter().map(Report::to_json).collect();
        app.ui.line(serde_json::to_string(&all)?);
    } else {
        for report in &reports {
            report.show(app);
        }
    }
    let exits = reports.iter().map(Report::exit);
    Ok(exits.max_by_key(|exit| exit.code()).unwrap_or(Exit::Done))
}

impl Report {
    fn read(
        adapter: &'static dyn Adapter,
        places: &Places,
        config: &Config,
        app: &App,
    ) -> Result<Self, Failure> {
        let environment = adapter.hook_environment(&places.surroundings());
        let scopes = InstallScope::ALL
            .into_iter()
            .map(|scope| {
                let path = places.file(adapter, scope)?;
                Ok(ScopeReport {
                    scope,
                    state: state(adapter, &path, &environment),
                    path,
                })
            })
            .collect::<Result<_, Failure>>()?;
        let name = AgentId(adapter.name().to_owned());
        let is_current = |proof: &Proof| {
            ExecutableId::read(&proof.executable.path).is_ok_and(|now| now == proof.executable)
        };
        // What can't be read proves nothing.
        let proofs = Proofs::new(app.env.state_path("proofs"))
            .list()?
            .into_iter()
            .flatten()
            .filter(|proof| proof.agent == name)
            .map(|proof| {
                let current = is_current(&proof);
                (proof, current)
            })
            .collect();
        let mut alarms = Vec::new();
        for alarm in Alarms::new(app.env.state_path("alarms")).list()? {
            let alarm = alarm?;
            if alarm.agent == name {
                alarms.push(alarm);
            }
        }
        let seen = Seen::new(app.env.state_path("seen")).read(&name)?;
        Ok(Self {
            adapter,
            scopes,
            environment,
            mode: config.mode.unwrap_or(Mode::Guard),
            policy: config.hook_policy(adapter.name()).map(str::to_owned),
            proofs,
            seen,
            alarms,
        })
    }

    /// Whether some entry is called for every event.
    fn is_live(&self) -> bool {
        let works =
            |report: &ScopeReport| matches!(report.state, State::Installed { works: true, .. });
        self.environment.disabled.is_none()
            && self.environment.managed_only.is_none()
            && self.scopes.iter().any(works)
    }

    fn exit(&self) -> Exit {
        let is_off = self.environment.disabled.is_some() || self.environment.managed_only.is_some();
        if self.is_live() && self.alarms.is_empty() {
            Exit::Done
        } else if self.is_live() || is_off || self.environment.unreadable.is_empty() {
            Exit::No
        } else {
            Exit::CannotSay
        }
    }

    fn to_json(&self) -> Value {
        let scopes: Vec<Value> = self.scopes.iter().map(ScopeReport::to_json).collect();
        let proofs: Vec<Value> = self
            .proofs
            .iter()
            .map(|(proof, current)| {
                json!({
                    "permission_mode": proof.permission_mode,
                    "sandbox_mode": proof.sandbox_mode,
                    "agent_version": proof.agent_version,
                    "executable": proof.executable.path,
                    "current": current,
                })
            })
            .collect();
        let names =
            |hooks: &[FoundHook]| hooks.iter().map(FoundHook::to_string).collect::<Vec<_>>();
        json!({
            "agent": self.adapter.name(),
            "live": self.is_live(),
            "mode": self.mode,
            "policy": self.policy,
            "scopes": scopes,
            "disabled": self.environment.disabled,
            "managed_only": self.environment.managed_only,
            "rewriters": names(&self.environment.rewriters),
            "unreadable": self.environment.unreadable.iter().map(Unreadable::to_string).collect::<Vec<_>>(),
            "sandboxed": self.environment.sandboxed,
            "proofs": proofs,
            "seen_at": self.seen.as_ref().map(|seen| seen.seen_at),
            "alarms": self.alarms.iter().map(|alarm| json!({
                "session": alarm.session, "reason": alarm.reason, "raised_at": alarm.raised_at,
            })).collect::<Vec<_>>(),
        })
    }

    fn show(&self, app: &App) {
        let ui = app.ui;
        let live = if self.is_live() {
            ui.paint(Tone::Good, "installed")
        } else {
            ui.paint(Tone::Bad, "not installed, or not called")
        };
        ui.line(format_args!(
            "{}: {live}",
            ui.paint(Tone::Strong, self.adapter.title())
        ));
        for report in &self.scopes {
            ui.line(format_args!("  {:8} {}", report.scope, report.describe()));
        }
        ui.line(format_args!(
            "  mode     {}, unless a pin says otherwise",
            self.mode
        ));
        if let Some(policy) = &self.policy {
            ui.line(format_args!("  policy   {policy}, whatever a project says"));
        }
        ui.line(format_args!("  proven   {}", self.describe_proofs()));
        let seen = self.seen.as_ref().map_or_else(
            || "no session yet".to_owned(),
            |seen| {
                format!(
                    "a session began at {}",
                    boxery_record::time_text(seen.seen_at)
                )
            },
        );
        ui.line(format_args!("  seen     {seen}"));
        for alarm in &self.alarms {
            let session = alarm
                .session
                .as_ref()
                .map_or("of no id", |id| id.0.as_str());
            ui.line(format_args!(
                "  {} session {session} is in guard: {}; `boxery hook prove {}` ends that",
                ui.paint(Tone::Bad, "alarm   "),
                alarm.reason,
                self.adapter.name()
            ));
        }
        let environment = &self.environment;
        for settings in environment.disabled.iter().chain(&environment.managed_only) {
            ui.line(format_args!(
                "  {} {settings}",
                ui.paint(Tone::Bad, "off     ")
            ));
        }
        for hook in &environment.rewriters {
            ui.line(format_args!(
                "  {} {hook}",
                ui.paint(Tone::Care, "rewriter")
            ));
        }
        for settings in &environment.unreadable {
            ui.line(format_args!(
                "  {} {settings}",
                ui.paint(Tone::Bad, "broken  ")
            ));
        }
    }

    fn describe_proofs(&self) -> String {
        let current: Vec<String> = self
            .proofs
            .iter()
            .filter(|(_, current)| *current)
            .map(|(proof, _)| format!("{} ({})", proof.permission_mode, proof.agent_version))
            .collect();
        if current.is_empty() {
            let answer = if self.proofs.is_empty() {
                "no; redirect stays guard"
            } else {
                "no longer, the agent was updated; redirect stays guard"
            };
            return answer.to_owned();
        }
        current.join(", ")
    }
}

impl ScopeReport {
    fn describe(&self) -> String {
        let path = &self.path;
        match &self.state {
            State::Absent => format!("not in {path}"),
            State::Unreadable(problem) => format!("can't be read: {path}: {problem}"),
            State::Installed { works: true, .. } => format!("in {path}"),
            State::Installed {
                binary,
                works: false,
            } => {
                format!("in {path}, but {binary} can't be started; reinstall")
            }
            State::Partial { missing, .. } => {
                format!("in {path}, but not for {}; reinstall", missing.join(", "))
            }
        }
    }

    fn to_json(&self) -> Value {
        let (installed, binary, works, missing, problem) = match &self.state {
            State::Absent => (false, None, false, None, None),
            State::Unreadable(problem) => (false, None, false, None, Some(problem)),
            State::Installed { binary, works } => (true, Some(binary), *works, None, None),
            State::Partial { binary, missing } => (true, Some(binary), false, Some(missing), None),
        };
        json!({
            "scope": self.scope.as_str(), "path": self.path, "installed": installed,
            "binary": binary, "works": works, "missing": missing, "problem": problem,
        })
    }
}

fn state(adapter: &dyn Adapter, path: &Utf8Path, environment: &HookEnvironment) -> State {
    let here = |place: &str| place == path.as_str();
    if let Some(broken) = environment.unreadable.iter().find(|u| here(&u.place)) {
        return State::Unreadable(broken.problem.clone());
    }
    let own: Vec<&FoundHook> = environment
        .own
        .iter()
        .filter(|hook| here(&hook.place))
        .collect();
    let binary = own
        .first()
        .and_then(|hook| parse_own(&hook.command, adapter.name()))
        .map(|(binary, _)| binary);
    let Some(binary) = binary else {
        return State::Absent;
    };
    let (events, _) = adapter.hook_events();
    let missing: Vec<String> = events
        .iter()
        .filter(|event| !own.iter().any(|hook| hook.event == **event))
        .map(|event| (*event).to_owned())
        .collect();
    if missing.is_empty() {
        let works = is_executable(Utf8Path::new(&binary));
        State::Installed { binary, works }
    } else {
        State::Partial { binary, missing }
    }
}

fn is_executable(path: &Utf8Path) -> bool {
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
