//! `boxery vm doctor`.

use serde_json::{Value, json};

use boxery_pin::VmName;
use boxery_remote::doctor::{self, Check, Making, Outcome, Step, check_inside, check_way};
use boxery_remote::{RemoteError, Target, Way};

use crate::app::App;
use crate::config::{PathsRule, Vm};
use crate::error::Failure;
use crate::exit::Exit;
use crate::place::Here;
use crate::ui::Tone;
use crate::{env, reach};

/// Check each step of the way to a VM
///
/// Configuration, name, TCP, host key, login, shell, folder, process tree and clock, one
/// after the other; the first that fails is named, with what to do about it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM
    name: VmName,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let config = app.config()?;
    let vm = config.vm(&args.name)?;
    let checks = reach::block_on(check(app, &args.name, vm))??;
    let well = !checks.iter().any(Check::failed);
    if args.json {
        let steps: Vec<Value> = checks.iter().map(|check| as_json(check, args)).collect();
        app.ui
            .line(json!({ "name": args.name, "well": well, "steps": steps }));
    } else {
        for check in &checks {
            show(app, check, args);
        }
    }
    Ok(if well { Exit::Done } else { Exit::No })
}

async fn check(app: &App, name: &VmName, vm: &Vm) -> Result<Vec<Check>, Failure> {
    let (mut checks, way) = if vm.is_embedded() {
        match reach::open(app, name, vm).await {
            Ok(way) => {
                let outcome = Outcome::Well("this machine".to_owned());
                let step = Step::Configuration;
                let helper = boxery_remote::doctor::check_helper(&way).await;
                (vec![Check { step, outcome }, helper], Some(way))
            }
            Err(failure) => return Err(failure.exit(Exit::No)),
        }
    } else {
        let target: Target = vm
            .target
            .parse()
            .map_err(|error| reach::failure(name, error))?;
        let ui = app.ui;
        let ask = move |prompt: &str| ui.secret(prompt);
        let ask: boxery_remote::Ask<'_> = if ui.can_ask() { Some(&ask) } else { None };
        check_way(&target, vm.pipe, &reach::laptop(app), ask).await
    };
    if let Some(way) = way {
        let (inside, probe) = check_inside(&way, vm.dir.as_str(), env::now()).await;
        checks.extend(inside);
        if probe.is_some() {
            let outcome = paths(app, name, vm, &way).await?;
            let step = Step::Paths;
            checks.push(Check { step, outcome });
        }
        if let (Some(probe), Some(known)) = (probe, &vm.machine_id)
            && probe.machine_id != *known
        {
            let outcome = Outcome::Failed(RemoteError::OtherMachine {
                known: known.clone(),
                found: probe.machine_id,
            });
            let step = Step::Machine;
            checks.push(Check { step, outcome });
        }
    }
    Ok(checks)
}

/// Where commands see the copy of the project here, or of one in the home folder.
async fn paths(app: &App, name: &VmName, vm: &Vm, way: &Way) -> Result<Outcome, Failure> {
    let here = Here::look(app)?;
    let pinned = here.pin.as_ref().is_some_and(|pin| pin.vm == *name);
    let project = here.project_root(pinned).ok().flatten();
    let folder = project.unwrap_or_else(|| app.env.home.clone());
    let making = doctor::making(way, folder.as_str())
        .await
        .map_err(|error| reach::failure(name, error))?;
    let real = match making {
        Making::Own => "the VM's user can make it",
        Making::Sudo => "`sudo -n` can make it",
        Making::No => "the VM's user can't make it, and has no `sudo -n`",
    };
    // Nothing is left behind: where the user could make the folder, it isn't tried.
    let at = match (vm.paths, making) {
        (PathsRule::Namespace, _) => Some(folder.clone()),
        (_, Making::Own) => None,
        (_, Making::Sudo | Making::No) => Some(folder.join(".boxery-probe")),
    };
    let tried = match at {
        Some(at) => doctor::check_view(way, at.as_str(), vm.dir.as_str())
            .await
            .map_err(|error| reach::failure(name, error))?,
        None => Ok(()),
    };
    let seen = match (&tried, making) {
        (Err(why), _) => format!("in a namespace it can't be seen there: {why}"),
        (Ok(()), Making::Own) => "no namespace is needed".to_owned(),
        (Ok(()), Making::Sudo | Making::No) => "in a namespace it can be seen there".to_owned(),
    };
    Ok(match vm.paths {
        PathsRule::Real if making == Making::No => Outcome::Doubtful(format!(
            "real: `{folder}` is wanted there, and {real}; {seen}"
        )),
        PathsRule::Real => Outcome::Well(format!("real: copies lie at the same path; {real}")),
        PathsRule::Namespace if tried.is_err() => Outcome::Doubtful(format!("namespace: {seen}")),
        PathsRule::Namespace => Outcome::Well(format!(
            "namespace: copies lie in {} and are seen at the same path, without `sudo`; {real}",
            vm.dir
        )),
        rule @ (PathsRule::Auto | PathsRule::Mapped) => Outcome::Well(format!(
            "{}: copies lie in {}; of the same path, {real}; {seen}",
            rule.as_str(),
            vm.dir
        )),
    })
}

fn show(app: &App, check: &Check, args: &Args) {
    let (tone, mark, text) = match &check.outcome {
        Outcome::Well(found) => (Tone::Good, "ok  ", found.clone()),
        Outcome::Doubtful(found) => (Tone::Care, "note", found.clone()),
        Outcome::Failed(error) => (Tone::Bad, "FAIL", error.to_string()),
        Outcome::Skipped(why) => (Tone::Faint, "-   ", (*why).to_owned()),
    };
    let mark = app.ui.paint(tone, mark);
    let step = check.step.name();
    app.ui.line(format_args!("{mark}  {step:<14} {text}"));
    if let Outcome::Failed(error) = &check.outcome
        && let Some(hint) = error.hint(args.name.as_str())
    {
        app.ui.line(format_args!("      {:<14} hint: {hint}", ""));
    }
}

fn as_json(check: &Check, args: &Args) -> Value {
    let (outcome, text, hint) = match &check.outcome {
        Outcome::Well(found) => ("well", found.clone(), None),
        Outcome::Doubtful(found) => ("doubtful", found.clone(), None),
        Outcome::Failed(error) => ("failed", error.to_string(), error.hint(args.name.as_str())),
        Outcome::Skipped(why) => ("skipped", (*why).to_owned(), None),
    };
    json!({ "step": check.step, "outcome": outcome, "text": text, "hint": hint })
}
