//! The files through which an agent can be told to run something on the laptop,
//! or to leave boxery's hook out: settings, hooks, plugins, MCP servers.
//!
//! A model that may write one of these can undo its pin, whichever agent reads
//! the file, so the list is the same for all. Names as documented in 2026.

use crate::{ADAPTERS, SettingsPaths, Surroundings};

/// Ends of paths that agents without an adapter read, in a project or a home.
const TAILS: &[(&str, &[&str])] = &[
    ("amazon-q", &[".amazonq/cli-agents", ".amazonq/mcp.json"]),
    (
        "amp",
        &[
            ".amp/plugins",
            ".amp/settings*",
            "amp/plugins",
            "amp/settings*",
        ],
    ),
    ("antigravity", &[".agents/hooks.json", ".agents/mcp*"]),
    (
        "cline",
        &[
            ".cline/hooks",
            ".clinerules/hooks",
            "Cline/Hooks",
            "cline_mcp_settings.json",
        ],
    ),
    (
        "codex",
        &[
            ".codex/config.toml",
            ".codex/hooks*",
            ".codex/plugins",
            ".codex/rules",
        ],
    ),
    (
        "copilot",
        &[
            ".copilot/config*",
            ".copilot/hooks",
            ".copilot/mcp*",
            ".copilot/settings*",
            ".github/copilot/settings*",
            ".github/hooks",
        ],
    ),
    ("crush", &[".crush.json", "crush.json"]),
    (
        "cursor",
        &[
            ".cursor/cli*",
            ".cursor/hooks*",
            ".cursor/mcp*",
            ".cursor/permissions*",
        ],
    ),
    (
        "devin",
        &[".devin/config*", ".devin/hooks*", "devin/config.json"],
    ),
    (
        "droid",
        &[".factory/hooks*", ".factory/mcp*", ".factory/settings*"],
    ),
    (
        "gemini",
        &[
            ".gemini/extensions",
            ".gemini/hooks",
            ".gemini/settings*",
            ".gemini/trusted*",
        ],
    ),
    ("goose", &[".agents/plugins", "goose/config.yaml"]),
    ("grok", &[".grok/hooks", ".grok/settings*"]),
    (
        "hermes",
        &[
            ".hermes/config.yaml",
            ".hermes/hooks",
            ".hermes/plugins",
            ".hermes/shell-hooks-allowlist.json",
        ],
    ),
    ("kimi", &[".kimi-code/config.toml", ".kimi/config.toml"]),
    ("kiro", &[".kiro/agents", ".kiro/hooks", ".kiro/settings"]),
    (
        "opencode",
        &[
            ".opencode/agent",
            ".opencode/command",
            ".opencode/plugin",
            ".opencode/plugins",
            ".opencode/tool",
            ".opencode/tools",
            "opencode.json",
            "opencode.jsonc",
            "opencode/plugin",
            "opencode/plugins",
            "opencode/tool",
            "opencode/tools",
        ],
    ),
    (
        "pi",
        &[
            ".pi/agent/extensions",
            ".pi/agent/settings*",
            ".pi/extensions",
            ".pi/settings*",
        ],
    ),
    ("qwen", &[".qwen/extensions", ".qwen/settings*"]),
    ("stella", &[".stella/settings*", ".stella/tools"]),
    (
        "vs-code",
        &[
            ".vscode/mcp.json",
            ".vscode/settings.json",
            ".vscode/tasks.json",
        ],
    ),
    (
        "windsurf",
        &[
            ".codeium/hooks.json",
            ".codeium/windsurf/hooks.json",
            ".codeium/windsurf/mcp*",
            ".windsurf/hooks.json",
            ".windsurf/mcp*",
        ],
    ),
    ("any", &[".mcp.json", "mcp.json"]),
];

/// What such a file is, for the sentence that refuses to write it.
const WHAT: &str = "an agent's settings";

/// Every file that any agent reads its settings, hooks, plugins or MCP servers
/// from: the adapters' own lists and those of agents that have none yet.
pub fn settings_paths(surroundings: &Surroundings<'_>) -> SettingsPaths {
    let mut all = SettingsPaths::default();
    for adapter in ADAPTERS {
        let SettingsPaths { paths, tails, own } = adapter.settings_paths(surroundings);
        all.paths.extend(paths);
        all.tails.extend(tails);
        all.own.extend(own);
    }
    let tails = TAILS.iter().flat_map(|(_, tails)| *tails);
    all.tails
        .extend(tails.map(|tail| ((*tail).to_owned(), WHAT)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tail_could_match_every_file_of_a_project() {
        for tail in TAILS.iter().flat_map(|(_, tails)| *tails) {
            assert!(!tail.starts_with(['/', '*']), "{tail}");
            assert!(!tail.ends_with('/'), "{tail}");
            let first = tail.split('/').next().expect("a component");
            assert!(!first.contains('*'), "{tail}");
        }
    }
}
