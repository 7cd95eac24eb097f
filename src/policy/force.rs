//! The policy that holds for a call: found, read, and put together.

use boxery_pin::AgentId;
use boxery_policy::{
    FILE_NAMES, Origin, Places, Policy, PolicyError, Resolved, Roots, Section, find_policy,
    find_user_policy, resolve_policy,
};
use camino::{Utf8Path, Utf8PathBuf};

use super::disk::{Disk, places};
use super::trust::{self, Trusted};
use crate::app::App;
use crate::config::Config;
use crate::error::Failure;

/// Whom a policy is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller<'a> {
    /// The agent; its hook may be held to a policy of its own.
    pub(crate) agent: Option<&'a AgentId>,
    /// The folder of the call.
    pub(crate) folder: &'a Utf8Path,
    /// The pinned project, whose policy holds outside of it too.
    pub(crate) project: Option<&'a Utf8Path>,
}

/// The policy that holds.
#[derive(Debug)]
pub(crate) struct InForce {
    /// Everything at once, ready to judge.
    pub(crate) policy: Policy,
    /// What it is made of, the nearest first.
    pub(crate) parts: Vec<Part>,
}

/// One policy with all that it extends.
#[derive(Debug)]
pub(crate) struct Part {
    /// What it says.
    pub(crate) resolved: Resolved,
    /// What it may say.
    pub(crate) standing: Standing,
    /// What the user trusts when it is a project's.
    pub(crate) key: String,
}

/// What a policy may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The user's own, one that a hook is held to, or none at all.
    Own,
    /// A project's, which the user trusts.
    Trusted,
    /// A project's, which the user hasn't seen: it can only add to what holds anyway.
    Untrusted,
}

impl InForce {
    /// The policy that holds for `caller`.
    ///
    /// A project's policy replaces the user's, as with Fence, once the user trusts its
    /// text. Until then what would hold without it holds too.
    pub(crate) fn find(app: &App, config: &Config, caller: Caller<'_>) -> Result<Self, Failure> {
        let places = places(app);
        let disk = Disk::default();
        let search = Search {
            places: &places,
            disk: &disk,
            trusted: &Trusted::new(app),
        };
        let pinned = caller.agent.and_then(|agent| config.hook_policy(&agent.0));
        let mut parts = match pinned {
            Some(name) => vec![search.part(hook_origin(name)?)?],
            None => search.parts(caller.folder)?,
        };
        if let (None, Some(project)) = (pinned, caller.project)
            && !caller.folder.starts_with(project)
        {
            for part in search.parts(project)? {
                if !parts.iter().any(|known| known.resolved == part.resolved) {
                    parts.push(part);
                }
            }
        }
        let home = app.env.home.as_str();
        let links = |path: &str| {
            let real = Utf8Path::new(path).canonicalize_utf8().ok();
            real.map(Utf8PathBuf::into_string)
        };
        let roots = Roots {
            home,
            folder: caller.folder.as_str(),
            links: &links,
        };
        let mut policies = parts.iter().map(|part| Policy::new(&part.resolved, &roots));
        let first = policies.next().ok_or("no policy was looked for")?;
        let policy = policies.fold(first, Policy::and);
        Ok(Self { policy, parts })
    }

    /// The files that it is read from, those that others extend included.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Utf8Path> {
        let chains = self.parts.iter().flat_map(|part| &part.resolved.chain);
        chains
            .filter(|source| source.starts_with('/'))
            .map(|source| Utf8Path::new(source.as_str()))
    }

    /// What the user should know of these files, a line each.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = Vec::new();
        for part in &self.parts {
            for warning in &part.resolved.warnings {
                if !warnings.contains(warning) {
                    warnings.push(warning.clone());
                }
            }
        }
        warnings
    }

    /// The sections that have to be enforced where commands run, each with the policy
    /// that says so.
    pub(crate) fn sections(&self) -> Vec<(Section, &str)> {
        let mut found: Vec<(Section, &str)> = Vec::new();
        for part in &self.parts {
            for section in part.resolved.content.sections() {
                if !found.iter().any(|(known, _)| *known == section) {
                    found.push((section, part.resolved.origin.name()));
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// One line on which policy holds.
    pub(crate) fn summary(&self) -> String {
        let parts: Vec<String> = self
            .parts
            .iter()
            .filter(|part| self.parts.len() == 1 || part.resolved.origin != Origin::Nobody)
            .map(|part| {
                let name = part.resolved.origin.name();
                match part.standing {
                    Standing::Own | Standing::Trusted => name.to_owned(),
                    Standing::Untrusted => format!("{name} (not trusted yet)"),
                }
            })
            .collect();
        parts.join(" and ")
    }
}

struct Search<'a> {
    places: &'a Places,
    disk: &'a Disk,
    trusted: &'a Trusted,
}

impl Search<'_> {
    /// What holds in `folder`: the nearest policy, and behind one that isn't trusted
    /// what would hold without it.
    fn parts(&self, folder: &Utf8Path) -> Result<Vec<Part>, Failure> {
        let mut parts = Vec::new();
        let mut from = Some(folder.to_owned());
        loop {
            let origin = match &from {
                Some(folder) => find_policy(folder.as_str(), self.places, self.disk),
                None => find_user_policy(self.places, self.disk),
            };
            let above = above(&origin);
            let part = self.part(origin)?;
            let last = part.standing != Standing::Untrusted;
            parts.push(part);
            if last {
                return Ok(parts);
            }
            from = above;
        }
    }

    fn part(&self, origin: Origin) -> Result<Part, Failure> {
        // The user's own file is theirs wherever the search comes from.
        let origin = match origin {
            Origin::Project(path) if self.places.user.contains(&path) => Origin::User(path),
            other => other,
        };
        let resolved = resolve_policy(origin, self.places, self.disk).map_err(failure)?;
        let key = trust::key(&resolved, self.places, self.disk);
        let standing = match &resolved.origin {
            Origin::User(_) | Origin::Hook(_) | Origin::Nobody => Standing::Own,
            Origin::Project(_) if self.trusted.holds(&key)? => Standing::Trusted,
            Origin::Project(_) => Standing::Untrusted,
        };
        Ok(Part {
            resolved,
            standing,
            key,
        })
    }
}

/// The folder in which the search goes on behind a project's policy.
fn above(origin: &Origin) -> Option<Utf8PathBuf> {
    match origin {
        Origin::Project(path) => Utf8Path::new(path)
            .parent()
            .and_then(Utf8Path::parent)
            .map(Utf8Path::to_owned),
        Origin::User(_) | Origin::Hook(_) | Origin::Nobody => None,
    }
}

/// The files that policies extend and hooks are held to: for `caller`, for the user
/// elsewhere, for any hook; also those that can't be used, that don't hold while another
/// one does, or that aren't there yet. Whoever writes one of them changes a policy.
/// `fence.json` itself is known by its name, wherever it lies.
pub(crate) fn policy_files(app: &App, config: &Config, caller: Caller<'_>) -> Vec<Utf8PathBuf> {
    let places = places(app);
    let disk = Disk::default();
    // Only what is asked for on the way counts.
    let look = |origin: Origin| drop(resolve_policy(origin, &places, &disk));
    look(find_user_policy(&places, &disk));
    let hooks = config.hook.values();
    for name in hooks.filter_map(|hook| hook.policy.clone()) {
        look(Origin::Hook(name));
    }
    for folder in [Some(caller.folder), caller.project].into_iter().flatten() {
        let mut from = Some(folder.to_owned());
        while let Some(folder) = from {
            let origin = find_policy(folder.as_str(), &places, &disk);
            from = above(&origin);
            look(origin);
        }
    }
    let mut files = disk.asked();
    files.retain(|file| {
        let name = file.file_name();
        file.is_absolute() && name.is_none_or(|name| !FILE_NAMES.contains(&name))
    });
    files
}

/// The policy that the configuration calls `name`: a file's absolute path or a template.
pub(crate) fn read(app: &App, name: &str) -> Result<Resolved, Failure> {
    let origin = hook_origin(name)?;
    resolve_policy(origin, &places(app), &Disk::default()).map_err(failure)
}

/// A relative path would be another file in each folder.
fn hook_origin(name: &str) -> Result<Origin, Failure> {
    if name.contains('/') && !name.starts_with('/') {
        return Err(Failure::from(format!(
            "the policy `{name}` that a hook is held to is neither an absolute path nor a template's name"
        ))
        .hint("mend `policy` below `[hook.…]` in boxery's configuration"));
    }
    Ok(Origin::Hook(name.to_owned()))
}

/// A policy that can't be used, with what to do about it.
fn failure(error: PolicyError) -> Failure {
    let hint = error.hint();
    Failure::from(error).hint(hint)
}
