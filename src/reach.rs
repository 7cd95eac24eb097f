//! How a VM of the configuration is reached from this laptop.

use boxery_pin::VmName;
use boxery_remote::daemon::Site;
use boxery_remote::{
    Ask, Laptop, PipeChoice, Plan, RemoteError, Route, RouteEnd, Target, Through, Way,
};

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

/// Where the daemon's files lie.
pub(crate) fn daemon_site(app: &App) -> Site {
    Site::of(&app.env.state)
}

/// The way to the VM `name`, as the configuration has it.
pub(crate) fn route(app: &App, name: &VmName, vm: &Vm) -> Result<Route, Failure> {
    let end = if vm.is_embedded() {
        let program = env::own_binary()?;
        let words = [program.as_str(), "embedded-server", name.as_str()];
        RouteEnd::Embedded {
            folder: app.embedded_folder(name),
            starter: words.map(str::to_owned).to_vec(),
        }
    } else {
        RouteEnd::Ssh(vm.target.clone())
    };
    Ok(Route {
        vm: name.to_string(),
        end,
        choice: vm.pipe,
        laptop: laptop(app),
        machine_id: vm.machine_id.clone(),
    })
}

/// Open the way to the VM `name`, through the daemon where there is one, asking for a
/// key's passphrase where a person can be asked.
pub(crate) async fn open(app: &App, name: &VmName, vm: &Vm) -> Result<Way, Failure> {
    let program = env::own_binary()?;
    let words = |verb: &str| {
        [program.as_str(), "daemon", verb]
            .map(str::to_owned)
            .to_vec()
    };
    let through = Through {
        site: daemon_site(app),
        starter: words("serve"),
        guard: words("guard"),
    };
    let ui = app.ui;
    let ask = move |prompt: &str| ui.secret(prompt);
    let ask: Ask<'_> = if ui.can_ask() { Some(&ask) } else { None };
    Way::open(route(app, name, vm)?, Some(through), ask)
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
