//! `boxery unpin`.

use std::time::Duration;

use boxery_pin::{PinFile, PinKey, PinOrigin, Project, Suspension};
use boxery_record::{Event, Kind};

use crate::app::App;
use crate::cmd::pin;
use crate::cmd::run::parse_duration;
use crate::env;
use crate::error::Failure;
use crate::exit::Exit;
use crate::inside::Inside;
use crate::place::{Here, pin_failure};

/// Let an agent's commands run on this laptop again
///
/// Removes the pin that applies here. Files on the VM stay as they are. Only a person
/// at a terminal can unpin; an agent can't.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only for this time, such as `30m`; then the pin applies again
    #[arg(long = "for", value_name = "D", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Remove the pin of this session of Claude Code instead
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    if let Some(inside) = Inside::look() {
        return Err(Failure::from(format!(
            "this is a shell of {}, and an agent can't unpin",
            inside.agent
        ))
        .hint("run `boxery unpin` in a terminal of your own")
        .exit(Exit::No));
    }
    let store = app.pins();
    let now = env::now();
    let Some(key) = key(args, app)? else {
        app.ui.say("nothing is pinned here");
        return Ok(Exit::Done);
    };
    if !app.ui.has_terminal() {
        return Err(Failure::from("nobody is at a terminal".to_owned())
            .hint("only a person can unpin: run `boxery unpin` in a terminal")
            .exit(Exit::No));
    }
    let mut event = Event::new(now, Kind::Unpin);
    if let Some(duration) = args.duration {
        let Some(old) = store.read(&key).map_err(pin_failure)? else {
            app.ui.say("nothing is pinned here");
            return Ok(Exit::Done);
        };
        let until = now.saturating_add(duration.as_secs());
        let suspended = Some(Suspension { from: now, until });
        event.vm = Some(old.file.vm.to_string());
        event.detail = Some(format!("{key}, for {} s", duration.as_secs()));
        store
            .write(&PinFile {
                suspended,
                ..old.file
            })
            .map_err(pin_failure)?;
        app.ui.say(format_args!(
            "{key} is unpinned for {} s; `boxery pin` in it ends that earlier",
            duration.as_secs()
        ));
    } else {
        event.detail = Some(key.to_string());
        if !store.remove(&key).map_err(pin_failure)? {
            app.ui.say("nothing is pinned here");
            return Ok(Exit::Done);
        }
        app.ui.say(format_args!("unpinned {key}"));
    }
    pin::record(app, event, &key);
    match Here::look(app) {
        Ok(Here { pin: Some(pin), .. }) => {
            app.ui.say(format_args!(
                "still pinned to VM {} by {}",
                pin.vm, pin.origin
            ));
        }
        Ok(Here { pin: None, .. }) => {}
        Err(failure) => app.ui.say(format_args!(
            "still denied: {}",
            failure.render().trim_end()
        )),
    }
    Ok(Exit::Done)
}

/// The key of the pin to remove.
fn key(args: &Args, app: &App) -> Result<Option<PinKey>, Failure> {
    if let Some(session) = &args.session {
        return Ok(Some(pin::session_key(session)));
    }
    let here = match Here::look(app) {
        Ok(here) => here,
        Err(failure) => {
            // A damaged file of this very project can go; anything else is for the user to see.
            let root = Project::of(&env::current_folder()?)?.root;
            let key = PinKey::Project { root };
            return match app.pins().read(&key) {
                Ok(None) => Err(failure.exit(Exit::CannotSay)),
                Ok(Some(_)) | Err(_) => Ok(Some(key)),
            };
        }
    };
    match here.pin.map(|pin| pin.origin) {
        None => Ok(None),
        Some(PinOrigin::File(key)) => Ok(Some(key)),
        Some(PinOrigin::Environment) => Err(Failure::from(
            "this shell is pinned by its variable BOXERY_VM".to_owned(),
        )
        .hint("`unset BOXERY_VM`")
        .exit(Exit::No)),
    }
}
