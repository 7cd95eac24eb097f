//! `boxery pin`.

use serde_json::json;

use boxery_agents::ADAPTERS;
use boxery_pin::{
    DriftRule, Mode, PathMap, PinFile, PinKey, PinOrigin, Project, Resolved, SessionId, StoredPin,
    VmName,
};
use boxery_record::{Event, Kind};

use crate::app::App;
use crate::config::Config;
use crate::copy;
use crate::env;
use crate::error::Failure;
use crate::exit::Exit;
use crate::inside::Inside;
use crate::place::{self, Here, pin_failure};
use crate::policy::{Caller, InForce};
use crate::prove::ensure_proven;

/// Pin this project or session to a VM, or show what is pinned
///
/// In a terminal of yours it pins the project that the current folder belongs to,
/// with all worktrees of its repository; in an agent's shell it pins that session.
/// From then on the agent's shell calls are denied (guard) or run in the VM
/// (redirect). Without NAME it shows the pin that applies here; the exit status is
/// 1 when none does.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM
    name: Option<VmName>,
    /// Deny the agent's shell calls and name the VM's tools
    #[arg(long, conflicts_with = "redirect")]
    guard: bool,
    /// Run the agent's shell calls in the VM
    #[arg(long)]
    redirect: bool,
    /// What to do when project and copy differ: warn, sync (before a command, and after
    /// it), deny or off; in guard it is warn, in redirect sync
    #[arg(long, value_name = "RULE", value_parser = parse_drift)]
    drift: Option<DriftRule>,
    /// Pin this session of Claude Code instead
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Say why this pin applies and no other
    #[arg(long)]
    explain: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    fn mode(&self) -> Option<Mode> {
        match (self.guard, self.redirect) {
            (_, true) => Some(Mode::Redirect),
            (true, false) => Some(Mode::Guard),
            (false, false) => None,
        }
    }

    fn changes(&self) -> bool {
        self.name.is_some() || self.mode().is_some() || self.drift.is_some()
    }
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    if args.changes() {
        let pin = change(args, app)?;
        let mode = pin.mode.or(app.config()?.mode);
        tell(app, &pin);
        if mode == Some(Mode::Redirect) {
            ensure_proven(app);
        }
    } else if args.session.is_some() {
        return Err(Failure::usage("no VM is named")
            .hint("`boxery pin NAME --session ID`, or `boxery pin` to see what is pinned here"));
    }
    show(args, app)
}

/// Write the pin that was asked for.
fn change(args: &Args, app: &App) -> Result<PinFile, Failure> {
    let inside = Inside::look();
    let here = Here::look(app);
    let store = app.pins();
    let (key, vm) = match &args.name {
        Some(name) => {
            app.config()?.vm(name)?;
            (key(args, inside.as_ref())?, name.clone())
        }
        None => named_by_pin(args, &here)?,
    };
    // A damaged one is replaced.
    let old = store.read(&key).ok().flatten().map(|old| old.file);
    if inside.is_some() && (!matches!(&here, Ok(Here { pin: None, .. })) || old.is_some()) {
        return Err(
            Failure::from("a pin holds here, and an agent can't change it".to_owned())
                .hint("the user can, in a terminal of their own")
                .exit(Exit::No),
        );
    }
    if old.as_ref().is_some_and(|old| old.vm != vm) && !app.ui.has_terminal() {
        return Err(Failure::from(format!(
            "{key} is pinned to another VM, and nobody is at a terminal"
        ))
        .hint("run this in a terminal")
        .exit(Exit::No));
    }
    let now = env::now();
    let folder = env::current_folder()?;
    let reason = match &inside {
        Some(inside) => format!("asked for in {folder} by {}", inside.agent),
        None => format!("asked for in {folder}"),
    };
    let same_vm = old.filter(|old| old.vm == vm);
    let project = match (&key, &same_vm) {
        // Its mode or drift rule changes from wherever the user is.
        (_, Some(old)) if args.name.is_none() || args.session.is_some() => Project {
            root: old.project.clone().unwrap_or_default(),
            git_common: old.git_common.clone(),
        },
        // The user's folder says nothing of where a named session works.
        _ if args.session.is_some() => Project {
            root: camino::Utf8PathBuf::new(),
            git_common: None,
        },
        _ => Project::of(&folder)?,
    };
    let pin = PinFile {
        mode: args.mode().or(same_vm.as_ref().and_then(|old| old.mode)),
        drift: args.drift.or(same_vm.as_ref().and_then(|old| old.drift)),
        project: Some(project.root).filter(|root| !root.as_str().is_empty()),
        git_common: project.git_common,
        process: match &key {
            PinKey::Session { .. } if args.session.is_none() => {
                inside.and_then(|inside| inside.process)
            }
            PinKey::Session { .. } | PinKey::Process { .. } | PinKey::Project { .. } => None,
        }
        .or(same_vm.and_then(|old| old.process)),
        ..PinFile::new(key, vm, "boxery pin", &reason, now)
    };
    store.write(&pin).map_err(pin_failure)?;
    let mut event = Event::new(now, Kind::Pin);
    event.vm = Some(pin.vm.to_string());
    event.mode = pin.mode.map(|mode| mode.to_string());
    event.detail = Some(pin.key.to_string());
    record(app, event, &pin.key);
    Ok(pin)
}

/// What a `boxery pin NAME` here is about.
fn key(args: &Args, inside: Option<&Inside>) -> Result<PinKey, Failure> {
    if let Some(session) = &args.session {
        return Ok(session_key(session));
    }
    let claude = inside.filter(|inside| {
        ADAPTERS
            .iter()
            .any(|adapter| adapter.name() == inside.agent.0)
    });
    if let Some(inside) = claude {
        let agent = inside.agent.clone();
        if let Some(session) = inside.session.clone() {
            return Ok(PinKey::Session { agent, session });
        }
        if let Some(process) = inside.process {
            return Ok(PinKey::Process { agent, process });
        }
    }
    let project = Project::of(&env::current_folder()?)?;
    Ok(PinKey::Project { root: project.root })
}

/// The key of a session that the user names.
pub(crate) fn session_key(session: &str) -> PinKey {
    PinKey::Session {
        agent: boxery_pin::AgentId("claude-code".to_owned()),
        session: SessionId(session.to_owned()),
    }
}

/// Without NAME, the pin that applies here changes its mode or drift rule.
fn named_by_pin(args: &Args, here: &Result<Here, Failure>) -> Result<(PinKey, VmName), Failure> {
    let nothing = || {
        Failure::usage("no VM is named, and nothing is pinned here")
            .hint("name one: `boxery pin NAME`; `boxery vm list` lists them")
    };
    if args.session.is_some() {
        return Err(nothing());
    }
    let pin = here.as_ref().ok().and_then(|here| here.pin.as_ref());
    match pin.map(|pin| (&pin.origin, &pin.vm)) {
        Some((PinOrigin::File(key), vm)) => Ok((key.clone(), vm.clone())),
        Some((PinOrigin::Environment, _)) => Err(Failure::usage(
            "BOXERY_VM is set, and has no mode of its own",
        )
        .hint("set `mode` in boxery's configuration, or pin the project: `boxery pin NAME`")),
        None => Err(nothing()),
    }
}

/// Say what was pinned, and how to undo it.
fn tell(app: &App, pin: &PinFile) {
    let undo = match &pin.key {
        PinKey::Session { session, .. } => {
            format!("`boxery unpin --session {session}` in a terminal of your own")
        }
        PinKey::Process { .. } => "it ends with the agent's process".to_owned(),
        PinKey::Project { .. } => "`boxery unpin` here, in a terminal of your own".to_owned(),
    };
    app.ui
        .say(format_args!("pinned {} to VM {}", pin.key, pin.vm));
    app.ui.say(format_args!("undo: {undo}"));
    if let Some(map) = never_sent(app, pin) {
        // A script may pin before its VM is there.
        let sent = app
            .ui
            .can_ask()
            .then(|| copy::first_copy(app, &pin.vm, &map));
        if let Some(Err(failure)) = &sent {
            app.ui
                .say(format_args!("not sent yet: {}", failure.one_line()));
        }
        if !matches!(sent, Some(Ok(()))) {
            app.ui.say(format_args!(
                "next: `boxery sync {}` sends the project there",
                pin.vm
            ));
        }
    }
    if env::boxery_vm().is_set() {
        app.ui
            .say("BOXERY_VM is set in this shell and goes before every pin");
    }
}

/// The project of a pin, if it has no copy that this laptop knows of.
fn never_sent(app: &App, pin: &PinFile) -> Option<PathMap> {
    let PinKey::Project { root } = &pin.key else {
        return None;
    };
    let map = app
        .config()
        .and_then(|config| Ok(place::path_map(app, config.vm(&pin.vm)?, root)?));
    map.ok().filter(|map| !copy::is_known(app, &pin.vm, map))
}

/// Show the pin that applies here.
fn show(args: &Args, app: &App) -> Result<Exit, Failure> {
    let cannot_say = |failure: Failure| failure.exit(Exit::CannotSay);
    let session = args.session.as_deref();
    let here = Here::look_as(app, session);
    if args.explain && !args.json {
        for step in place::explain(app, session)? {
            app.ui.line(step);
        }
    }
    let here = here.map_err(cannot_say)?;
    let Some(pin) = &here.pin else {
        if args.json {
            app.ui
                .line(json!({ "pinned": false, "steps": place::explain(app, session)? }));
        } else {
            app.ui.say("nothing is pinned here");
        }
        return Ok(Exit::No);
    };
    let config = app.config().map_err(cannot_say)?;
    let vm = config.vm(&pin.vm).map_err(cannot_say)?;
    let mode = pin.mode.or(config.mode).unwrap_or(Mode::Guard);
    let place = here
        .project_root(true)
        .and_then(|root| match root {
            Some(root) => place::path_map(app, vm, &root).map(Some),
            None => Ok(None),
        })
        .map_err(|error| error.to_string());
    let policy = policy(app, &config, &here);
    let policy_files = policy
        .as_ref()
        .map(|in_force| in_force.files().collect::<Vec<_>>());
    if args.json {
        let map = place.as_ref().ok().and_then(Option::as_ref);
        app.ui.line(json!({
            "pinned": true,
            "vm": pin.vm,
            "mode": mode,
            "drift": pin.drift.or(config.drift),
            "project": map.map(|map| &map.project),
            "copy": map.map(|map| &map.copy),
            "problem": place.as_ref().err(),
            "policy": policy_files.ok(),
            "by": pin.origin.to_string(),
            "pin": file_of(app, pin).map(|stored| json!({ "path": stored.path, "content": stored.file })),
            "steps": pin.steps,
        }));
        return Ok(Exit::Done);
    }
    let machine = if vm.is_embedded() {
        " (this machine)"
    } else {
        ""
    };
    let path = match &place {
        Ok(Some(map)) if map.copy.as_str() == map.project.as_str() => {
            format!("{}, the same there", map.project)
        }
        Ok(Some(map)) => format!("{} -> {}", map.project, map.copy),
        Ok(None) => "no project".to_owned(),
        Err(problem) => problem.clone(),
    };
    for (label, value) in [
        ("VM", format!("{}{machine}, by {}", pin.vm, pin.origin)),
        ("mode", mode.to_string()),
        ("path", path),
        (
            "policy",
            policy.map_or_else(|failure| failure.one_line(), |in_force| in_force.summary()),
        ),
    ] {
        app.ui.line(format_args!("{label:<7} {value}"));
    }
    Ok(Exit::Done)
}

/// The policy that holds here for a session of the agent that the pin names, else for
/// the user's own runs.
fn policy(app: &App, config: &Config, here: &Here) -> Result<InForce, Failure> {
    let pin = here.pin.as_ref();
    let agent = match pin.map(|pin| &pin.origin) {
        Some(PinOrigin::File(PinKey::Session { agent, .. } | PinKey::Process { agent, .. })) => {
            Some(agent)
        }
        Some(PinOrigin::File(PinKey::Project { .. }) | PinOrigin::Environment) | None => None,
    };
    let project = pin.and_then(place::pinned_project);
    InForce::find(
        app,
        config,
        Caller {
            agent,
            folder: &here.folder,
            project: project.as_deref(),
        },
    )
}

/// The file that a pin came from.
fn file_of(app: &App, pin: &Resolved) -> Option<StoredPin> {
    match &pin.origin {
        PinOrigin::File(key) => app.pins().read(key).ok().flatten(),
        PinOrigin::Environment => None,
    }
}

/// Put a change of a pin on record; a failure is told and changes nothing.
pub(crate) fn record(app: &App, mut event: Event, key: &PinKey) {
    match key {
        PinKey::Session { agent, session } => {
            event.agent = Some(agent.to_string());
            event.session = Some(session.to_string());
        }
        PinKey::Process { agent, .. } => event.agent = Some(agent.to_string()),
        PinKey::Project { .. } => {}
    }
    app.record(&event);
}

fn parse_drift(text: &str) -> Result<DriftRule, String> {
    match text {
        "warn" => Ok(DriftRule::Warn),
        "sync" => Ok(DriftRule::Sync),
        "deny" => Ok(DriftRule::Deny),
        "off" => Ok(DriftRule::Off),
        _ => Err("give warn, sync, deny or off".to_owned()),
    }
}
