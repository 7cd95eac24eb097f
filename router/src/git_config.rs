//! Whether a local `git` here could start another program.
//!
//! The repository's own configuration may hold only settings that are known to
//! start nothing; the user's and the system's must not hold one that does.

use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};

use crate::git_index::has_submodule;

/// Where git looks, besides the repository.
#[derive(Debug, Clone, Default)]
pub struct GitPlaces {
    /// The names of `GIT_*` variables in the environment.
    pub variables: Vec<String>,
    /// The user's and the system's configuration files, whether they exist or not.
    pub configurations: Vec<Utf8PathBuf>,
}

/// An index larger than this isn't looked through within the hook's deadline.
const LARGEST_INDEX: u64 = 64 << 20;
/// A configuration file larger than this isn't read.
const LARGEST_CONFIG: u64 = 1 << 20;

/// Sections of a repository's configuration in which no key starts a program
/// (git 2.47), and keys of `core` and `extensions` that don't.
const QUIET_SECTIONS: &[&str] = &[
    "user",
    "author",
    "committer",
    "branch",
    "init",
    "color",
    "advice",
    "status",
    "rerere",
    "pack",
    "index",
    "feature",
    "column",
    "rebase",
    "pull",
    "maintenance",
    "blame",
];
const QUIET_KEYS: &[&str] = &[
    "core.abbrev",
    "core.autocrlf",
    "core.bare",
    "core.bigfilethreshold",
    "core.checkstat",
    "core.commentchar",
    "core.compression",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.precomposeunicode",
    "core.preloadindex",
    "core.protecthfs",
    "core.protectntfs",
    "core.quotepath",
    "core.repositoryformatversion",
    "core.safecrlf",
    "core.sharedrepository",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.symlinks",
    "core.trustctime",
    "core.untrackedcache",
    "core.whitespace",
    "extensions.partialclone",
    "extensions.preciousobjects",
    "extensions.refstorage",
    "extensions.relativeworktrees",
    "extensions.worktreeconfig",
    "fetch.prune",
    "fetch.prunetags",
    "fetch.parallel",
    "commit.cleanup",
    "commit.verbose",
    "log.abbrevcommit",
    "log.date",
    "log.decorate",
    "log.follow",
    "merge.conflictstyle",
    "merge.ff",
    "push.autosetupremote",
    "push.default",
    "push.followtags",
    "diff.algorithm",
    "diff.colormoved",
    "diff.context",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renames",
    "diff.renamelimit",
    "remote.fetch",
    "remote.mirror",
    "remote.prune",
    "remote.push",
    "remote.pushurl",
    "remote.tagopt",
    "remote.url",
    "submodule.active",
    "submodule.url",
];
/// What in the user's or the system's configuration starts a program, or may.
const LOUD_SECTIONS: &[&str] = &["alias", "pager", "filter", "include", "includeif"];
const LOUD_KEYS: &[&str] = &[
    "core.fsmonitor",
    "core.hookspath",
    "core.pager",
    "core.attributesfile",
    "core.worktree",
    "diff.external",
    "diff.command",
    "diff.textconv",
    "diff.trustexitcode",
    "log.showsignature",
    "interactive.difffilter",
];

/// Why `git` in `folder` could start another program, in words; `None` when
/// nothing here makes it.
pub fn git_hazard(folder: &Utf8Path, places: &GitPlaces) -> Option<String> {
    if let Some(variable) = places.variables.first() {
        return Some(format!("the variable {variable} is set"));
    }
    places
        .configurations
        .iter()
        .find_map(|path| hazard_in_file(path.as_std_path(), is_loud))
        .or_else(|| repository_hazard(folder.as_std_path()))
}

fn repository_hazard(folder: &Path) -> Option<String> {
    let git = match find_git(folder) {
        Ok(None) => return None,
        Ok(Some(git)) => git,
        Err(problem) => return Some(problem),
    };
    let common = match std::fs::read_to_string(git.join("commondir")) {
        Ok(text) => git.join(text.trim_end_matches('\n')),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => git.clone(),
        Err(error) => return Some(format!("the repository can't be read: {error}")),
    };
    let not_quiet = |name: &str| !is_quiet(name);
    hazard_in_file(&common.join("config"), not_quiet)
        .or_else(|| hazard_in_file(&git.join("config.worktree"), not_quiet))
        .or_else(|| hazard_in_file(&common.join("config.worktree"), not_quiet))
        .or_else(|| hooks_hazard(&common.join("hooks")))
        .or_else(|| submodule_hazard(&git, &common))
}

/// `git status` starts git once more in every submodule, under that one's
/// configuration.
fn submodule_hazard(git: &Path, common: &Path) -> Option<String> {
    if common.join("modules").exists() {
        return Some("the repository has submodules".to_owned());
    }
    let index = match std::fs::metadata(git.join("index")) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Ok(metadata) if metadata.len() <= LARGEST_INDEX => std::fs::read(git.join("index")),
        Ok(_) => return Some("the repository's index is too large to look through".to_owned()),
        Err(error) => Err(error),
    };
    match index.ok().and_then(|index| has_submodule(&index)) {
        Some(false) => None,
        Some(true) => Some("the repository has submodules".to_owned()),
        None => Some("the repository's index can't be read".to_owned()),
    }
}

/// The git folder that git would use in `folder`.
fn find_git(folder: &Path) -> Result<Option<std::path::PathBuf>, String> {
    let folder = folder
        .canonicalize()
        .map_err(|error| format!("the folder can't be read: {error}"))?;
    for level in folder.ancestors() {
        let dot_git = level.join(".git");
        match std::fs::metadata(&dot_git) {
            // git passes by a folder that isn't one of its own and looks further up.
            Ok(metadata) if metadata.is_dir() && is_git_folder(&dot_git) => {
                return Ok(Some(dot_git));
            }
            Ok(metadata) if metadata.is_dir() => {
                return Err(format!("`{}` is not a git folder", dot_git.display()));
            }
            Ok(_) => {
                let text = std::fs::read_to_string(&dot_git)
                    .map_err(|error| format!("`.git` can't be read: {error}"))?;
                let target = text
                    .strip_prefix("gitdir: ")
                    .ok_or_else(|| "`.git` is not a git folder".to_owned())?;
                return Ok(Some(level.join(target.trim_end_matches('\n'))));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("`.git` can't be read: {error}")),
        }
        // git takes such a folder for a repository of its own.
        if level.join("HEAD").exists()
            && level.join("objects").exists()
            && level.join("refs").exists()
        {
            return Err("the folder looks like a bare repository".to_owned());
        }
    }
    Ok(None)
}

/// Whether git 2.47 certainly takes `folder` for a repository.
fn is_git_folder(folder: &Path) -> bool {
    let head = std::fs::symlink_metadata(folder.join("HEAD"))
        .ok()
        .filter(|head| head.is_file() && head.len() < 256)
        .and_then(|_| std::fs::read_to_string(folder.join("HEAD")).ok());
    let named = head.is_some_and(|head| {
        let head = head.strip_suffix('\n').unwrap_or(&head);
        head.starts_with("ref: refs/")
            || head.len() == 40 && head.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    named && folder.join("objects").is_dir() && folder.join("refs").is_dir()
}

/// `git status` itself runs `post-index-change`.
fn hooks_hazard(hooks: &Path) -> Option<String> {
    let entries = match std::fs::read_dir(hooks) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return Some(format!("the repository's hooks can't be read: {error}")),
    };
    for entry in entries {
        let Ok(entry) = entry else {
            return Some("the repository's hooks can't be read".to_owned());
        };
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.ends_with(".sample") {
            return Some(format!("the repository has the hook `{name}`"));
        }
    }
    None
}

fn hazard_in_file(path: &Path, hazardous: impl Fn(&str) -> bool) -> Option<String> {
    let shown = path.display();
    let text = match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return Some(format!("`{shown}` can't be read: {error}")),
        Ok(metadata) if !metadata.is_file() || metadata.len() > LARGEST_CONFIG => {
            return Some(format!("`{shown}` isn't a small plain file"));
        }
        Ok(_) => match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => return Some(format!("`{shown}` can't be read: {error}")),
        },
    };
    let Some(names) = setting_names(&text) else {
        return Some(format!("`{shown}` can't be parsed"));
    };
    names
        .into_iter()
        .find(|name| hazardous(name))
        .map(|name| format!("`{shown}` sets `{name}`"))
}

fn is_quiet(name: &str) -> bool {
    let section = name.split('.').next().unwrap_or(name);
    QUIET_KEYS.contains(&name) || QUIET_SECTIONS.contains(&section)
}

fn is_loud(name: &str) -> bool {
    let section = name.split('.').next().unwrap_or(name);
    LOUD_KEYS.contains(&name) || LOUD_SECTIONS.contains(&section)
}

/// Every `section.key` that a configuration sets, in lower case and without
/// subsections; a section without keys counts as `section.`. `None` for
/// anything that isn't plainly git's syntax.
fn setting_names(text: &str) -> Option<Vec<String>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut names = Vec::new();
    let mut section: Option<String> = None;
    for line in text.lines() {
        let mut line = line.trim();
        // A header may have a setting behind it on the same line.
        if let Some(rest) = line.strip_prefix('[') {
            let (header, after) = split_header(rest)?;
            let name: String = header
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
                .collect();
            if name.is_empty() {
                return None;
            }
            let name = name.to_ascii_lowercase();
            names.push(format!("{name}."));
            section = Some(name);
            line = after.trim();
        }
        if line.is_empty() || line.starts_with('#') || line.starts_with(';') {
            continue;
        }
        let key: String = line
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
            .collect();
        let rest = line[key.len()..].trim_start();
        if key.is_empty() || !(rest.is_empty() || rest.starts_with(['=', '#', ';'])) {
            return None;
        }
        names.push(format!(
            "{}.{}",
            section.as_ref()?,
            key.to_ascii_lowercase()
        ));
        // A value that goes on in the next line may hide what stands there.
        if line.ends_with('\\') {
            return None;
        }
    }
    // A section's own entry matters only where the whole section does.
    names
        .retain(|name| !name.ends_with('.') || LOUD_SECTIONS.contains(&name.trim_end_matches('.')));
    Some(names)
}

/// What stands between `[` and its `]`, quotes respected, and what follows.
fn split_header(text: &str) -> Option<(&str, &str)> {
    let mut quoted = false;
    let mut escaped = false;
    for (at, found) in text.char_indices() {
        match found {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return Some((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    None
}
