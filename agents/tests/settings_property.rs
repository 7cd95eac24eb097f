//! Settings files of any content and layout: what install adds, uninstall takes out.

#![expect(
    clippy::expect_used,
    reason = "a test support function may fail the test"
)]

use boxery_agents::{ADAPTERS, HookEntry, Plan, hook_command};
use camino::Utf8Path;
use proptest::prelude::*;

fn entry() -> HookEntry {
    let adapter = ADAPTERS
        .iter()
        .find(|adapter| adapter.name() == "claude-code")
        .expect("the adapter");
    let (events, timeout) = adapter.hook_events();
    HookEntry {
        agent: adapter.name(),
        command: hook_command(Utf8Path::new("/opt/it's/boxery"), adapter.name()).expect("quotable"),
        events,
        timeout,
    }
}

/// White space between two tokens.
fn gap() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "", "", " ", "\n", "\n  ", "\r\n", "\r\n\t", "\t", "\n\n    ", "  \n",
    ])
}

/// `open` and `close` with `members` between them, each with white space of its own.
fn bracketed(
    open: char,
    close: char,
    members: impl Strategy<Value = Vec<String>>,
) -> impl Strategy<Value = String> {
    (members, prop::collection::vec(gap(), 20), gap()).prop_map(move |(members, gaps, last)| {
        let mut text = String::from(open);
        for (number, member) in members.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            let (before, after) = (gaps[number * 2], gaps[number * 2 + 1]);
            let after = if number + 1 < members.len() {
                after
            } else {
                ""
            };
            text.extend([comma, before, member, after]);
        }
        text.push_str(last);
        text.push(close);
        text
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,6}",
        Just("a\\\"}],{[".to_owned()),
        Just("\\u006dodel".to_owned()),
        Just("é\u{2028}".to_owned()),
    ]
}

fn distinct(members: Vec<(String, String)>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    members
        .into_iter()
        .filter(|(key, _)| {
            let key = key.replace("\\u006d", "m");
            let is_new = !seen.contains(&key) && key != "hooks";
            seen.push(key);
            is_new
        })
        .map(|(key, value)| format!("\"{key}\" : {value}"))
        .collect()
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("-12345678901234567890123".to_owned()),
        Just("1.50e-2".to_owned()),
        Just("\"x && y < z \\u003c\\/\"".to_owned()),
        Just("\"\\ud83d\\ude00\"".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            bracketed('[', ']', prop::collection::vec(inner.clone(), 0..4)),
            bracketed(
                '{',
                '}',
                prop::collection::vec((key(), inner), 0..4).prop_map(distinct)
            ),
        ]
    })
}

/// A hook's group, of another tool.
fn group() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("{}".to_owned()),
        Just(r#"{"hooks":[]}"#.to_owned()),
        Just(r#"{"matcher": "Bash", "hooks": [{"type":"command","command":"x"}]}"#.to_owned()),
        Just("{\n\"hooks\" : [ {\"type\":\"http\"} ,\n 7 ] }".to_owned()),
    ]
}

fn hooks() -> impl Strategy<Value = String> {
    let event = prop::sample::subsequence(
        vec![
            "PreToolUse",
            "SessionEnd",
            "Stop",
            "PostToolUse",
            "SessionStart",
        ],
        0..=5,
    );
    let lists = prop::collection::vec(bracketed('[', ']', prop::collection::vec(group(), 0..3)), 5);
    let members = (event, lists).prop_map(|(events, lists)| {
        let pairs = events.into_iter().zip(lists);
        pairs
            .map(|(event, list)| format!("\"{event}\":{list}"))
            .collect()
    });
    bracketed('{', '}', members)
}

fn document() -> impl Strategy<Value = String> {
    let members = (
        prop::collection::vec((key(), value()), 0..5),
        prop::option::of((hooks(), 0..5_usize)),
    )
        .prop_map(|(members, hooks)| {
            let mut members = distinct(members);
            if let Some((hooks, place)) = hooks {
                members.insert(place.min(members.len()), format!("\"hooks\":{hooks}"));
            }
            members
        });
    (gap(), bracketed('{', '}', members), gap()).prop_map(|(a, b, c)| format!("{a}{b}{c}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_install_adds_uninstall_takes_out(original in document(), with_mark in any::<bool>()) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = Utf8Path::from_path(folder.path()).expect("UTF-8").join("settings.json");
        let original = if with_mark { format!("\u{feff}{original}") } else { original };
        put(&path, &original);
        Plan::install(&path, &entry()).expect("a plan").apply().expect("an install");
        prop_assert_ne!(read(&path), original.clone());
        prop_assert!(Plan::install(&path, &entry()).expect("a plan").is_unchanged());
        Plan::uninstall(&path, "claude-code").expect("a plan").apply().expect("an uninstall");
        prop_assert_eq!(read(&path), original);
    }
}

#[expect(clippy::disallowed_methods, reason = "nobody reads it meanwhile")]
fn put(path: &Utf8Path, content: &str) {
    std::fs::write(path, content).expect("a file");
}

fn read(path: &Utf8Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}
