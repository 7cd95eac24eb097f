//! Every settings file that a session of Claude Code reads.

use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use super::arguments::Arguments;
use super::programs::{notes, programs};
use crate::payload::{self, Node};
use crate::places::{InstallScope, folder_above};
use crate::{SettingsPaths, Surroundings};

/// Whose settings they are; the first that holds a single value wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    Managed,
    CommandLine,
    Local,
    Project,
    User,
}

impl Scope {
    /// Its word in `--setting-sources`; the others can't be left out.
    fn word(self) -> Option<&'static str> {
        match self {
            Self::Managed | Self::CommandLine => None,
            Self::Local => Some("local"),
            Self::Project => Some("project"),
            Self::User => Some("user"),
        }
    }
}

/// One settings file, or what stands for one.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) scope: Scope,
    /// Where it stands, in words.
    pub(crate) place: String,
    /// Whether this session reads it.
    pub(crate) is_read: bool,
    pub(crate) content: Result<Node, String>,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) all: Vec<Source>,
    pub(crate) arguments: Arguments,
    /// Whether the user accepted Claude Code's question about this project.
    pub(crate) project_is_trusted: bool,
}

/// The user's folder of Claude Code.
pub(crate) fn config_folder(places: &Surroundings<'_>) -> Utf8PathBuf {
    match places.settings {
        Some(folder) => folder.to_owned(),
        None => places.home.join(".claude"),
    }
}

/// The file of a scope that an install writes; `None` without a project.
pub(crate) fn settings_file(places: &Surroundings<'_>, scope: InstallScope) -> Option<Utf8PathBuf> {
    let project = || places.project.map(|folder| folder.join(".claude"));
    match scope {
        InstallScope::User => Some(config_folder(places).join("settings.json")),
        InstallScope::Project => Some(project()?.join("settings.json")),
        InstallScope::Local => Some(project()?.join("settings.local.json")),
    }
}

/// Every file from which a session takes settings, hooks, plugins or MCP servers.
/// Agents and skills may bring hooks along in their front matter.
pub(crate) fn settings_paths(places: &Surroundings<'_>) -> SettingsPaths {
    const NAMES: &[(&str, &str)] = &[
        ("settings*", "Claude Code's settings"),
        ("hooks", "Claude Code's hooks"),
        ("agents", "Claude Code's agents, which may hold hooks"),
        ("commands", "Claude Code's commands, which may hold hooks"),
        ("skills", "Claude Code's skills, which may hold hooks"),
        ("plugins", "Claude Code's plugins"),
        ("statusline*", "Claude Code's status line program"),
    ];
    let folder = config_folder(places);
    let mut paths = vec![
        (
            places.machine.join("etc/claude-code"),
            "Claude Code's managed settings",
        ),
        (
            places.home.join(".claude.json"),
            "Claude Code's own state and MCP servers",
        ),
        (
            folder.join(".claude.json"),
            "Claude Code's own state and MCP servers",
        ),
    ];
    for name in ["settings.json", "settings.local.json"] {
        paths.push((folder.join(name), "Claude Code's settings"));
    }
    for (name, what) in NAMES.iter().filter(|(name, _)| !name.ends_with('*')) {
        paths.push((folder.join(name), *what));
    }
    let mut tails: Vec<(String, &'static str)> = NAMES
        .iter()
        .map(|(name, what)| (format!(".claude/{name}"), *what))
        .collect();
    tails.push((".claude-plugin".to_owned(), "a Claude Code plugin"));
    let programs = programs(places).into_iter();
    paths.extend(programs.map(|path| (path, "a program that Claude Code starts here")));
    SettingsPaths {
        paths,
        tails,
        own: notes(places),
    }
}

impl Sources {
    /// Reads them all; a file that doesn't exist isn't one.
    pub(crate) fn read(places: &Surroundings<'_>) -> Self {
        let arguments = Arguments::parse(places.arguments);
        let mut sources = Vec::new();
        for (scope, path) in files(places) {
            sources.extend(read_file(scope, &path));
        }
        for settings in &arguments.settings {
            sources.push(read_argument(settings, places));
        }
        sources.sort_by_key(|source| source.scope);
        if let Some(wanted) = &arguments.sources {
            for source in &mut sources {
                if let Some(word) = source.scope.word() {
                    source.is_read = wanted.iter().any(|wanted| wanted == word);
                }
            }
        }
        Self {
            all: sources,
            arguments,
            project_is_trusted: project_is_trusted(places),
        }
    }

    /// The single value under `path`, from the first scope that has it.
    pub(crate) fn value(&self, path: &[&str]) -> Option<(&Source, &Node)> {
        self.all
            .iter()
            .filter(|source| source.is_read)
            .find_map(|source| Some((source, find(source.content.as_ref().ok()?, path)?)))
    }
}

/// The value under a path of keys.
pub(crate) fn find<'a>(node: &'a Node, path: &[&str]) -> Option<&'a Node> {
    path.iter().try_fold(node, |node, key| node.get(key))
}

fn files(places: &Surroundings<'_>) -> Vec<(Scope, Utf8PathBuf)> {
    let managed = places.machine.join("etc/claude-code");
    let mut files = Vec::new();
    // Later files of the folder override earlier ones, and all of them the first.
    let mut parts: Vec<Utf8PathBuf> = managed
        .join("managed-settings.d")
        .read_dir_utf8()
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.into_path()))
        .filter(|path| path.extension() == Some("json"))
        .collect();
    parts.sort_unstable_by(|a, b| b.cmp(a));
    files.extend(parts.into_iter().map(|path| (Scope::Managed, path)));
    files.push((Scope::Managed, managed.join("managed-settings.json")));
    // Without the agent's own word, the call's folder is the best guess.
    if let Some(project) = places.project.or(places.folder) {
        let local = ".claude/settings.local.json";
        files.push((Scope::Local, project.join(local)));
        // Claude Code 2.1 writes the local file at the top of the repository.
        if let Some(top) = folder_above(project, ".git").filter(|top| top != project) {
            files.push((Scope::Local, top.join(local)));
        }
        files.push((Scope::Project, project.join(".claude/settings.json")));
    }
    files.push((Scope::User, config_folder(places).join("settings.json")));
    files
}

/// Claude Code keeps the answer in its own state file, under the project's folder.
fn project_is_trusted(places: &Surroundings<'_>) -> bool {
    let state = places.settings.unwrap_or(places.home).join(".claude.json");
    let Some(Ok(state)) = read_json(&state) else {
        return false;
    };
    places.project.is_some_and(|project| {
        find(
            &state,
            &["projects", project.as_str(), "hasTrustDialogAccepted"],
        )
        .is_some_and(Node::is_true)
    })
}

fn read_file(scope: Scope, path: &Utf8Path) -> Option<Source> {
    Some(Source {
        scope,
        place: path.to_string(),
        is_read: true,
        content: read_json(path)?,
    })
}

/// The JSON in a file; `None` when there is no file.
pub(crate) fn read_json(path: &Utf8Path) -> Option<Result<Node, String>> {
    match fs::read(path) {
        Ok(bytes) => Some(parse(&bytes)),
        Err(error) if is_absent(&error) => None,
        Err(error) => Some(Err(error.to_string())),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn parse(bytes: &[u8]) -> Result<Node, String> {
    let text = payload::parse_text(bytes)?;
    if text.trim().is_empty() {
        return Ok(Node::Object(Vec::new()));
    }
    let node = payload::parse_json(text)?;
    match node.members() {
        Some(_) => Ok(node),
        None => Err("it isn't an object".to_owned()),
    }
}

fn read_argument(settings: &str, places: &Surroundings<'_>) -> Source {
    let source = |place: String, content| Source {
        scope: Scope::CommandLine,
        place,
        is_read: true,
        content,
    };
    if settings.trim_start().starts_with('{') {
        return source("--settings".to_owned(), parse(settings.as_bytes()));
    }
    let path = places.project.unwrap_or(Utf8Path::new("/")).join(settings);
    let content = read_json(&path).unwrap_or_else(|| Err("there is no such file".to_owned()));
    source(format!("--settings {path}"), content)
}
