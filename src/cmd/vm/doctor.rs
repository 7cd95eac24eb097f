//! `boxery vm doctor`.

use serde_json::{Value, json};

use boxery_pin::VmName;
use boxery_remote::doctor::{self, Check, Making, Outcome, Step, check_inside, check_way};
use boxery_remote::{Target, Way};

use crate::app::App;
use crate::config::{PathsRule, Vm};
use crate::error::Failure;
use crate::exit::Exit;
use crate::place::Here;
use crate::ui::Tone;
use crate::{env, reach};

/// Check each step of the way to a VM
///
/// Configuration, name, TCP, host key, login, shell, folder and clock, one after the
/// other; the first that fails is named, with what to do about it.
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
            let outcome = Outcome::Doubtful(
                "it isn't the machine that was added under this name; was it rebuilt?".to_owned(),
            );
            let step = Step::Configuration;
            checks.push(Check { step, outcome });
        }
    }
    Ok(checks)
}

/// Where commands see the copy of the project here, or of one in the home folder.
async fn paths(app: &App, name: &VmName, vm: &Vm, way: &Way) -> Result<Outcome, Failure> {
    let here = Here::look(app)?;
    let project = here.project_root(false).ok().flatten();
    let folder = project.unwrap_or_else(|| app.env.home.clone());
    let making = doctor::making(way, folder.as_str())
        .await
        .map_err(|error| reach::failure(name, error))?;
    let real = match making {
        Making::Own => "the VM's user can make it",
        Making::Sudo => "`sudo -n` can make it",
        Making::No => "the VM's user can't make it, and has no `sudo -n`",
    };
    Ok(match vm.paths {
        PathsRule::Real if making == Making::No => {
            Outcome::Doubtful(format!("real: `{folder}` is wanted there, and {real}"))
        }
        PathsRule::Real => Outcome::Well(format!("real: copies lie at the same path; {real}")),
        PathsRule::Namespace => {
            Outcome::Well("namespace: copies are seen at the same path".to_owned())
        }
        rule @ (PathsRule::Auto | PathsRule::Mapped) => Outcome::Well(format!(
            "{}: copies lie in {}; of the same path, {real}",
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
