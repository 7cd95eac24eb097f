//! `boxery jobs start`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::sync::Arc;

use boxery_pin::{RemotePath, VmName};
use boxery_record::{Event, Kind};
use boxery_remote::{RunRequest, jobs};

use crate::app::App;
use crate::cmd::run::parse_variable;
use crate::copy::{Around, Show};
use crate::environment::{git_user, variables};
use crate::error::Failure;
use crate::exit::Exit;
use crate::place::Here;
use crate::policy::{Asked, clear};
use crate::ports::Ports;
use crate::{env, place, reach, setup};

/// Start a command on a VM that goes on when you leave
///
/// Prints the job's name. Its output is kept on the VM, the beginning and the end of
/// it; `boxery jobs tail` shows it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM; the pinned one by default
    #[arg(value_name = "NAME")]
    vm: Option<VmName>,
    /// Folder on the VM; by default the counterpart of the current folder
    #[arg(long, value_name = "DIR")]
    cwd: Option<RemotePath>,
    /// Set a variable for the command; may be given again
    #[arg(long, value_name = "K=V", value_parser = parse_variable)]
    env: Vec<(String, OsString)>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let here = Here::look(app)?;
    let name = here.vm(args.vm.as_ref())?;
    let config = app.config()?;
    let vm = config.vm(&name)?;
    let argv: Vec<Vec<u8>> = args
        .command
        .iter()
        .map(|word| word.clone().into_vec())
        .collect();
    let policy = clear(
        app,
        &config,
        &Asked {
            here: &here,
            vm: name.as_str(),
            argv: &argv,
            ticket: None,
        },
    )?;
    for note in &policy.notes {
        app.ui.note(note);
    }
    let place = here.counterpart_or(app, &name, vm, args.cwd.as_ref())?;
    let mut request = RunRequest {
        argv,
        cwd: place.cwd,
        view: place.view,
        session: env::claude_session_id().unwrap_or_default(),
        ..RunRequest::default()
    };
    let map = if here.is_pinned_to(&name) {
        let root = here.project_root(true)?;
        root.map(|root| place::path_map(app, vm, &root))
            .transpose()?
    } else {
        None
    };
    reach::block_on(async {
        let (way, git) = tokio::join!(reach::open(app, &name, vm), git_user(&here.folder));
        let way = Arc::new(way?);
        setup::ensure(app, &name, vm, &way).await?;
        if let Some(map) = &map {
            let show = Show::of(app.ui, false);
            let around = Around::new(app, &name, map, here.drift(&config), show);
            if let Some(mut around) = around {
                for note in around.before(&way).await? {
                    app.ui.note(note);
                }
            }
        }
        request.git = git;
        request.env = variables(app, &config.env, &args.env).await?;
        let job = jobs::start(&way, &request)
            .await
            .map_err(|error| reach::failure(&name, error))?;
        app.record(&Event {
            vm: Some(name.to_string()),
            detail: policy.detail.clone(),
            ..Event::new(env::now(), Kind::RunStarted)
        });
        app.ui.line(job);
        let ports = Ports::new(&way, &name, vm, &request.session, job);
        for note in ports.offered().await {
            app.ui.note(note);
        }
        Ok(Exit::Done)
    })?
}
