//! How a VM of the configuration is reached from this laptop.

use std::process::Command;

use boxery_pin::VmName;
use boxery_remote::embedded::EmbeddedVm;
use boxery_remote::{Ask, Laptop, Pipe, PipeChoice, Plan, RemoteError, Target};

use crate::app::App;
use crate::config::Vm;
use crate::env;
use crate::error::Failure;

/// The user's side of every connection.
pub(crate) fn laptop(app: &App) -> Laptop {
    Laptop {
        home: app.env.home.clone(),
        user: env::login_name(),
        agent_socket: env::ssh_auth_sock(),
        ssh_config: None,
        ssh_program: "ssh".into(),
        known_hosts: app.known_hosts_path(),
        keep_keys: false,
        kerberos: env::kerberos(),
    }
}

/// Open a connection to the VM `name`, asking for a key's passphrase where a person
/// can be asked.
pub(crate) async fn open(app: &App, name: &VmName, vm: &Vm) -> Result<Pipe, Failure> {
    if vm.is_embedded() {
        let mut starter = Command::new(env::own_binary()?);
        starter.args(["embedded-server", name.as_str()]);
        return EmbeddedVm::new(app.embedded_folder(name))
            .open(vm.pipe, &laptop(app), &mut starter)
            .await
            .map_err(|error| failure(name, error));
    }
    let target: Target = vm.target.parse().map_err(|error| failure(name, error))?;
    let ui = app.ui;
    let ask = move |prompt: &str| ui.secret(prompt);
    let ask: Ask<'_> = if ui.can_ask() { Some(&ask) } else { None };
    Pipe::open(&target, vm.pipe, &laptop(app), ask)
        .await
        .map_err(|error| failure(name, error))
}

/// An error of the way to the VM `name`, with what to do about it.
pub(crate) fn failure(name: &VmName, error: RemoteError) -> Failure {
    let hint = error.hint(name.as_str());
    let failure = Failure::from(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Runs one verb's asynchronous part on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> Result<F::Output, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let output = runtime.block_on(future);
    // A read of standard input that waits for more would keep the process here.
    runtime.shutdown_background();
    Ok(output)
}

/// Which pipe leads to the VM, and why it isn't the native one.
pub(crate) fn way(
    app: &App,
    name: &VmName,
    vm: &Vm,
) -> Result<(PipeChoice, Option<String>), Failure> {
    if vm.is_embedded() {
        return Ok((
            if vm.pipe == PipeChoice::System {
                vm.pipe
            } else {
                PipeChoice::Native
            },
            None,
        ));
    }
    let target: Target = vm.target.parse().map_err(|error| failure(name, error))?;
    let plan = block_on(Plan::resolve(&target, vm.pipe, &laptop(app)))?
        .map_err(|error| failure(name, error))?;
    Ok(match plan {
        Plan::Native(_) => (PipeChoice::Native, None),
        Plan::System { because, .. } => (PipeChoice::System, because),
    })
}
