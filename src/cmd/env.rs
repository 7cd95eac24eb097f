//! `boxery env`.

use std::collections::BTreeMap;

use boxery_pin::VmName;
use boxery_remote::{RunRequest, capture, jobs};
use serde_json::json;

use crate::app::App;
use crate::environment::{Rules, variables};
use crate::error::Failure;
use crate::exit::Exit;
use crate::place::Here;
use crate::{env, reach};

/// Show what a command on a VM will get: folder, shell, PATH and variables
///
/// The login environment is the one that the user's own shell makes there, captured once
/// for each connection; a command gets it, then what is sent from this laptop, then what
/// boxery sets unless you give it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM; the pinned one by default
    #[arg(value_name = "NAME")]
    vm: Option<VmName>,
    /// List every variable of the login environment there
    #[arg(long)]
    login: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// No environment is larger.
const LARGEST: usize = 4 << 20;

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let here = Here::look(app)?;
    let name = here.vm(args.vm.as_ref())?;
    let config = app.config()?;
    let vm = config.vm(&name)?;
    let place = here.counterpart(app, &name, vm)?;
    let (machine, given, login) = reach::block_on(async {
        let way = reach::open(app, &name, vm).await?;
        let failed = |error| reach::failure(&name, error);
        let machine = jobs::machine(&way).await.map_err(failed)?;
        let login = if args.login {
            let request = RunRequest {
                argv: ["env", "-0"].map(|word| word.as_bytes().to_vec()).to_vec(),
                ..RunRequest::default()
            };
            let printed = capture(&way, &request, None, LARGEST).await;
            Some(parse(&printed.map_err(failed)?.stdout))
        } else {
            None
        };
        // What the user's configuration passes is named only: it may be secret.
        let given = variables(app, &Rules::default(), &[]).await?;
        Ok::<_, Failure>((machine, given, login))
    })??;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let travelling: Vec<String> = env::travelling()
        .into_iter()
        .filter_map(|(name, _)| name.into_string().ok())
        .collect();
    let (sent, set): (BTreeMap<_, _>, BTreeMap<_, _>) = given
        .into_iter()
        .map(|(name, value)| (name, text(&value)))
        .partition(|(name, _)| travelling.contains(name));
    let folder = match &place.cwd {
        Some(cwd) => cwd.clone(),
        None => text(&machine.home),
    };
    if args.json {
        app.ui.line(json!({
            "vm": name, "user": machine.user, "home": text(&machine.home), "folder": folder,
            "shell": text(&machine.shell), "bash": machine.bash.as_deref().map(text),
            "path": text(&machine.path), "not_captured": machine.no_login,
            "sent": sent, "set": set, "passed": config.env.names().collect::<Vec<_>>(),
            "login": login,
        }));
        return Ok(Exit::Done);
    }
    let shell = match &machine.no_login {
        None => text(&machine.shell),
        Some(why) => format!("{}, but {why}", text(&machine.shell)),
    };
    for (label, value) in [
        ("VM", format!("{name}, as {}", machine.user)),
        ("folder", folder),
        ("shell", shell),
        ("PATH", text(&machine.path)),
    ] {
        app.ui.line(format_args!("{label:<7} {}", shown(&value)));
    }
    let passed: Vec<&str> = config.env.names().collect();
    if !passed.is_empty() {
        let names = passed.join(", ");
        app.ui
            .line(format_args!("passed by your configuration: {names}"));
    }
    for (title, found) in [
        ("sent from this laptop", Some(sent)),
        ("set unless given", Some(set)),
        ("login environment there", login),
    ] {
        let Some(found) = found else { continue };
        app.ui.line(format_args!("{title}:"));
        for (name, value) in found {
            app.ui
                .line(format_args!("  {}", shown(&format!("{name}={value}"))));
        }
    }
    Ok(Exit::Done)
}

/// One line, whatever is in it.
fn shown(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let escaped = c.is_control().then(|| c.escape_default());
            let plain = (!c.is_control()).then_some(c);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}

/// What `env -0` prints, without boxery's own.
fn parse(bytes: &[u8]) -> BTreeMap<String, String> {
    let lines = bytes.split(|byte| *byte == 0);
    lines
        .filter_map(|line| {
            let line = String::from_utf8_lossy(line);
            let (name, value) = line.split_once('=')?;
            (!name.starts_with("BOXERY_")).then(|| (name.to_owned(), value.to_owned()))
        })
        .collect()
}
