//! `boxery shell`.

use boxery_pin::{RemotePath, VmName};
use boxery_remote::{RunIo, RunRequest, jobs};

use crate::app::App;
use crate::cmd::run::cancelled;
use crate::environment::{git_user, variables};
use crate::error::Failure;
use crate::exit::Exit;
use crate::place::Here;
use crate::policy::{Caller, InForce};
use crate::terminal::Raw;
use crate::{reach, setup};

/// Open your login shell on a VM
///
/// A real terminal: colours, job control, its size. When the connection breaks the
/// shell goes on, and the terminal comes back to it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM; the pinned one by default
    #[arg(value_name = "NAME")]
    vm: Option<VmName>,
    /// Folder on the VM; by default the counterpart of the current folder
    #[arg(long, value_name = "DIR")]
    cwd: Option<RemotePath>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    app.refuse_agents("shell")?;
    let here = Here::look(app)?;
    let name = here.vm(args.vm.as_ref())?;
    let config = app.config()?;
    let vm = config.vm(&name)?;
    let caller = Caller {
        agent: None,
        folder: &here.folder,
        project: None,
    };
    // It holds no one here, so that one that can't be used is no reason to stay out.
    if let Ok(in_force) = InForce::find(app, &config, caller)
        && !in_force.policy.is_default()
    {
        app.ui.say(format_args!(
            "the policy {} is for commands; this shell is held to none",
            in_force.summary()
        ));
    }
    let place = here.counterpart_or(app, &name, vm, args.cwd.as_ref())?;
    reach::block_on(async {
        let (way, git) = tokio::join!(reach::open(app, &name, vm), git_user(&here.folder));
        let way = way?;
        setup::ensure(app, &name, vm, &way).await?;
        let env = variables(app, &config.env, &[]).await?;
        let failed = |error| reach::failure(&name, error);
        let machine = jobs::machine(&way).await.map_err(failed)?;
        let raw = Raw::enter().map_err(|error| {
            Failure::from(error).hint("`boxery shell` needs a terminal; `boxery run` doesn't")
        })?;
        let request = RunRequest {
            argv: vec![machine.shell.to_vec(), b"-l".to_vec()],
            cwd: place.cwd,
            view: place.view,
            env,
            git,
            terminal: Some(raw.sizes()?),
            grace: config.grace,
            ..RunRequest::default()
        };
        let io = RunIo {
            stdin: Some(Box::pin(tokio::io::stdin())),
            stdout: Box::pin(tokio::io::stdout()),
            stderr: Box::pin(tokio::io::stderr()),
        };
        let end = boxery_remote::run(&way, &request, io, cancelled()).await;
        drop(raw);
        Ok(Exit::Command(end.map_err(failed)?.exit.code()))
    })?
}
