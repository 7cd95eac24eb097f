//! `boxery policy show`.

use boxery_pin::VmName;
use boxery_policy::Origin;
use boxery_policy::registries::Registries;
use serde_json::{Value, json};

use super::Whose;
use crate::app::App;
use crate::config::Config;
use crate::error::Failure;
use crate::exit::Exit;
use crate::policy::{InForce, Part, Standing, accept_line, accepts};
use crate::registries;

/// Print the policy that holds here, with everything that it extends
///
/// On standard output the policy as a file would say it; on standard error where each
/// value comes from. While a project's policy isn't trusted, what would hold without
/// it is printed behind it: both hold.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    whose: Whose,
    /// Ask this VM too what `registries` stands for there
    #[arg(long, value_name = "NAME")]
    vm: Option<VmName>,
    /// Print one JSON object with origins, trust and warnings instead
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let (config, in_force) = args.whose.find(app)?;
    let asked = match &args.vm {
        Some(name) => {
            let vm = config.vm(name)?;
            Some((name, registries::find(app, name, vm, &in_force)?))
        }
        None => None,
    };
    if args.json {
        let mut json = to_json(&config, &in_force);
        if let Some((_, found)) = &asked {
            json["registries"] = registries_json(found);
        }
        app.ui.line(json);
        return Ok(Exit::Done);
    }
    for part in &in_force.parts {
        app.ui.say(heading(part));
        for line in part.resolved.content.origins() {
            app.ui.say(format_args!("  {line}"));
        }
        for key in part.resolved.content.without_meaning() {
            app.ui
                .say(format_args!("  {key} has no meaning on a Linux VM"));
        }
        app.ui.line(serde_json::to_string_pretty(
            &part.resolved.content.to_json(),
        )?);
    }
    for line in enforcement(app, &config, &in_force) {
        app.ui.say(line);
    }
    if let Some((name, found)) = &asked {
        app.ui.say(format_args!("`registries` on {name}:"));
        for host in &found.hosts {
            app.ui.say(format_args!("  {}: {}", host.host, host.source));
        }
        for unknown in &found.unknown {
            app.ui.say(format_args!(
                "careful: {} To settle it: {}",
                unknown.reason, unknown.remedy
            ));
        }
    }
    for warning in in_force.warnings() {
        app.ui.say(format_args!("careful: {warning}"));
    }
    Ok(Exit::Done)
}

fn registries_json(found: &Registries) -> Value {
    let hosts: Vec<Value> = found
        .hosts
        .iter()
        .map(|host| json!({ "host": host.host, "source": host.source }))
        .collect();
    let unknown: Vec<Value> = found
        .unknown
        .iter()
        .map(|unknown| json!({ "tool": unknown.tool, "reason": unknown.reason, "remedy": unknown.remedy }))
        .collect();
    json!({ "hosts": hosts, "unknown": unknown })
}

/// What a policy is, in one line.
pub(super) fn heading(part: &Part) -> String {
    let name = part.resolved.origin.name();
    match (&part.resolved.origin, part.standing) {
        (Origin::Nobody, _) => "no policy file: only the default rules hold".to_owned(),
        (Origin::Hook(_), _) => format!("{name}, which the hook is held to"),
        (Origin::User(_), _) => format!("{name}, your own"),
        (Origin::Project(_), Standing::Untrusted) => format!(
            "{name}, not trusted yet: it can only add to what holds without it (`boxery policy trust`)"
        ),
        (Origin::Project(_), Standing::Trusted | Standing::Own) => {
            format!("{name}, which you trust")
        }
    }
}

/// The sections that no VM enforces yet, and what that means for runs.
pub(super) fn enforcement(app: &App, config: &Config, in_force: &InForce) -> Vec<String> {
    let mut lines = Vec::new();
    let mut refused = Vec::new();
    for (section, _) in in_force.sections() {
        let name = section.name();
        if accepts(&config.accept, section) {
            lines.push(format!("{name}: not enforced on VMs yet, which you accept"));
        } else {
            lines.push(format!(
                "{name}: not enforced on VMs yet, so that runs are refused"
            ));
            refused.push(section);
        }
    }
    if !refused.is_empty() {
        lines.push(format!(
            "hint: accept that with `{}` in {}",
            accept_line(&refused),
            app.config_path()
        ));
    }
    lines
}

fn to_json(config: &Config, in_force: &InForce) -> Value {
    let parts: Vec<Value> = in_force
        .parts
        .iter()
        .map(|part| {
            let resolved = &part.resolved;
            json!({
                "name": resolved.origin.name(),
                "file": match &resolved.origin {
                    Origin::Project(path) | Origin::User(path) => Some(path.as_str()),
                    Origin::Hook(name) => Some(name.as_str()).filter(|name| name.starts_with('/')),
                    Origin::Nobody => None,
                },
                "standing": match part.standing {
                    Standing::Own => "own",
                    Standing::Trusted => "trusted",
                    Standing::Untrusted => "untrusted",
                },
                "chain": resolved.chain,
                "policy": resolved.content.to_json(),
                "origins": resolved.content.origins(),
                "without_meaning": resolved.content.without_meaning(),
            })
        })
        .collect();
    let sections: Vec<Value> = in_force
        .sections()
        .into_iter()
        .map(|(section, _)| {
            json!({
                "section": section.name(),
                "state": "unavailable",
                "accepted": accepts(&config.accept, section),
            })
        })
        .collect();
    json!({
        "policies": parts,
        "digest": in_force.policy.digest(),
        "sections": sections,
        "warnings": in_force.warnings(),
    })
}
