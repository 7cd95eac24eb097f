//! Meeting a VM for the first time: a person confirms its host key once.

use boxery_pin::VmName;
use boxery_remote::{RemoteError, Route, Way, accept};

use crate::app::App;
use crate::config::Vm;
use crate::error::Failure;
use crate::reach;

/// Open a connection of our own to the VM `name`; an unknown host key is shown and, if
/// a person says yes or `fingerprint` names it, trusted from now on. Returned with it:
/// the key's fingerprint.
pub(crate) async fn open(
    app: &App,
    name: &VmName,
    vm: &Vm,
    fingerprint: Option<&str>,
) -> Result<(Way, Option<String>), Failure> {
    let mut route = reach::route(app, name, vm)?;
    if !vm.is_embedded() {
        route.laptop.keep_keys = true;
    }
    let mut confirmed = false;
    loop {
        match connect(app, &route).await {
            Ok(way) => {
                let shown = way.host_key().await.map(|key| key.fingerprint);
                if let (Some(want), Some(shown)) = (fingerprint, &shown)
                    && want != shown
                {
                    return Err(mismatch(want, shown));
                }
                return Ok((way, shown));
            }
            Err(RemoteError::HostKeyUnknown {
                host,
                algorithm,
                fingerprint: shown,
                line,
            }) if !confirmed && !line.is_empty() => {
                confirm(app, name, &host, &algorithm, &shown, fingerprint)?;
                accept(&route.laptop.known_hosts, &line)
                    .map_err(|error| reach::failure(name, error))?;
                confirmed = true;
            }
            Err(error) => return Err(reach::failure(name, error)),
        }
    }
}

async fn connect(app: &App, route: &Route) -> Result<Way, RemoteError> {
    let ui = app.ui;
    let ask = move |prompt: &str| ui.secret(prompt);
    let ask: boxery_remote::Ask<'_> = if ui.can_ask() { Some(&ask) } else { None };
    Way::open(route.clone(), None, ask).await
}

fn confirm(
    app: &App,
    name: &VmName,
    host: &str,
    algorithm: &str,
    shown: &str,
    given: Option<&str>,
) -> Result<(), Failure> {
    if let Some(given) = given {
        return if given == shown {
            Ok(())
        } else {
            Err(mismatch(given, shown))
        };
    }
    app.ui.say(format_args!(
        "{host} shows this {algorithm} key:\n  {shown}"
    ));
    match app.ui.confirm("Is that the VM's own?") {
        Some(true) => Ok(()),
        Some(false) => Err(Failure::from("the host key was not accepted".to_owned())),
        None => Err(Failure::from(format!(
            "the host key of {name} is unknown, and nobody can be asked: {shown}"
        ))
        .hint(format!(
            "compare it on the VM (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`), then add \
             `--accept-fingerprint {shown}`"
        ))),
    }
}

fn mismatch(given: &str, shown: &str) -> Failure {
    Failure::from(format!(
        "the host shows the key {shown}, not the one that you named ({given})"
    ))
    .hint("nothing was accepted; somebody may be in the middle")
}
