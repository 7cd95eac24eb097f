//! Policies for tests, without a disk.

use std::collections::BTreeMap;

use boxery_policy::{
    Found, Origin, Places, Policy, PolicyError, Reader, Resolved, Roots, resolve_policy,
};

/// A disk in memory.
#[derive(Default)]
pub(crate) struct Disk(pub(crate) BTreeMap<String, String>);

impl Disk {
    /// A disk with these files.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self(
            files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
                .collect(),
        )
    }

    /// The policy at `path`, with the user's own at `/home/u/.config/fence/`.
    pub(crate) fn resolve(&self, path: &str) -> Result<Resolved, PolicyError> {
        resolve_policy(Origin::Project(path.to_owned()), &places(), self)
    }
}

impl Reader for Disk {
    fn read(&self, path: &str) -> Found {
        if let Some(text) = self.0.get(path) {
            return Found::Text(text.clone());
        }
        let below = format!("{path}/");
        if self.0.keys().any(|file| file.starts_with(&below)) {
            return Found::Folder;
        }
        Found::Missing
    }

    fn canonical(&self, path: &str) -> String {
        path.to_owned()
    }
}

/// Where the user's own policy may lie.
pub(crate) fn places() -> Places {
    Places {
        user: vec![
            "/home/u/.config/fence/fence.jsonc".to_owned(),
            "/home/u/.config/fence/fence.json".to_owned(),
        ],
    }
}

/// A policy ready to judge.
pub(crate) fn ready(resolved: &Resolved) -> Policy {
    let links = |_: &str| None;
    Policy::new(
        resolved,
        &Roots {
            home: "/home/u",
            folder: "/w",
            links: &links,
        },
    )
}

/// The policy that `json` says.
pub(crate) fn policy(json: &str) -> Policy {
    let disk = Disk::of(&[("/w/fence.json", json)]);
    ready(&disk.resolve("/w/fence.json").expect("the policy is valid"))
}

/// The template `name`.
pub(crate) fn template(name: &str) -> Policy {
    let origin = Origin::Hook(name.to_owned());
    ready(&resolve_policy(origin, &places(), &Disk::default()).expect("the template is valid"))
}
