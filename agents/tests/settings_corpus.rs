//! Settings files through install, install and uninstall: byte for byte as they
//! were, or refused and left alone.

#![expect(
    clippy::expect_used,
    reason = "a test support function may fail the test"
)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use boxery_agents::{ADAPTERS, HookEntry, Plan, SettingsError, hook_command, is_own};
use camino::{Utf8Path, Utf8PathBuf};
use rstest::rstest;
use serde_json::Value;

fn entry_for(binary: &str) -> HookEntry {
    let adapter = ADAPTERS
        .iter()
        .find(|adapter| adapter.name() == "claude-code")
        .expect("the adapter");
    let (events, timeout) = adapter.hook_events();
    HookEntry {
        agent: adapter.name(),
        command: hook_command(Utf8Path::new(binary), adapter.name()).expect("quotable"),
        events,
        timeout,
    }
}

fn entry() -> HookEntry {
    entry_for("/usr/local/bin/boxery")
}

struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path())
            .expect("UTF-8")
            .join(name)
    }

    fn with(content: &[u8]) -> (Self, Utf8PathBuf) {
        let folder = Self::new();
        let path = folder.path("settings.json");
        put(&path, content);
        (folder, path)
    }

    /// Every name in it, with what it is.
    fn listing(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.folder.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry"))
            .map(|entry| format!("{} {:?}", entry.file_name().display(), entry.file_type()))
            .collect();
        names.sort();
        names
    }
}

#[expect(clippy::disallowed_methods, reason = "nobody reads it meanwhile")]
fn put(path: &Utf8Path, content: &[u8]) {
    fs::write(path, content).expect("a file");
}

fn install(path: &Utf8Path, entry: &HookEntry) -> Result<(), SettingsError> {
    Plan::install(path, entry)?.apply()
}

fn uninstall(path: &Utf8Path) -> Result<(), SettingsError> {
    Plan::uninstall(path, "claude-code")?.apply()
}

fn json(path: &Utf8Path) -> Value {
    let bytes = fs::read(path).expect("a file");
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    serde_json::from_slice(bytes).expect("JSON")
}

/// The events in which the entry stands, and the document without it.
fn take_out(mut document: Value, entry: &HookEntry) -> (Vec<String>, Value) {
    let mut events = Vec::new();
    let hooks = document["hooks"].as_object_mut().expect("hooks");
    for (event, groups) in hooks.iter_mut() {
        let groups = groups.as_array_mut().expect("groups");
        groups.retain(|group| {
            let wanted = serde_json::json!({
                "hooks": [{"type": "command", "command": entry.command, "timeout": entry.timeout}]
            });
            if *group == wanted {
                events.push(event.clone());
            }
            *group != wanted
        });
    }
    hooks.retain(|event, groups| {
        groups.as_array().is_some_and(|groups| !groups.is_empty()) || !events.contains(event)
    });
    events.sort();
    (events, document)
}

const OTHERS: &str = r#"{
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          { "type": "command", "command": "/opt/lint && echo '<ok>'" },
          { "type": "command", "command": "/opt/boxery-lint/boxery hook run claude-code" }
        ]
      }
    ],
    "Stop": [{ "hooks": [{ "type": "command", "command": "afplay ding.aiff", "timeout": 5 }] }]
  },
  "model": "opus"
}
"#;

#[rstest]
#[case::empty_object("{}")]
#[case::empty_object_with_a_newline("{}\n")]
#[case::empty_object_with_a_space("{ }")]
#[case::empty_object_over_two_lines("{\n}\n")]
#[case::empty_object_with_white_space("\n { \t }\n\n")]
#[case::one_key("{\n  \"model\": \"opus\"\n}\n")]
#[case::no_final_newline("{\n  \"model\": \"opus\"\n}")]
#[case::four_spaces(
    "{\n    \"model\": \"opus\",\n    \"env\": {\n        \"A\": \"b\"\n    }\n}\n"
)]
#[case::tabs("{\n\t\"model\": \"opus\",\n\t\"env\": {\n\t\t\"A\": \"b\"\n\t}\n}\n")]
#[case::no_indentation("{\n\"model\": \"opus\"\n}\n")]
#[case::crlf("{\r\n  \"model\": \"opus\"\r\n}\r\n")]
#[case::crlf_with_hooks("{\r\n  \"hooks\": {\r\n    \"Stop\": []\r\n  }\r\n}\r\n")]
#[case::crlf_no_final("{\r\n\t\"model\": \"opus\"\r\n}")]
#[case::mixed_line_ends("{\r\n  \"a\": 1,\n  \"b\": 2\r\n}\n")]
#[case::carriage_returns_only("{\r  \"a\": 1\r}\r")]
#[case::byte_order_mark("\u{feff}{\n  \"model\": \"opus\"\n}\n")]
#[case::byte_order_mark_and_crlf("\u{feff}{\r\n  \"model\": \"opus\"\r\n}")]
#[case::byte_order_mark_alone("\u{feff}")]
#[case::nothing("")]
#[case::a_newline("\n")]
#[case::two_newlines("\n\n")]
#[case::blanks("  \t ")]
#[case::crlf_alone("\r\n")]
#[case::minified(r#"{"model":"opus","env":{"A":"b"}}"#)]
#[case::minified_with_hooks(r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"x"}]}]},"a":1}"#)]
#[case::minified_with_a_newline("{\"model\":\"opus\"}\n")]
#[case::spaced_on_one_line(r#"{ "model": "opus", "hooks": { "Stop": [ ] } }"#)]
#[case::odd_spacing("{\"a\" :1 ,\n\n   \"b\":  [1,2\n,3] ,\"c\":{} }\n")]
#[case::comma_first("{\n    \"a\": 1\n  , \"b\": 2\n}\n")]
#[case::big_integers(
    "{\n  \"a\": 123456789012345678901234567890,\n  \"b\": 9007199254740993,\n  \"c\": 1.0,\n  \"d\": 1e2\n}\n"
)]
#[case::ampersands_and_brackets(
    "{\n  \"a\": \"x && y < z > w\",\n  \"b\": \"\\u0026\\u003c\\/\"\n}\n"
)]
#[case::escapes_and_unicode(
    "{\n  \"\\u006dodel\": \"\\u00e9\u{e9}\u{2028}\\ud83d\\ude00\u{1f600}\"\n}\n"
)]
#[case::brackets_in_strings("{\n  \"a\": \"}],{[\\\"\",\n  \"hooks\": {}\n}\n")]
#[case::deep(&format!("{{\n  \"a\": {}1{}\n}}\n", "[".repeat(100), "]".repeat(100)))]
#[case::empty_hooks("{\n  \"hooks\": {}\n}\n")]
#[case::empty_hooks_first("{\n  \"hooks\": {},\n  \"a\": 1\n}\n")]
#[case::empty_hooks_over_two_lines("{\n  \"hooks\": {\n  }\n}\n")]
#[case::empty_event("{\n  \"hooks\": {\n    \"PreToolUse\": []\n  }\n}\n")]
#[case::empty_events(r#"{"hooks":{"PreToolUse":[],"PostToolUse":[ ],"SessionEnd":[]}}"#)]
#[case::empty_event_over_two_lines("{\n  \"hooks\": {\n    \"SessionStart\": [\n    ]\n  }\n}\n")]
#[case::empty_group("{\"hooks\": {\"PreToolUse\": [{}]}}")]
#[case::group_without_handlers("{\"hooks\": {\"PreToolUse\": [{\"hooks\": []}]}}\n")]
#[case::hooks_of_other_tools(OTHERS)]
#[case::only_other_events(
    "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": []\n      }\n    ]\n  }\n}\n"
)]
#[case::hooks_last("{\n  \"a\": 1,\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n")]
#[case::unknown_handlers(
    r#"{"hooks":{"PreToolUse":[{"hooks":[{"type":"http","url":"https://x"},7,null]}]}}"#
)]
#[case::permissions(
    "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(git:*)\"\n    ],\n    \"deny\": []\n  }\n}\n"
)]
#[case::a_key_like_ours(
    "{\n  \"x\": \"/usr/local/bin/boxery hook run claude-code || { s=$?; : boxery-hook-entry; }\"\n}\n"
)]
#[case::trailing_white_space("{\n  \"a\": 1   \n}   \n\n")]
#[case::space_in_front("  \n{\n  \"a\": 1\n}\n")]
fn an_install_can_be_taken_back_to_the_last_byte(#[case] original: &str) {
    let (folder, path) = Folder::with(original.as_bytes());
    let names = folder.listing();

    install(&path, &entry()).expect("an install");
    let installed = fs::read(&path).expect("a file");
    assert_ne!(installed, original.as_bytes());
    let (events, rest) = take_out(json(&path), &entry());
    let mut wanted: Vec<&str> = entry().events.to_vec();
    wanted.sort_unstable();
    assert_eq!(events, wanted);
    let text = original.trim_start_matches('\u{feff}');
    if !text.trim().is_empty() {
        let mut before: Value = serde_json::from_str(text).expect("JSON");
        let mut rest = rest;
        // An object or list that was made, or is now empty, says nothing.
        for document in [&mut before, &mut rest] {
            let object = document.as_object_mut().expect("an object");
            if let Some(Value::Object(hooks)) = object.get_mut("hooks") {
                hooks.retain(|_, groups| groups.as_array().is_none_or(|groups| !groups.is_empty()));
                if hooks.is_empty() {
                    object.remove("hooks");
                }
            }
        }
        assert_eq!(rest, before);
    }

    assert!(
        Plan::install(&path, &entry())
            .expect("a plan")
            .is_unchanged()
    );
    install(&path, &entry()).expect("an install");
    assert_eq!(fs::read(&path).expect("a file"), installed);

    uninstall(&path).expect("an uninstall");
    assert_eq!(
        String::from_utf8(fs::read(&path).expect("a file")).expect("UTF-8"),
        original
    );
    assert!(
        Plan::uninstall(&path, "claude-code")
            .expect("a plan")
            .is_unchanged()
    );
    assert_eq!(folder.listing(), names);
}

#[rstest]
#[case::line_comment(b"{\n  // mine\n  \"a\": 1\n}\n")]
#[case::block_comment(b"{ /* mine */ }")]
#[case::trailing_comma(b"{\n  \"a\": 1,\n}\n")]
#[case::single_quotes(b"{'a': 1}")]
#[case::bare_key(b"{a: 1}")]
#[case::missing_comma(b"{\"a\": 1 \"b\": 2}")]
#[case::half(b"{\"hooks\": {")]
#[case::two_documents(b"{}\n{}\n")]
#[case::garbage(b"hello")]
#[case::a_list(b"[]")]
#[case::a_string(b"\"x\"")]
#[case::null(b"null")]
#[case::utf16(b"\xff\xfe{\0}\0")]
#[case::utf16_big(b"\xfe\xff\0{\0}")]
#[case::latin1(b"{\"a\": \"\xe9\"}")]
#[case::nul(b"{\"a\": \"\0\"}")]
#[case::raw_newline_in_a_string(b"{\"a\": \"x\ny\"}")]
#[case::lone_surrogate(b"{\"a\": \"\\ud800\"}")]
#[case::key_twice(b"{\"hooks\": {}, \"hooks\": {}}")]
#[case::key_twice_deep(b"{\"a\": {\"b\": 1, \"b\": 2}}")]
#[case::hooks_no_object(b"{\"hooks\": []}")]
#[case::hooks_null(b"{\"hooks\": null}")]
#[case::event_no_list(b"{\"hooks\": {\"PreToolUse\": {}}}")]
#[case::group_no_object(b"{\"hooks\": {\"PreToolUse\": [7]}}")]
#[case::conflict_markers(b"<<<<<<< HEAD\n{}\n=======\n{\"a\":1}\n>>>>>>> x\n")]
#[case::two_marks(b"\xef\xbb\xbf\xef\xbb\xbf{}")]
#[case::not_a_number(b"{\"a\": NaN}")]
#[case::hexadecimal(b"{\"a\": 0x10}")]
fn what_the_agent_would_not_read_is_refused_and_left_alone(#[case] original: &[u8]) {
    let (folder, path) = Folder::with(original);
    let names = folder.listing();
    let error = install(&path, &entry()).expect_err("a refusal");
    assert!(matches!(error, SettingsError::Content { .. }), "{error}");
    assert_eq!(fs::read(&path).expect("a file"), original);
    drop(uninstall(&path).expect_err("a refusal"));
    assert_eq!(fs::read(&path).expect("a file"), original);
    assert_eq!(folder.listing(), names);
}

#[test]
fn too_deep_a_file_is_refused_and_left_alone() {
    let original = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let (_folder, path) = Folder::with(original.as_bytes());
    drop(install(&path, &entry()).expect_err("a refusal"));
    assert_eq!(fs::read(&path).expect("a file"), original.as_bytes());
}

#[rstest]
#[case::a_new_path(OTHERS)]
#[case::minified(r#"{"a":1}"#)]
#[case::nothing("")]
fn a_newer_binary_takes_the_place_of_the_older(#[case] original: &str) {
    let (_folder, path) = Folder::with(original.as_bytes());
    install(&path, &entry_for("/old/it's/boxery")).expect("an install");
    let old = fs::read_to_string(&path).expect("a file");
    let mut newer = entry();
    newer.timeout = 20;
    install(&path, &newer).expect("an install");
    let new = fs::read_to_string(&path).expect("a file");
    assert_eq!(take_out(json(&path), &newer).0.len(), newer.events.len());
    assert_eq!(new.lines().count(), old.lines().count());
    assert!(!new.contains("/old/"));
    uninstall(&path).expect("an uninstall");
    assert_eq!(fs::read_to_string(&path).expect("a file"), original);
}

/// Our own handler as it stands in a file.
fn handler(binary: &str) -> String {
    let entry = entry_for(binary);
    serde_json::json!({"type": "command", "command": entry.command, "timeout": entry.timeout})
        .to_string()
}

fn own_handlers(document: &Value) -> usize {
    match document {
        Value::Object(object) => {
            let here = object
                .get("command")
                .and_then(Value::as_str)
                .is_some_and(|command| is_own(command, "claude-code"));
            usize::from(here) + object.values().map(own_handlers).sum::<usize>()
        }
        Value::Array(list) => list.iter().map(own_handlers).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[rstest]
#[case::in_a_group_of_others(
    r#"{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"a"},OURS]}]}}"#,
    r#"{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"a"}]}]}}"#
)]
#[case::before_another(
    r#"{"hooks":{"PreToolUse":[{"hooks":[OURS , {"type":"command","command":"a"}]}]}}"#,
    r#"{"hooks":{"PreToolUse":[{"hooks":[ {"type":"command","command":"a"}]}]}}"#
)]
#[case::between_others(
    r#"{"hooks":{"Stop":[{"hooks":[{"a":1}, OURS, {"b":2}]}]}}"#,
    r#"{"hooks":{"Stop":[{"hooks":[{"a":1}, {"b":2}]}]}}"#
)]
#[case::in_an_event_of_an_older_version(
    r#"{"hooks":{"Stop":[{"hooks":[OURS]}],"PreCompact":[]}}"#,
    r#"{"hooks":{"Stop":[],"PreCompact":[]}}"#
)]
#[case::under_a_matcher(
    r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[OURS]}]}}"#,
    r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[]}]}}"#
)]
#[case::twice(
    r#"{"hooks":{"PreToolUse":[{"hooks":[OURS]},{"hooks":[OURS]},{"x":1}]}}"#,
    r#"{"hooks":{"PreToolUse":[{"x":1}]}}"#
)]
#[case::with_more_in_it(
    r#"{"hooks":{"PreToolUse":[{"hooks":[OURS]}],"Stop":[]}}"#,
    r#"{"hooks":{"PreToolUse":[],"Stop":[]}}"#
)]
fn only_our_own_is_taken_out_wherever_it_was_moved(#[case] moved: &str, #[case] want: &str) {
    for binary in ["/usr/local/bin/boxery", "/old/boxery"] {
        let (_folder, path) = Folder::with(moved.replace("OURS", &handler(binary)).as_bytes());
        uninstall(&path).expect("an uninstall");
        assert_eq!(fs::read_to_string(&path).expect("a file"), want);

        let (_folder, path) = Folder::with(moved.replace("OURS", &handler(binary)).as_bytes());
        install(&path, &entry()).expect("an install");
        let document = json(&path);
        assert_eq!(own_handlers(&document), entry().events.len());
        install(&path, &entry()).expect("an install");
        assert_eq!(json(&path), document);
        uninstall(&path).expect("an uninstall");
        assert_eq!(own_handlers(&json(&path)), 0);
    }
}

#[test]
fn an_entry_with_other_members_becomes_ours_again() {
    let changed = handler("/usr/local/bin/boxery").replace(r#""type""#, r#""async":true,"type""#);
    let original = format!(r#"{{"hooks":{{"PreToolUse":[{{"hooks":[{changed}]}}]}}}}"#);
    let (_folder, path) = Folder::with(original.as_bytes());
    install(&path, &entry()).expect("an install");
    assert_eq!(
        take_out(json(&path), &entry()).0.len(),
        entry().events.len()
    );
}

#[rstest]
#[case::reindented(|text: &str| text.replace("  ", "    "))]
#[case::compacted(|text: &str| serde_json::from_str::<Value>(text).expect("JSON").to_string())]
#[case::another_key(|text: &str| text.replacen('{', "{\n  \"new\": 1,", 1))]
fn a_file_that_was_edited_since_loses_only_our_entry(#[case] edit: fn(&str) -> String) {
    let (_folder, path) = Folder::with(OTHERS.as_bytes());
    install(&path, &entry()).expect("an install");
    let edited = edit(&fs::read_to_string(&path).expect("a file"));
    put(&path, edited.as_bytes());
    let (_, want) = take_out(json(&path), &entry());
    uninstall(&path).expect("an uninstall");
    // A file without white space doesn't tell which of its empty lists were made.
    let mut rest = json(&path);
    let hooks = rest["hooks"].as_object_mut().expect("hooks");
    hooks.retain(|_, groups| groups.as_array().is_none_or(|groups| !groups.is_empty()));
    assert_eq!(rest, want);
}

#[rstest]
#[case::in_a_folder(".claude", 0)]
#[case::with_its_folder("new/.claude", 1)]
#[case::with_two_folders("new/deep/.claude", 2)]
fn a_file_that_install_made_goes_again(#[case] below: &str, #[case] missing: usize) {
    let folder = Folder::new();
    if missing == 0 {
        fs::create_dir(folder.path(below)).expect("a folder");
    }
    let names = folder.listing();
    let path = folder.path(below).join("settings.json");
    install(&path, &entry()).expect("an install");
    let made = fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(made & 0o600, 0o600);
    let first = fs::read(&path).expect("a file");
    install(&path, &entry()).expect("an install");
    assert_eq!(fs::read(&path).expect("a file"), first);
    uninstall(&path).expect("an uninstall");
    assert_eq!(folder.listing(), names);
}

#[test]
fn a_folder_that_has_got_something_else_stays() {
    let folder = Folder::new();
    let path = folder.path("new/settings.json");
    install(&path, &entry()).expect("an install");
    put(&folder.path("new/mine"), b"x");
    uninstall(&path).expect("an uninstall");
    assert!(!path.exists());
    assert!(folder.path("new/mine").exists());
}

#[test]
fn a_file_that_got_other_settings_stays() {
    let folder = Folder::new();
    let path = folder.path("new/settings.json");
    install(&path, &entry()).expect("an install");
    let text = fs::read_to_string(&path).expect("a file");
    put(
        &path,
        text.replacen('{', "{\n  \"model\": \"opus\",", 1)
            .as_bytes(),
    );
    uninstall(&path).expect("an uninstall");
    assert_eq!(
        fs::read_to_string(&path).expect("a file").trim_end(),
        "{\n  \"model\": \"opus\"\n}"
    );
}

#[test]
fn a_chain_of_links_stays_and_the_file_behind_it_is_edited() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("dotfiles/claude")).expect("a folder");
    let real = folder.path("dotfiles/claude/settings.json");
    put(&real, OTHERS.as_bytes());
    symlink("dotfiles/claude/settings.json", folder.path("middle.json")).expect("a link");
    let path = folder.path("settings.json");
    symlink(folder.path("middle.json"), &path).expect("a link");

    install(&path, &entry()).expect("an install");
    assert_eq!(own_handlers(&json(&real)), entry().events.len());
    assert!(path.is_symlink() && folder.path("middle.json").is_symlink() && !real.is_symlink());
    uninstall(&path).expect("an uninstall");
    assert_eq!(fs::read_to_string(&real).expect("a file"), OTHERS);
    assert!(path.is_symlink() && folder.path("middle.json").is_symlink() && !real.is_symlink());
}

#[test]
fn a_link_to_nothing_gets_its_file_and_loses_it_again() {
    let folder = Folder::new();
    let path = folder.path("settings.json");
    symlink("real.json", &path).expect("a link");
    install(&path, &entry()).expect("an install");
    assert!(path.is_symlink() && folder.path("real.json").is_file());
    uninstall(&path).expect("an uninstall");
    assert!(path.is_symlink() && !folder.path("real.json").exists());
}

#[test]
fn a_link_into_a_missing_folder_is_refused() {
    let folder = Folder::new();
    let path = folder.path("settings.json");
    symlink("gone/real.json", &path).expect("a link");
    assert!(matches!(
        install(&path, &entry()),
        Err(SettingsError::Place { .. })
    ));
    assert!(path.is_symlink() && !folder.path("gone").exists());
}

#[test]
fn a_link_to_itself_is_refused() {
    let folder = Folder::new();
    let path = folder.path("settings.json");
    symlink("settings.json", &path).expect("a link");
    drop(install(&path, &entry()).expect_err("a refusal"));
    assert!(path.is_symlink());
}

#[rstest]
#[case(0o600)]
#[case(0o640)]
#[case(0o644)]
#[case(0o666)]
#[case(0o755)]
fn the_mode_stays(#[case] mode: u32) {
    let (_folder, path) = Folder::with(OTHERS.as_bytes());
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
    let now = || fs::metadata(&path).expect("a file").permissions().mode() & 0o7777;
    install(&path, &entry()).expect("an install");
    assert_eq!(now(), mode);
    uninstall(&path).expect("an uninstall");
    assert_eq!(now(), mode);
}

#[test]
fn a_read_only_file_is_refused_and_left_alone() {
    let (folder, path) = Folder::with(OTHERS.as_bytes());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).expect("a mode");
    let names = folder.listing();
    assert!(matches!(
        install(&path, &entry()),
        Err(SettingsError::ReadOnly { .. })
    ));
    assert_eq!(fs::read_to_string(&path).expect("a file"), OTHERS);
    assert_eq!(folder.listing(), names);
}

#[test]
fn a_file_with_two_names_is_refused_and_left_alone() {
    let (folder, path) = Folder::with(OTHERS.as_bytes());
    fs::hard_link(&path, folder.path("other.json")).expect("a link");
    assert!(matches!(
        install(&path, &entry()),
        Err(SettingsError::Place { .. })
    ));
    assert_eq!(fs::read_to_string(&path).expect("a file"), OTHERS);
}

#[test]
fn a_folder_in_the_files_place_is_refused() {
    let folder = Folder::new();
    let path = folder.path("settings.json");
    fs::create_dir(&path).expect("a folder");
    drop(install(&path, &entry()).expect_err("a refusal"));
    assert!(path.is_dir());
}

#[rstest]
#[case::another_content(|path: &Utf8Path| put(path, b"{\"new\": 1}"))]
#[case::gone(|path: &Utf8Path| fs::remove_file(path).expect("removed"))]
fn a_file_that_another_program_changed_meanwhile_is_left_alone(#[case] change: fn(&Utf8Path)) {
    let (_folder, path) = Folder::with(OTHERS.as_bytes());
    let plan = Plan::install(&path, &entry()).expect("a plan");
    change(&path);
    let after = fs::read(&path).ok();
    assert!(matches!(plan.apply(), Err(SettingsError::Changed { .. })));
    assert_eq!(fs::read(&path).ok(), after);
}

#[test]
fn a_file_that_another_program_made_meanwhile_is_left_alone() {
    let folder = Folder::new();
    let path = folder.path("settings.json");
    let plan = Plan::install(&path, &entry()).expect("a plan");
    put(&path, b"{}");
    assert!(matches!(plan.apply(), Err(SettingsError::Changed { .. })));
    assert_eq!(fs::read(&path).expect("a file"), b"{}");
}

#[test]
fn installs_at_the_same_time_leave_one_entry() {
    let (folder, path) = Folder::with(OTHERS.as_bytes());
    let names = folder.listing();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Err(error) = install(&path, &entry()) {
                    assert!(matches!(error, SettingsError::Changed { .. }), "{error}");
                }
            });
        }
    });
    assert_eq!(own_handlers(&json(&path)), entry().events.len());
    assert_eq!(folder.listing(), names);
    uninstall(&path).expect("an uninstall");
    assert_eq!(fs::read_to_string(&path).expect("a file"), OTHERS);
}

#[test]
fn a_diff_shows_only_added_lines() {
    let (_folder, path) = Folder::with(OTHERS.as_bytes());
    let diff = Plan::install(&path, &entry()).expect("a plan").diff();
    assert!(
        diff.starts_with(&format!("--- {path}\n+++ {path}\n@@")),
        "{diff}"
    );
    assert!(
        !diff.lines().skip(2).any(|line| line.starts_with('-')),
        "{diff}"
    );
    assert_eq!(fs::read_to_string(&path).expect("a file"), OTHERS);
}
