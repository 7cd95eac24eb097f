//! What Claude Code's settings and plugins say of hooks.

use camino::{Utf8Path, Utf8PathBuf};

use super::front_matter::{Kind, Scan};
use super::sources::{Scope, Source, Sources, config_folder, read_json};
use crate::Surroundings;
use crate::entry;
use crate::payload::Node;
use crate::places::{FoundHook, HookEnvironment, Unreadable};

/// The events whose hooks can change or stop a shell call. A `PermissionRequest`
/// hook may answer with another input too.
pub(crate) const REWRITING_EVENTS: &[&str] = &["PreToolUse", "PermissionRequest"];

/// Reads all hooks of a session.
pub(crate) fn read_hooks(places: &Surroundings<'_>, sources: &Sources) -> HookEnvironment {
    let mut found = HookEnvironment {
        sandboxed: sources
            .value(&["sandbox", "enabled"])
            .is_some_and(|(_, value)| value.is_true()),
        disabled: sources
            .value(&["disableAllHooks"])
            .filter(|(_, value)| value.is_true())
            .map(|(source, _)| format!("`disableAllHooks` in {}", source.place)),
        managed_only: sources.all.iter().find_map(managed_only),
        ..HookEnvironment::default()
    };
    for source in &sources.all {
        match &source.content {
            Ok(content) => {
                if let Some(hooks) = content.get("hooks") {
                    collect(hooks, &source.place, &mut found);
                }
            }
            Err(problem) => found.unreadable.push(Unreadable {
                place: source.place.clone(),
                problem: problem.clone(),
            }),
        }
    }
    let mut scan = Scan::default();
    for folder in definition_folders(places, sources) {
        for kind in Kind::ALL {
            scan.path(&folder.join(kind.as_str()), kind, &mut found);
        }
    }
    for (name, folder) in plugins(places, sources, &mut found.unreadable) {
        read_plugin(&name, &folder, &mut scan, &mut found);
    }
    let agents = sources.arguments.agents.iter();
    for problem in agents.filter_map(|agents| agents_with_hooks(agents)) {
        found.unreadable.push(problem);
    }
    found
}

/// The folders beside whose `agents`, `commands` and `skills` a session looks.
fn definition_folders(places: &Surroundings<'_>, sources: &Sources) -> Vec<Utf8PathBuf> {
    let mut folders = vec![
        config_folder(places),
        places.machine.join("etc/claude-code/.claude"),
    ];
    let base = places.project.or(places.folder);
    // Claude Code looks from the project upwards, and below it as files are met.
    for start in [places.project, places.folder].into_iter().flatten() {
        for folder in start.ancestors() {
            let folder = folder.join(".claude");
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
    }
    for folder in &sources.arguments.more_folders {
        folders.push(
            base.unwrap_or(Utf8Path::new("/"))
                .join(folder)
                .join(".claude"),
        );
    }
    folders
}

/// Agents that the command line defines, when they may have hooks.
fn agents_with_hooks(agents: &str) -> Option<Unreadable> {
    let may_hook = agents.contains("hooks") || agents.contains('\\');
    may_hook.then(|| Unreadable {
        place: "--agents".to_owned(),
        problem: "an agent there may have hooks".to_owned(),
    })
}

fn managed_only(source: &Source) -> Option<String> {
    let content = source.content.as_ref().ok()?;
    let strict = match content.get("strictPluginOnlyCustomization") {
        Some(Node::Bool(strict)) => *strict,
        Some(Node::List(list)) => list.iter().any(|kind| kind.text() == Some("hooks")),
        _ => false,
    };
    let key = match content
        .get("allowManagedHooksOnly")
        .is_some_and(Node::is_true)
    {
        true => "allowManagedHooksOnly",
        false if strict => "strictPluginOnlyCustomization",
        false => return None,
    };
    (source.scope == Scope::Managed).then(|| format!("`{key}` in {}", source.place))
}

/// Sorts the hooks of one `hooks` object into our own and those that may rewrite.
fn collect(hooks: &Node, place: &str, found: &mut HookEnvironment) {
    let Some(events) = hooks.members() else {
        found.unreadable.push(Unreadable {
            place: place.to_owned(),
            problem: "`hooks` isn't an object".to_owned(),
        });
        return;
    };
    for (event, groups) in events {
        for group in groups.list().unwrap_or_default() {
            let may_match = may_match_shell(group.get("matcher"));
            for hook in group.get("hooks").and_then(Node::list).unwrap_or_default() {
                let hook_found = FoundHook {
                    event: event.clone(),
                    command: describe(hook),
                    place: place.to_owned(),
                };
                let command = hook.get("command").and_then(Node::text);
                if command.is_some_and(|command| entry::is_own(command, "claude-code")) {
                    found.own.push(hook_found);
                } else if may_match
                    && REWRITING_EVENTS.contains(&event.as_str())
                    && can_rewrite(hook)
                {
                    found.rewriters.push(hook_found);
                }
            }
        }
    }
}

/// A prompt or agent hook answers yes or no; one that isn't waited for answers nothing.
fn can_rewrite(hook: &Node) -> bool {
    let kind = hook.get("type").and_then(Node::text);
    !matches!(kind, Some("prompt" | "agent")) && !hook.get("async").is_some_and(Node::is_true)
}

fn describe(hook: &Node) -> String {
    let text = |key| hook.get(key).and_then(Node::text);
    let arguments = hook.get("args").and_then(Node::list).unwrap_or_default();
    let mut words: Vec<&str> = vec![
        text("command")
            .or_else(|| text("url"))
            .or_else(|| text("tool"))
            .or_else(|| text("type"))
            .unwrap_or("a hook without a command"),
    ];
    words.extend(arguments.iter().filter_map(Node::text));
    words.join(" ")
}

/// Whether a matcher may match Bash or Monitor. Without a regular expression
/// engine that reads JavaScript's, one that isn't a plain list counts as a match
/// unless no part of it can.
fn may_match_shell(matcher: Option<&Node>) -> bool {
    let Some(matcher) = matcher.and_then(Node::text).map(str::trim) else {
        return true;
    };
    if matcher.is_empty() || matcher == "*" {
        return true;
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_- ,|".contains(c);
    if matcher.chars().all(is_plain) {
        return matcher
            .split(['|', ','])
            .any(|name| matches!(name.trim(), "Bash" | "Monitor"));
    }
    let bare = matcher
        .strip_prefix("^(")
        .and_then(|inner| inner.strip_suffix(")$"))
        .unwrap_or(matcher);
    if bare.contains(['(', ')', '[', ']', '\\']) {
        return true;
    }
    bare.split('|').any(may_alternative_match_shell)
}

/// The literal text with which an alternative begins must stand in the name.
fn may_alternative_match_shell(alternative: &str) -> bool {
    let alternative = alternative.trim_start_matches('^');
    let end = alternative
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))
        .unwrap_or(alternative.len());
    let mut literal = &alternative[..end];
    // A quantifier takes the last character back.
    if alternative[end..].starts_with(['*', '?', '{']) {
        literal = &literal[..literal.len().saturating_sub(1)];
    }
    ["Bash", "Monitor"]
        .into_iter()
        .any(|tool| tool.contains(literal))
}

/// The enabled plugins and where they lie.
fn plugins(
    places: &Surroundings<'_>,
    sources: &Sources,
    unreadable: &mut Vec<Unreadable>,
) -> Vec<(String, Utf8PathBuf)> {
    let mut plugins: Vec<(String, Utf8PathBuf)> = sources
        .arguments
        .plugin_folders
        .iter()
        .map(|folder| {
            let base = places.project.unwrap_or(Utf8Path::new("/"));
            (folder.clone(), base.join(folder))
        })
        .collect();
    let mut names: Vec<&str> = Vec::new();
    for source in &sources.all {
        let enabled = source
            .content
            .as_ref()
            .ok()
            .and_then(|content| content.get("enabledPlugins")?.members());
        for (name, value) in enabled.unwrap_or_default() {
            if *value != Node::Bool(false) && !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    if names.is_empty() {
        return plugins;
    }
    let list = config_folder(places).join("plugins/installed_plugins.json");
    let installed = match read_json(&list) {
        Some(Ok(installed)) => installed,
        Some(Err(problem)) => {
            unreadable.push(Unreadable {
                place: list.to_string(),
                problem,
            });
            return plugins;
        }
        // Enabled by a setting, installed nowhere: nothing runs.
        None => return plugins,
    };
    for name in names {
        let Some(places) = installed
            .get("plugins")
            .and_then(|plugins| plugins.get(name))
        else {
            continue;
        };
        let single = std::slice::from_ref(places);
        for place in places.list().unwrap_or(single) {
            match place.get("installPath").and_then(Node::text) {
                Some(folder) => plugins.push((name.to_owned(), Utf8PathBuf::from(folder))),
                None => unreadable.push(Unreadable {
                    place: format!("plugin {name}"),
                    problem: format!("{list} doesn't say where it lies"),
                }),
            }
        }
    }
    plugins
}

/// The hooks of a plugin: `hooks/hooks.json`, and what its manifest names.
fn read_plugin(name: &str, folder: &Utf8Path, scan: &mut Scan, found: &mut HookEnvironment) {
    let place = format!("plugin {name}");
    for kind in Kind::ALL {
        scan.path(&folder.join(kind.as_str()), kind, found);
    }
    // What is wrong with the manifest is said below.
    if let Some(Ok(manifest)) = read_json(&folder.join(".claude-plugin/plugin.json")) {
        for kind in Kind::ALL {
            let single = manifest.get(kind.as_str()).and_then(Node::text);
            let list = manifest.get(kind.as_str()).and_then(Node::list);
            let several = list.unwrap_or_default().iter().filter_map(Node::text);
            for path in single.into_iter().chain(several) {
                scan.path(&folder.join(path), kind, found);
            }
        }
    }
    let mut read = |path: &Utf8Path, is_manifest: bool| -> Vec<Utf8PathBuf> {
        let content = match read_json(path) {
            None => return Vec::new(),
            Some(Ok(content)) => content,
            Some(Err(problem)) => {
                found.unreadable.push(Unreadable {
                    place: path.to_string(),
                    problem,
                });
                return Vec::new();
            }
        };
        match content.get("hooks") {
            Some(Node::Text(path)) if is_manifest => vec![folder.join(path)],
            Some(Node::List(paths)) if is_manifest => paths
                .iter()
                .filter_map(Node::text)
                .map(|path| folder.join(path))
                .collect(),
            Some(hooks) => {
                collect(hooks, &place, found);
                Vec::new()
            }
            None if is_manifest => Vec::new(),
            None => {
                collect(&content, &place, found);
                Vec::new()
            }
        }
    };
    let standard = folder.join("hooks/hooks.json");
    let named = read(&folder.join(".claude-plugin/plugin.json"), true);
    for path in
        std::iter::once(standard.clone()).chain(named.into_iter().filter(|path| *path != standard))
    {
        read(&path, false);
    }
}
