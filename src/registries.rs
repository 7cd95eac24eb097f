//! What `registries` in a policy stands for on a VM: its package managers are asked there.

use std::time::Duration;

use boxery_pin::VmName;
use boxery_policy::registries::{Facts, GATHER, Registries};
use boxery_policy::{Action, Policy, Roots, Verdict};
use boxery_remote::{RunRequest, capture};

use crate::app::App;
use crate::config::Vm;
use crate::error::Failure;
use crate::policy::InForce;
use crate::reach;

/// More than any machine's configuration of package managers.
const LONGEST: usize = 1 << 20;

/// Ask the VM `name`. What the policy lets commands write there doesn't count.
pub(crate) fn find(
    app: &App,
    name: &VmName,
    vm: &Vm,
    in_force: &InForce,
) -> Result<Registries, Failure> {
    let facts = reach::block_on(gather(app, name, vm))??;
    let home = facts.variable("HOME").unwrap_or("/root").to_owned();
    let roots = Roots {
        home: &home,
        // A relative rule means the project, in which no such file counts.
        folder: "/nonexistent",
        links: &|_| None,
    };
    let policies: Vec<Policy> = in_force
        .parts
        .iter()
        .map(|part| Policy::new(&part.resolved, &roots))
        .filter(|policy| !policy.is_default())
        .collect();
    let writable = |path: &str| {
        policies.iter().all(|policy| {
            let write = Action::Write { path, folder: None };
            matches!(policy.evaluate(write), Verdict::Allow)
        })
    };
    Ok(facts.registries(&writable))
}

async fn gather(app: &App, name: &VmName, vm: &Vm) -> Result<Facts, Failure> {
    let way = reach::open(app, name, vm).await?;
    let words = ["sh", "-c", GATHER, "sh"];
    let request = RunRequest {
        argv: words.map(|word| word.as_bytes().to_vec()).to_vec(),
        env: vec![("LC_ALL".to_owned(), b"C".to_vec())],
        timeout: Some(Duration::from_mins(1)),
        ..RunRequest::default()
    };
    let captured = capture(&way, &request, None, LONGEST)
        .await
        .map_err(|error| reach::failure(name, error))?;
    if !captured.succeeded() {
        return Err(Failure::from(format!(
            "cannot ask the package managers of `{name}`: {}",
            captured.complaint()
        )));
    }
    Ok(Facts::parse(&String::from_utf8_lossy(&captured.stdout)))
}
