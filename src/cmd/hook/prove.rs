//! `boxery hook prove AGENT`.

use boxery_pin::Mode;
use boxery_router::{Alarms, Proofs};
use camino::Utf8PathBuf;
use serde_json::json;

use crate::app::App;
use crate::env;
use crate::error::Failure;
use crate::exit::Exit;
use crate::prove::{PERMISSION_MODES, ProofReport, find_candidate, prove};
use crate::ui::{Tone, Ui};

/// Prove that an agent, as it is installed here, does what boxery's hook says
///
/// Starts the agent without a user and without an account, in folders of its own,
/// against a model that follows a script, and looks from outside at what comes of
/// its calls: denied and told why in guard, run in a VM on this machine in redirect.
/// Redirect is live only for what is proven. Nothing of yours is read or changed but
/// boxery's own list of proofs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The agent
    #[arg(value_name = "AGENT", default_value = CLAUDE_CODE, value_parser = [CLAUDE_CODE])]
    agent: String,
    /// The agent's program; by default the one on PATH
    #[arg(long, value_name = "FILE")]
    executable: Option<Utf8PathBuf>,
    /// A permission mode of the agent to prove; can be given several times
    #[arg(long = "permission-mode", value_name = "MODE", default_values = PERMISSION_MODES)]
    permission_modes: Vec<String>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

const CLAUDE_CODE: &str = "claude-code";

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let modes: Vec<&str> = args.permission_modes.iter().map(String::as_str).collect();
    let candidate = find_candidate(&args.agent, args.executable.as_deref())?;
    let report = prove(&env::own_binary()?, &candidate, &modes)?;
    report.store(&Proofs::new(app.env.state_path("proofs")), env::now())?;
    app.record(&report.event(env::now()));
    if report.holds() && !env::inside_agent() {
        end_alarms(app, &args.agent)?;
    }
    if args.json {
        app.ui.line(to_json(&report));
    } else {
        show(app.ui, &report);
    }
    Ok(if report.holds() { Exit::Done } else { Exit::No })
}

/// A fresh proof, asked for by a person, ends what an earlier escape began: sessions
/// that dropped to guard may redirect again.
fn end_alarms(app: &App, agent: &str) -> Result<(), Failure> {
    let alarms = Alarms::new(app.env.state_path("alarms"));
    for alarm in alarms.list()?.into_iter().flatten() {
        if alarm.agent.0 == agent {
            alarms.clear(&alarm.agent, alarm.session.as_ref())?;
            app.ui.say(format_args!("ended an alarm: {}", alarm.reason));
        }
    }
    Ok(())
}

/// The report for a person.
pub(crate) fn show(ui: Ui, report: &ProofReport) {
    ui.line(format_args!(
        "{} {}, {}",
        ui.paint(Tone::Strong, &report.agent),
        report.version,
        report.executable.path
    ));
    let mut shown: Vec<(&str, Mode)> = Vec::new();
    for check in &report.checks {
        let part = (check.permission_mode.as_str(), check.mode);
        if shown.contains(&part) {
            continue;
        }
        shown.push(part);
        let here = || {
            report
                .checks
                .iter()
                .filter(|c| (c.permission_mode.as_str(), c.mode) == part)
        };
        let calls: Vec<&str> = here()
            .filter(|c| c.problem.is_none())
            .map(|c| c.call)
            .collect();
        let title = format!("  {}, {}:", check.permission_mode, check.mode);
        if !calls.is_empty() {
            let what = match check.mode {
                Mode::Guard => "denied and told why",
                Mode::Redirect => "ran in the VM and not here",
            };
            ui.line(format_args!(
                "{title} {} {}",
                ui.paint(Tone::Good, what),
                calls.join(", ")
            ));
        }
        for check in here() {
            if let Some(problem) = &check.problem {
                ui.line(format_args!(
                    "{title} {} {}: {problem}",
                    ui.paint(Tone::Bad, "FAILED"),
                    check.call
                ));
            }
        }
    }
    let proven = report.proven();
    let seconds = report.seconds;
    if proven.is_empty() {
        ui.line(format_args!(
            "{} ({seconds:.1} s); redirect stays guard",
            ui.paint(Tone::Bad, "not proven")
        ));
    } else {
        ui.line(format_args!(
            "{} for {} ({seconds:.1} s)",
            ui.paint(Tone::Good, "proven"),
            proven.join(", ")
        ));
    }
}

fn to_json(report: &ProofReport) -> serde_json::Value {
    let checks: Vec<_> = report
        .checks
        .iter()
        .map(|check| {
            json!({
                "permission_mode": check.permission_mode,
                "mode": check.mode,
                "call": check.call,
                "ok": check.problem.is_none(),
                "problem": check.problem,
            })
        })
        .collect();
    json!({
        "agent": report.agent,
        "version": report.version,
        "executable": report.executable.path,
        "proven": report.proven(),
        "checks": checks,
        "seconds": report.seconds,
    })
}
