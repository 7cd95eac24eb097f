//! What the own file and fetch tools of each agent declare that they are about to do:
//! one table, so that an adapter only looks its tools up.

use boxery_router::ToolAction;

use crate::command_fields::{find_patch_paths, find_paths, walk};
use crate::payload::Node;

/// What stands in a tool's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// Paths under the usual keys.
    Paths,
    /// A patch, and the usual keys.
    Patch,
    /// URLs under `url` and `urls`.
    Urls,
}

/// Agents, their tools, what those declare (Claude Code 2.1.332, Codex 0.171, Hermes 0.19,
/// Windsurf as documented in 2026-11). The tool of Windsurf is the event's own name.
const TOOLS: &[(&str, &[&str], Holds)] = &[
    (
        "claude-code",
        &["Write", "Edit", "MultiEdit", "NotebookEdit", "fs_write"],
        Holds::Paths,
    ),
    ("claude-code", &["apply_patch"], Holds::Patch),
    ("claude-code", &["WebFetch"], Holds::Urls),
    ("codex", &["apply_patch"], Holds::Patch),
    ("hermes", &["write_file"], Holds::Paths),
    ("hermes", &["patch"], Holds::Patch),
    ("hermes", &["web_extract"], Holds::Urls),
    ("windsurf", &["pre_write_code"], Holds::Paths),
];

/// What a call of `tool` declares, if it is one of these tools.
///
/// A tool that writes and names no file is an error: nobody can tell what it does.
pub(crate) fn declared(
    agent: &str,
    tool: &str,
    input: &Node,
) -> Option<Result<ToolAction, String>> {
    let (_, _, holds) = TOOLS
        .iter()
        .find(|(known, tools, _)| *known == agent && tools.contains(&tool))?;
    let paths = match holds {
        Holds::Paths => find_paths(input),
        Holds::Patch => find_patch_paths(input),
        Holds::Urls => {
            let urls = find_urls(input);
            return Some(Ok(ToolAction::Fetch { urls }));
        }
    };
    Some(if paths.is_empty() {
        Err(format!("`{tool}` names no file"))
    } else {
        Ok(ToolAction::Files { paths })
    })
}

/// Every text under `url` or `urls` of `input`, at any depth.
fn find_urls(input: &Node) -> Vec<String> {
    let mut urls = Vec::new();
    walk(input, &mut |key, text| {
        if matches!(key, "url" | "urls") {
            urls.push(text.to_owned());
        }
    });
    urls
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::parse_json;

    #[rstest]
    #[case::claude_write("claude-code", "Write", r#"{"file_path":"/p/a","content":"x"}"#, &["/p/a"])]
    #[case::claude_notebook("claude-code", "NotebookEdit", r#"{"notebook_path":"n.ipynb"}"#, &["n.ipynb"])]
    #[case::codex_patch("codex", "apply_patch", r#"{"command":"*** Begin Patch\n*** Add File: new.txt\n+hello\n*** Update File: old.txt\n*** Move to: sub/new.txt\n*** Delete File: gone\n*** End Patch\n"}"#, &["new.txt", "old.txt", "sub/new.txt", "gone"])]
    #[case::hermes_write("hermes", "write_file", r#"{"path":"/home/dev/acme/a.txt","content":"x"}"#, &["/home/dev/acme/a.txt"])]
    #[case::hermes_replace("hermes", "patch", r#"{"mode":"replace","path":"a.py","old_string":"x","new_string":"*** Add File: b"}"#, &["a.py", "b"])]
    #[case::hermes_patch("hermes", "patch", r#"{"mode":"patch","patch":"*** Begin Patch\n*** Update File: a.py\n*** End Patch"}"#, &["a.py"])]
    #[case::windsurf("windsurf", "pre_write_code", r#"{"file_path":"/p/a.ts","edits":[{"old_string":"x","new_string":"y"}]}"#, &["/p/a.ts"])]
    fn paths_are_declared(
        #[case] agent: &str,
        #[case] tool: &str,
        #[case] input: &str,
        #[case] want: &[&str],
    ) {
        let input = parse_json(input).expect("JSON");
        let paths = want.iter().map(|path| (*path).to_owned()).collect();
        assert_eq!(
            declared(agent, tool, &input),
            Some(Ok(ToolAction::Files { paths }))
        );
    }

    #[rstest]
    #[case::claude("claude-code", "WebFetch", r#"{"url":"https://docs.example/a","prompt":"x"}"#, &["https://docs.example/a"])]
    #[case::hermes_list("hermes", "web_extract", r#"{"urls":["https://a.example","https://b.example"]}"#, &["https://a.example", "https://b.example"])]
    #[case::hermes_one("hermes", "web_extract", r#"{"url":"https://a.example"}"#, &["https://a.example"])]
    fn urls_are_declared(
        #[case] agent: &str,
        #[case] tool: &str,
        #[case] input: &str,
        #[case] want: &[&str],
    ) {
        let input = parse_json(input).expect("JSON");
        let urls = want.iter().map(|url| (*url).to_owned()).collect();
        assert_eq!(
            declared(agent, tool, &input),
            Some(Ok(ToolAction::Fetch { urls }))
        );
    }

    #[rstest]
    #[case::another_tool("claude-code", "Read", r#"{"file_path":"/p/a"}"#)]
    #[case::another_agent("codex", "WebFetch", r#"{"url":"https://a.example"}"#)]
    fn other_tools_declare_nothing(#[case] agent: &str, #[case] tool: &str, #[case] input: &str) {
        let input = parse_json(input).expect("JSON");
        assert_eq!(declared(agent, tool, &input), None);
    }

    #[test]
    fn a_tool_that_names_no_file_is_an_error() {
        let input = parse_json("{}").expect("JSON");
        let found = declared("hermes", "write_file", &input);
        assert_eq!(found, Some(Err("`write_file` names no file".to_owned())));
    }
}
