//! The script that a VM's configuration wants run before its first command.

use boxery_pin::VmName;
use boxery_remote::{Output, RunExit, RunIo, RunRequest, Way, jobs};

use crate::app::App;
use crate::cmd::run::cancelled;
use crate::config::Vm;
use crate::environment::variables;
use crate::error::Failure;
use crate::exit::Exit;
use crate::kept::state_id;
use crate::reach;

/// Run the script of `vm`, unless it was run there to a good end before. What it says
/// is shown on stderr; commands that come meanwhile wait for it.
pub(crate) async fn ensure(app: &App, name: &VmName, vm: &Vm, way: &Way) -> Result<(), Failure> {
    let Some(text) = &vm.setup else {
        return Ok(());
    };
    let failed = |error| reach::failure(name, error);
    let script = state_id(text.as_bytes());
    if jobs::is_set_up(way, script).await.map_err(failed)? {
        return Ok(());
    }
    app.ui.note(format_args!("setting up {name}, once"));
    let config = app.config()?;
    let request = RunRequest {
        argv: vec![b"bash".to_vec(), b"-c".to_vec(), text.clone().into_bytes()],
        env: variables(app, &config.env, &[]).await?,
        sets_up: Some(script),
        ..RunRequest::default()
    };
    let stderr = || -> Output { Box::pin(tokio::io::stderr()) };
    let io = RunIo {
        stdin: None,
        stdout: stderr(),
        stderr: stderr(),
    };
    let end = boxery_remote::run(way, &request, io, cancelled()).await;
    match end.map_err(failed)?.exit {
        RunExit::Code(0) => Ok(()),
        RunExit::Code(code) => Err(Failure::from(format!(
            "the setup of {name} ended with {code}, so the command was not run"
        ))
        .hint("mend `setup` in the configuration, or the VM; the next command tries it again")),
        exit @ (RunExit::TimedOut | RunExit::Cancelled(_) | RunExit::OutputClosed) => {
            let cancelled = Failure::from(format!("the setup of {name} was cancelled"));
            Err(cancelled.exit(Exit::Command(exit.code())))
        }
    }
}
