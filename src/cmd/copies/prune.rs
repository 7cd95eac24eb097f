//! `boxery copies prune`.

use boxery_pin::VmName;

use super::meant;
use crate::app::App;
use crate::copy::{self, FoundCopy, Owner, size};
use crate::error::Failure;
use crate::exit::Exit;
use crate::reach;

/// Remove the copies whose project isn't on this laptop any more
///
/// Names them and asks first. What only lies there is gone then: build outputs, edits
/// that never came back. A folder without boxery's marker is never touched, nor a copy
/// of another laptop.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM; every one that can be reached by default
    #[arg(value_name = "NAME")]
    vm: Option<VmName>,
    /// Don't ask
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    app.refuse_agents("copies prune")?;
    let config = app.config()?;
    let (mut whole, mut any) = (true, false);
    for name in meant(&config, args.vm.as_ref())? {
        let vm = config.vm(&name)?;
        let done = reach::block_on(async {
            let way = reach::open(app, &name, vm).await?;
            let mut found = copy::list(app, &name, vm, &way).await?;
            found.retain(|copy| matches!(copy.owner, Owner::Gone(_)));
            any |= !found.is_empty();
            if found.is_empty() || !confirmed(args, app, &name, &found)? {
                return Ok(found.is_empty());
            }
            for copy in &found {
                copy::prune(app, &name, &way, copy).await?;
                app.ui
                    .say(format_args!("removed `{}` on {name}", copy.copy));
            }
            Ok::<_, Failure>(true)
        })?;
        match done {
            Ok(done) => whole &= done,
            Err(failure) if args.vm.is_some() => return Err(failure),
            Err(failure) => {
                whole = false;
                app.ui.say(format_args!("{name}: {}", failure.one_line()));
            }
        }
    }
    if !any && whole {
        app.ui.say("there is nothing to remove");
    }
    Ok(if whole { Exit::Done } else { Exit::No })
}

fn confirmed(args: &Args, app: &App, name: &VmName, found: &[FoundCopy]) -> Result<bool, Failure> {
    for copy in found {
        let Owner::Gone(project) = &copy.owner else {
            continue;
        };
        app.ui.say(format_args!(
            "`{}` on {name}, {}: its project {project} is gone",
            copy.copy,
            size(copy.bytes)
        ));
    }
    if args.yes {
        return Ok(true);
    }
    app.ui
        .confirm("Remove them, with what is only there?")
        .ok_or_else(|| {
            Failure::from("nobody can be asked whether these copies may go".to_owned())
                .hint("run it in a terminal, or say `--yes`")
                .exit(Exit::No)
        })
}
