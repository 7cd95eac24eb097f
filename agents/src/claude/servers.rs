//! What Claude Code's configuration says of MCP servers.

use camino::Utf8Path;

use super::sources::{Sources, config_folder, read_json};
use crate::Surroundings;
use crate::payload::Node;

/// The name under which boxery's own server is configured.
const OWN: &str = "boxery";

/// Whether every server that is configured as `boxery`, and at least one, is the
/// program `binary`. What can't be read may define another.
pub(crate) fn own_server(places: &Surroundings<'_>, sources: &Sources, binary: &Utf8Path) -> bool {
    // A file or text of the command line may define it too.
    if places
        .arguments
        .iter()
        .any(|argument| argument.starts_with("--mcp-config"))
    {
        return false;
    }
    let mut servers: Vec<Node> = Vec::new();
    let Some(files) = configurations(places) else {
        return false;
    };
    for file in &files {
        servers.extend(own_in(file));
        for (_, project) in file
            .get("projects")
            .and_then(Node::members)
            .unwrap_or_default()
        {
            servers.extend(own_in(project));
        }
    }
    for source in &sources.all {
        match &source.content {
            Ok(content) => servers.extend(own_in(content)),
            Err(_) => return false,
        }
    }
    !servers.is_empty() && servers.iter().all(|server| is_program(server, binary))
}

/// Every file that lists servers; `None` when one can't be read.
fn configurations(places: &Surroundings<'_>) -> Option<Vec<Node>> {
    let mut paths = vec![
        places.home.join(".claude.json"),
        config_folder(places).join(".claude.json"),
        places.machine.join("etc/claude-code/managed-mcp.json"),
    ];
    for folder in [places.project, places.folder].into_iter().flatten() {
        paths.extend(folder.ancestors().map(|level| level.join(".mcp.json")));
    }
    let mut found = Vec::new();
    for path in paths {
        match read_json(&path) {
            None => {}
            Some(Ok(content)) => found.push(content),
            Some(Err(_)) => return None,
        }
    }
    Some(found)
}

fn own_in(content: &Node) -> Option<Node> {
    content.get("mcpServers")?.get(OWN).cloned()
}

fn is_program(server: &Node, binary: &Utf8Path) -> bool {
    let command = server.get("command").and_then(Node::text);
    let is_ours = command.is_some_and(|command| {
        let command = Utf8Path::new(command);
        command.is_absolute() && command.canonicalize_utf8().is_ok_and(|path| path == binary)
    });
    let arguments = server.get("args").and_then(Node::list).unwrap_or_default();
    // A variable such as LD_PRELOAD makes any program another one.
    is_ours
        && server
            .get("env")
            .is_none_or(|env| env.members() == Some(&[]))
        && matches!(arguments, [Node::Text(verb)] if verb == "mcp")
}
