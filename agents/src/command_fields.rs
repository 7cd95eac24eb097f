//! Finds the command or the paths in the input of a tool that boxery doesn't know.

use crate::payload::Node;

/// The keys under which tools of any agent or MCP server take a command, in lower
/// case and without `_` and `-`: `shellCommand` and `Shell_Command` are one.
const COMMAND_KEYS: &[&str] = &[
    "bash",
    "cmd",
    "cmdline",
    "code",
    "command",
    "commandline",
    "commands",
    "script",
    "shellcommand",
    "testcmd",
];

fn is_command_key(key: &str) -> bool {
    let plain: String = key
        .chars()
        .filter(|c| !matches!(c, '_' | '-'))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    COMMAND_KEYS.contains(&plain.as_str())
}

/// The keys under which file tools take a path.
const PATH_KEYS: &[&str] = &["file_path", "notebook_path", "path"];

/// The first command in `input` at any depth: its key and its text.
pub(crate) fn find_command(input: &Node) -> Option<(String, String)> {
    match input {
        Node::Object(members) => {
            let here = members.iter().find_map(|(key, value)| {
                let text = is_command_key(key).then(|| texts(value))??;
                Some((key.clone(), text))
            });
            here.or_else(|| members.iter().find_map(|(_, value)| find_command(value)))
                .or_else(|| members.iter().find_map(program_of))
        }
        Node::List(list) => list.iter().find_map(find_command),
        Node::Null | Node::Bool(_) | Node::Number | Node::Text(_) => None,
    }
}

/// A program and its arguments in an object under a command key.
fn program_of((key, value): &(String, Node)) -> Option<(String, String)> {
    let parts = value.members().filter(|_| is_command_key(key))?;
    let words: Vec<String> = parts.iter().filter_map(|(_, part)| texts(part)).collect();
    (!words.is_empty()).then(|| (key.clone(), words.join("\n")))
}

/// A text that isn't empty, or the texts of a list, one a line; lists in it too.
fn texts(value: &Node) -> Option<String> {
    let text = match value {
        Node::Text(text) => text.clone(),
        Node::List(list) => {
            let texts: Vec<String> = list.iter().filter_map(texts).collect();
            texts.join("\n")
        }
        Node::Null | Node::Bool(_) | Node::Number | Node::Object(_) => String::new(),
    };
    (!text.is_empty()).then_some(text)
}

/// Every path under a path key of `input`, at any depth.
pub(crate) fn find_paths(input: &Node) -> Vec<String> {
    let mut paths = Vec::new();
    walk(input, &mut |key, text| {
        if PATH_KEYS.contains(&key) {
            paths.push(text.to_owned());
        }
    });
    paths
}

/// Longer texts are content.
const LONGEST_PATH: usize = 4096;

/// Everything in `input` that may be a path on the laptop, under whatever key.
pub(crate) fn find_all_paths(input: &Node) -> Vec<String> {
    let mut paths = find_paths(input);
    walk(input, &mut |key, text| {
        let key = key.to_ascii_lowercase();
        let is_named = ["path", "file", "dest", "source", "target", "uri"]
            .iter()
            .any(|word| key.contains(word));
        let is_short = text.len() <= LONGEST_PATH && !text.trim_end().contains('\n');
        let looks_so = text.contains('/') || text.trim_start().starts_with(['.', '~']);
        if is_short
            && !text.is_empty()
            && (is_named || looks_so)
            && !paths.iter().any(|p| p == text)
        {
            paths.push(text.to_owned());
        }
    });
    paths
}

/// Every path that a patch anywhere in `input` names, in Codex's form or as a
/// unified diff.
pub(crate) fn find_patch_paths(input: &Node) -> Vec<String> {
    const HEADS: &[&str] = &[
        "*** Add File: ",
        "*** Update File: ",
        "*** Delete File: ",
        "*** Move to: ",
        "+++ ",
        "--- ",
        "rename to ",
        "rename from ",
        "copy to ",
    ];
    let mut paths = find_paths(input);
    walk(input, &mut |_, text| {
        for line in text.lines() {
            let Some((head, rest)) = HEADS
                .iter()
                .find_map(|head| Some((*head, line.strip_prefix(head)?)))
            else {
                continue;
            };
            let path = rest.split('\t').next().unwrap_or(rest).trim();
            if path == "/dev/null" || path.is_empty() {
                continue;
            }
            paths.push(path.to_owned());
            let bare = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/"));
            if let Some(bare) = bare.filter(|_| matches!(head, "+++ " | "--- ")) {
                paths.push(bare.to_owned());
            }
        }
    });
    paths
}

/// Calls `see` with each text and the key it stands under.
pub(crate) fn walk(node: &Node, see: &mut dyn FnMut(&str, &str)) {
    fn step(key: &str, node: &Node, see: &mut dyn FnMut(&str, &str)) {
        match node {
            Node::Text(text) => see(key, text),
            Node::List(list) => list.iter().for_each(|node| step(key, node, see)),
            Node::Object(members) => {
                for (key, node) in members {
                    step(key, node, see);
                }
            }
            Node::Null | Node::Bool(_) | Node::Number => {}
        }
    }
    step("", node, see);
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::parse_json;

    #[rstest]
    #[case::plain(r#"{"command":"id"}"#, Some(("command", "id")))]
    #[case::deep(r#"{"a":[{"b":{"cmd":"id"}}]}"#, Some(("cmd", "id")))]
    #[case::a_list(r#"{"commands":["cd x","id"]}"#, Some(("commands", "cd x\nid")))]
    #[case::argv(r#"{"command":["sh","-c","id"]}"#, Some(("command", "sh\n-c\nid")))]
    #[case::argvs(r#"{"commands":[["sh","-c","id"]]}"#, Some(("commands", "sh\n-c\nid")))]
    #[case::script(r#"{"script":"id"}"#, Some(("script", "id")))]
    #[case::shell_command(r#"{"shell_command":"id"}"#, Some(("shell_command", "id")))]
    #[case::test_cmd(r#"{"test_cmd":"make"}"#, Some(("test_cmd", "make")))]
    #[case::objects_in_a_list(r#"{"commands":[{"command":"id"}]}"#, Some(("command", "id")))]
    #[case::below_a_command_key(r#"{"command":{"script":"id"}}"#, Some(("script", "id")))]
    #[case::other_case(r#"{"Command":"id"}"#, Some(("Command", "id")))]
    #[case::camel_case(r#"{"shellCommand":"id"}"#, Some(("shellCommand", "id")))]
    #[case::command_line(r#"{"command_line":"id"}"#, Some(("command_line", "id")))]
    #[case::code(r#"{"code":"import os"}"#, Some(("code", "import os")))]
    #[case::a_program(
        r#"{"command":{"program":"sh","args":["-c","id"]}}"#,
        Some(("command", "sh\n-c\nid"))
    )]
    #[case::empty(r#"{"command":""}"#, None)]
    #[case::a_number(r#"{"command":7}"#, None)]
    #[case::another_key(r#"{"prompt":"run the command id"}"#, None)]
    #[case::no_object(r#""command""#, None)]
    fn a_command_is_found_wherever_it_stands(
        #[case] input: &str,
        #[case] want: Option<(&str, &str)>,
    ) {
        let input = parse_json(input).expect("JSON");
        let want = want.map(|(key, text)| (key.to_owned(), text.to_owned()));
        assert_eq!(find_command(&input), want);
    }

    #[rstest]
    #[case::keys(r#"{"path":"a","destination":"b"}"#, &["a", "b"])]
    #[case::lists(r#"{"paths":["a","b"]}"#, &["a", "b"])]
    #[case::by_its_look(r#"{"x":"~/.bashrc","y":"../z","w":"/etc/x"}"#, &["~/.bashrc", "../z", "/etc/x"])]
    #[case::content(r#"{"content":"see a/b\nand c/d"}"#, &[])]
    #[case::words(r#"{"query":"what is this"}"#, &[])]
    fn whatever_may_be_a_path_is_found(#[case] input: &str, #[case] want: &[&str]) {
        assert_eq!(find_all_paths(&parse_json(input).expect("JSON")), want);
    }

    #[test]
    fn a_patch_names_its_paths() {
        let patch = "*** Begin Patch\n*** Add File: a.rs\n+x\n*** Update File: b c.rs\n\
                     *** Move to: d.rs\n*** Delete File: e\n*** End Patch\n\
                     --- a/f.rs\t2026\n+++ b/f.rs\n--- /dev/null\n";
        let input = Node::Object(vec![("command".to_owned(), Node::Text(patch.to_owned()))]);
        assert_eq!(
            find_patch_paths(&input),
            [
                "a.rs", "b c.rs", "d.rs", "e", "a/f.rs", "f.rs", "b/f.rs", "f.rs"
            ]
        );
    }
}
