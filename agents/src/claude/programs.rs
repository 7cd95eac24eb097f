//! Which files of the laptop Claude Code's configuration starts, and which folders
//! it keeps for the model's own notes.

use camino::{Utf8Path, Utf8PathBuf};

use super::sources::{Sources, config_folder, read_json};
use crate::Surroundings;
use crate::command_fields::walk;
use crate::payload::Node;

/// Settings that name a program (Claude Code 2.1).
const KEYS: &[&str] = &[
    "apiKeyHelper",
    "awsAuthRefresh",
    "awsCredentialExport",
    "fileSuggestion",
    "gcpAuthRefresh",
    "hooks",
    "mcpServers",
    "otelHeadersHelper",
    "statusLine",
    "subagentStatusLine",
];

/// Where the agent keeps what the model writes down for itself.
const NOTES: &[&str] = &[
    "CLAUDE.md",
    "memory",
    "plans",
    "projects",
    "tasks",
    "teams",
    "todos",
];

/// The files and folders that the configuration starts something from. A program
/// that starts others by itself, such as `npm run`, is as far as this sees.
pub(crate) fn programs(places: &Surroundings<'_>) -> Vec<Utf8PathBuf> {
    let sources = Sources::read(places);
    let base = places
        .project
        .or(places.folder)
        .unwrap_or(Utf8Path::new("/"));
    let mut contents: Vec<Node> = Vec::new();
    for file in [
        base.join(".mcp.json"),
        places.home.join(".claude.json"),
        config_folder(places).join(".claude.json"),
    ] {
        contents.extend(read_json(&file).and_then(Result::ok));
    }
    let settings = sources.all.iter().filter_map(|s| s.content.as_ref().ok());
    let mut found = Vec::new();
    for content in settings.chain(&contents) {
        for value in KEYS.iter().filter_map(|key| content.get(key)) {
            walk(value, &mut |_, text| {
                found.extend(files_in(text, places.home, base));
            });
        }
    }
    let folders = sources.arguments.plugin_folders.iter();
    found.extend(folders.map(|folder| base.join(folder)));
    found
}

/// The existing files that words of a command name.
fn files_in(command: &str, home: &Utf8Path, base: &Utf8Path) -> Vec<Utf8PathBuf> {
    let words = shlex::split(command)
        .unwrap_or_else(|| command.split_whitespace().map(str::to_owned).collect());
    let paths = words.iter().map(|word| {
        let word = word
            .replace("${CLAUDE_PROJECT_DIR}", base.as_str())
            .replace("$CLAUDE_PROJECT_DIR", base.as_str())
            .replace("${HOME}", home.as_str())
            .replace("$HOME", home.as_str());
        match word.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            None => base.join(word),
        }
    });
    paths.filter(|path| path.is_file()).collect()
}

/// The folders of the model's own notes.
pub(crate) fn notes(places: &Surroundings<'_>) -> Vec<Utf8PathBuf> {
    let folder = config_folder(places);
    NOTES.iter().map(|name| folder.join(name)).collect()
}
