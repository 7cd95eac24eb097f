//! `boxery policy explain`.

use boxery_policy::{FILE_NAMES, Key, Meaning, Origin, RULES, Shape};
use serde_json::Value;

use super::Whose;
use super::show::{enforcement, heading};
use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;
use crate::place::Here;
use crate::policy::{InForce, places};

/// Say which policy holds here and why, or what a key means
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A key, such as `command.deny`, or a section; without it, the whole policy
    #[arg(value_name = "KEY")]
    key: Option<String>,
    #[command(flatten)]
    whose: Whose,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let Some(name) = &args.key else {
        return whole(args, app);
    };
    let lower = name.to_ascii_lowercase();
    let keys: Vec<Key> = Key::ALL
        .iter()
        .copied()
        .filter(|key| {
            let path = key.path().to_ascii_lowercase();
            path == lower || path.starts_with(&format!("{lower}."))
        })
        .collect();
    if keys.is_empty() {
        let near = Key::ALL
            .iter()
            .map(|key| {
                (
                    strsim::damerau_levenshtein(&key.path().to_ascii_lowercase(), &lower),
                    key.path(),
                )
            })
            .min()
            .filter(|(distance, _)| *distance <= 3);
        let hint = near.map_or_else(
            || "`boxery policy explain` without a key names the sections".to_owned(),
            |(_, near)| format!("did you mean `{near}`?"),
        );
        return Err(Failure::usage(format!("`{name}` is no key of a policy")).hint(hint));
    }
    let (_, in_force) = args.whose.find(app)?;
    for key in keys {
        app.ui.line(format_args!(
            "{}: {} ({})",
            key.path(),
            key.about(),
            shape(key.shape())
        ));
        if let Some(more) = meaning(key.meaning()) {
            app.ui.line(format_args!("  {more}"));
        }
        let start = key.path();
        for part in &in_force.parts {
            let says = part.resolved.content.origins().into_iter();
            for line in says.filter(|line| belongs(line, start)) {
                app.ui.line(format_args!("  {line}"));
            }
        }
    }
    Ok(Exit::Done)
}

/// Whether a line of origins is about the key at `path`.
fn belongs(line: &str, path: &str) -> bool {
    line.strip_prefix(path)
        .is_some_and(|rest| rest.starts_with([':', ' ']))
}

fn shape(shape: Shape) -> String {
    match shape {
        Shape::Text => "text; the nearer file's wins".to_owned(),
        Shape::Word(words) => format!("one of {}; the nearer file's wins", words.join(", ")),
        Shape::Switch => "true or false; true in any file is true".to_owned(),
        Shape::OpenSwitch => "true or false; the nearer file's wins".to_owned(),
        Shape::Number => "a whole number; the nearer file's wins".to_owned(),
        Shape::Texts => "a list; the entries of all files".to_owned(),
        Shape::Numbers => "a list of whole numbers; the entries of all files".to_owned(),
    }
}

fn meaning(meaning: Meaning) -> Option<String> {
    match meaning {
        Meaning::Command => Some("judged on the text of each command".to_owned()),
        Meaning::Section(section) => Some(format!(
            "of the section `{}`, which VMs don't enforce yet",
            section.name()
        )),
        Meaning::None => Some("no meaning on a Linux VM".to_owned()),
        Meaning::File => None,
    }
}

fn whole(args: &Args, app: &App) -> Result<Exit, Failure> {
    let here = Here::look(app)?;
    let [first, second] = FILE_NAMES;
    app.ui.line(format_args!(
        "looked for {first}, then {second}, from {} upwards; then for your own: {}",
        here.folder,
        places(app).user.join(", ")
    ));
    let (config, in_force) = args.whose.find(app)?;
    for part in &in_force.parts {
        app.ui.line(format_args!("holds: {}", heading(part)));
        let chain = &part.resolved.chain;
        if chain.len() > 1 {
            app.ui
                .line(format_args!("  made of: {}", chain.join(", then ")));
        }
        if let Value::Object(sections) = part.resolved.content.to_json() {
            let names: Vec<&str> = sections.keys().map(String::as_str).collect();
            if !names.is_empty() {
                app.ui
                    .line(format_args!("  speaks of: {}", names.join(", ")));
            }
        }
    }
    let is_off = |in_force: &InForce| {
        in_force
            .parts
            .iter()
            .all(|part| part.resolved.content.switch(Key::UseDefaults) == Some(false))
    };
    if is_off(&in_force) {
        app.ui.line("default rules: switched off");
    } else {
        app.ui.line("default rules:");
        for rule in RULES {
            app.ui.line(format_args!("  {}: {}", rule.name, rule.about));
        }
    }
    app.ui.line(if in_force.policy.is_default() {
        "what can't be told before it runs: passes in a VM, never on this machine"
    } else {
        "what can't be told before it runs: denied"
    });
    for line in enforcement(app, &config, &in_force) {
        app.ui.line(line);
    }
    let held: Vec<String> = config
        .hook
        .iter()
        .filter_map(|(agent, hook)| Some(format!("{agent} to {}", hook.policy.as_deref()?)))
        .collect();
    let by_hook = in_force
        .parts
        .iter()
        .any(|part| matches!(part.resolved.origin, Origin::Hook(_)));
    if !held.is_empty() && !by_hook {
        app.ui.line(format_args!(
            "agents are held to policies of their own: {}; see `--agent`",
            held.join(", ")
        ));
    }
    for warning in in_force.warnings() {
        app.ui.say(format_args!("careful: {warning}"));
    }
    Ok(Exit::Done)
}
