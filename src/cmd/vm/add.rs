//! `boxery vm add`.

use camino::Utf8Path;
use serde_json::json;

use boxery_pin::{RemotePath, VmName};
use boxery_remote::doctor::{self, Making};
use boxery_remote::{PipeChoice, PortChoice, Way};

use crate::app::App;
use crate::config::{self, PathsRule, Vm};
use crate::error::Failure;
use crate::exit::Exit;
use crate::{env, reach, trust};

/// Add a VM
///
/// Connects once, shows the host key's fingerprint and asks, looks around, and writes
/// the VM into config.toml. A key among your known hosts isn't asked about.
/// Without TARGET it lists the hosts of your ssh configuration.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to call it
    name: VmName,
    /// `user@host[:port]`, or a Host of your ssh configuration
    #[arg(conflicts_with = "embedded")]
    target: Option<String>,
    /// Folder on the VM for the copies of projects; `boxery` in the home folder by default
    #[arg(long, value_name = "DIR")]
    dir: Option<RemotePath>,
    /// A VM on this machine, for trying things; no security boundary
    #[arg(long)]
    embedded: bool,
    /// Which way to reach it
    #[arg(long, value_name = "PIPE", default_value = "auto")]
    pipe: PipeChoice,
    /// Whether copies of projects lie at the same absolute path there as here, so that
    /// paths in commands and in what they print fit; asked on a terminal, else `no`
    #[arg(long, value_name = "yes|no", value_parser = parse_yes)]
    same_path: Option<bool>,
    /// Accept this host key without a question
    #[arg(long, value_name = "SHA256:…", value_parser = parse_fingerprint)]
    accept_fingerprint: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    app.refuse_agents("vm add")?;
    let known = app.config()?;
    if let Some(old) = known.vm.get(&args.name) {
        return Err(Failure::from(format!(
            "there is a VM `{}` already: {}",
            args.name,
            if old.is_embedded() {
                "this machine"
            } else {
                &old.target
            }
        ))
        .hint(format!(
            "take another name, or `boxery vm remove {}` first",
            args.name
        )));
    }
    let target = match &args.target {
        Some(target) => target.clone(),
        None if args.embedded => "embedded".to_owned(),
        None => return Err(which_target(args, app)),
    };
    if args.target.as_deref() == Some("embedded") {
        return Err(Failure::usage("`embedded` is no SSH target")
            .hint(format!("`boxery vm add {} --embedded`", args.name)));
    }
    // The folder is settled once the home folder is known.
    let somewhere: RemotePath = "/".parse()?;
    let mut vm = Vm {
        target,
        dir: args.dir.clone().unwrap_or(somewhere),
        pipe: args.pipe,
        ports: PortChoice::default(),
        paths: PathsRule::Auto,
        setup: None,
        machine_id: None,
        host_key: None,
    };
    let failed = |error| reach::failure(&args.name, error);
    let probe = reach::block_on(async {
        let (way, key) =
            trust::open(app, &args.name, &vm, args.accept_fingerprint.as_deref()).await?;
        let probe = doctor::probe(&way, env::now()).await.map_err(failed)?;
        if args.dir.is_none() {
            vm.dir = probe.home.parse::<RemotePath>()?.join("boxery")?;
        }
        doctor::check_folder(&way, vm.dir.as_str())
            .await
            .map_err(failed)?;
        vm.host_key = key;
        vm.paths = paths(args, app, &way).await?;
        Ok::<_, Failure>(probe)
    })??;
    // Where the agent itself runs on the VM, this id tells, and its calls pass. An id
    // that is this laptop's already tells nothing: a cloned image, a container, or
    // SSH to this machine itself.
    let own = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    if !probe.machine_id.is_empty() && probe.machine_id != own.trim() {
        vm.machine_id = Some(probe.machine_id.clone());
    }
    config::edit(&app.config_path(), |document| {
        config::set_vm(document, &args.name, &vm);
    })?;
    if args.json {
        app.ui.line(json!({
            "name": args.name, "target": vm.target, "dir": vm.dir, "pipe": vm.pipe,
            "host_key": vm.host_key, "paths": vm.paths, "this_machine": vm.is_embedded(), "found": probe,
        }));
        return Ok(Exit::Done);
    }
    let place = if vm.is_embedded() {
        "this machine, no security boundary".to_owned()
    } else {
        vm.target.clone()
    };
    app.ui.say(format_args!("added VM {}: {place}", args.name));
    app.ui
        .say(format_args!("  {} as {}", probe.system, probe.user));
    app.ui
        .say(format_args!("  copies {}", where_copies_are(&vm)));
    if !probe.bash {
        app.ui
            .say("  it has no bash, which agents' commands need: install it before you pin the VM");
    }
    app.ui.say(format_args!(
        "  next: `boxery pin {}` in a project",
        args.name
    ));
    Ok(Exit::Done)
}

/// Where copies lie, with consent to folders outside of the VM user's own.
async fn paths(args: &Args, app: &App, way: &Way) -> Result<PathsRule, Failure> {
    if args.same_path == Some(false) {
        return Ok(PathsRule::Mapped);
    }
    // Where this laptop's projects mostly are.
    let making = doctor::making(way, app.env.home.as_str())
        .await
        .map_err(|error| reach::failure(&args.name, error))?;
    let by = match making {
        Making::Own => "",
        Making::Sudo => " with sudo",
        Making::No if args.same_path == Some(true) => {
            return Err(Failure::from(format!(
                "the VM's user can make no folders in `{}`, and has no `sudo -n`",
                app.env.home
            ))
            .hint("add it without `--same-path yes`; docs/same-path.md tells of `paths = \"namespace\"`"));
        }
        Making::No => return Ok(PathsRule::Auto),
    };
    if args.same_path == Some(true) {
        return Ok(PathsRule::Real);
    }
    let question = format!(
        "Paths in commands and in what they print fit where a project's copy has the same absolute path there as \
         the project has here (such as `{}/…`). Its folder is made once{by} when a project is sent. Do that?",
        app.env.home
    );
    Ok(match app.ui.confirm(&question) {
        Some(true) => PathsRule::Real,
        Some(false) => PathsRule::Mapped,
        None => PathsRule::Auto,
    })
}

/// In words.
fn where_copies_are(vm: &Vm) -> String {
    match vm.paths {
        PathsRule::Real => "at the same absolute paths as the projects here".to_owned(),
        PathsRule::Namespace => "seen at the same absolute paths as the projects here".to_owned(),
        PathsRule::Mapped => format!("in {}", vm.dir),
        PathsRule::Auto => format!(
            "in {}; nobody was asked for the same absolute path (`--same-path yes`)",
            vm.dir
        ),
    }
}

fn parse_yes(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("give yes or no".to_owned()),
    }
}

fn which_target(args: &Args, app: &App) -> Failure {
    let hosts = hosts(&app.env.home.join(".ssh/config"));
    let known = if hosts.is_empty() {
        String::new()
    } else {
        format!("hosts of your ssh configuration: {}; or ", hosts.join(", "))
    };
    Failure::usage(format!("where is the VM `{}`?", args.name)).hint(format!(
        "{known}`boxery vm add {} user@host[:port]`, or `--embedded` for one on this machine",
        args.name
    ))
}

pub(super) fn parse_fingerprint(text: &str) -> Result<String, String> {
    let digest = text.strip_prefix("SHA256:").unwrap_or_default();
    let digest = digest.trim_end_matches('=');
    if digest.len() == 43 {
        Ok(format!("SHA256:{digest}"))
    } else {
        Err("give it as ssh-keygen -l does: SHA256: and 43 characters".to_owned())
    }
}

/// The hosts that an ssh configuration names without wildcards, in its order.
fn hosts(config: &Utf8Path) -> Vec<String> {
    let text = std::fs::read_to_string(config).unwrap_or_default();
    let mut hosts = Vec::new();
    for line in text.lines() {
        let mut words = line.split([' ', '\t', '=']).filter(|word| !word.is_empty());
        if words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case("host"))
        {
            for host in words.map(|word| word.trim_matches('"')) {
                if !host.contains(['*', '?', '!']) && !hosts.iter().any(|known| known == host) {
                    hosts.push(host.to_owned());
                }
            }
        }
    }
    hosts
}
