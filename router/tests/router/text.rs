//! The text is data: what the model wrote arrives as it was, and nothing else runs.

use std::io::Read as _;
use std::process::{Command, Stdio};

use crate::support::{World, bash};
use boxery_router::{Decision, decide, parse_simple_command, quote_word};
use proptest::prelude::*;

/// What `shell` prints for `script`, with `folder` as its directory and nothing to find on `PATH`.
fn output(shell: &str, script: &str, folder: &std::path::Path) -> (Vec<u8>, bool) {
    let mut child = Command::new(shell)
        .args(["-c", &format!("PATH=/nonexistent; {script}")])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{shell} must be installed: {error}"));
    let mut out = Vec::new();
    let read = child
        .stdout
        .take()
        .map(|mut stdout| stdout.read_to_end(&mut out));
    let good = child.wait().is_ok_and(|status| status.success());
    (out, good && matches!(read, Some(Ok(_))))
}

/// Texts of shell syntax and ordinary characters, more of the former.
fn awkward() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z ]{1,4}",
        3 => prop::sample::select(vec![
            "'", "\"", "\\", "$", "`", "$(x)", "\n", ";", "&", "|", "<", ">", "<<EOF\n", "!", "#",
            "*", "?", "[a]", "{a,b}", "~", "=", "%1", "(", ")", "\r", "\t", "\u{85}", "\u{a0}",
            "\u{2028}", "^a^b", "ü", "\u{1f4e6}", "$'x'", "$\"x\"", "a=b", "-", "--", "\u{7f}", "\u{1}",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_filter("no NUL", |c| *c != '\0').prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Texts that have a chance to be accepted.
fn nearly_plain() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[a-zA-Z0-9_./,:@+-]{1,5}",
        3 => Just(" ".to_owned()),
        2 => "'[^'\0]{0,6}'",
        2 => "\"[^\"\0]{0,6}\"",
        1 => "[=%]",
        1 => prop::sample::select(vec!["\n", ";", "&", "$x", "*", "#", "~", "\\", "!", "\u{a0}"])
            .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 1..10).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_quoted_text_comes_out_of_every_shell_as_it_went_in(text in awkward()) {
        let folder = tempfile::tempdir().unwrap();
        let quoted = quote_word(&text).unwrap();
        for shell in ["sh", "bash", "dash", "zsh"] {
            let (out, good) = output(shell, &format!("printf %s {quoted}"), folder.path());
            prop_assert!(good);
            prop_assert_eq!(&out, text.as_bytes(), "{}", shell);
            // Claude Code's own shell evaluates the text once more.
            let again = quote_word(&format!("printf %s {quoted}")).unwrap();
            let (out, good) = output(shell, &format!("eval {again}"), folder.path());
            prop_assert!(good);
            prop_assert_eq!(&out, text.as_bytes(), "eval in {}", shell);
        }
    }

    // A function stands in front of the words, so that the text can only be its
    // arguments; whatever else bash would do shows in the output or in the folder.
    #[test]
    fn an_accepted_text_is_one_simple_command_for_every_shell(text in nearly_plain()) {
        let Ok(words) = parse_simple_command(&text) else { return Ok(()) };
        let folder = tempfile::tempdir().unwrap();
        let want: Vec<u8> = words.iter().flat_map(|word| format!("<{word}>").into_bytes()).collect();
        for shell in ["sh", "bash", "dash", "zsh"] {
            let script = format!("show() {{ printf '<%s>' \"$@\"; }}; show {text}");
            let (out, good) = output(shell, &script, folder.path());
            prop_assert!(good, "{:?}", text);
            prop_assert_eq!(&out, &want, "{:?} in {}", text, shell);
        }
        prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_accepted_text_is_no_assignment_and_no_syntax(text in nearly_plain()) {
        let Ok(words) = parse_simple_command(&text) else { return Ok(()) };
        let folder = tempfile::tempdir().unwrap();
        // bash names the word for which it found no command, and only that one.
        let script = format!("command_not_found_handle() {{ printf '<%s>' \"$@\"; }}; {text}");
        if words[0].contains('/') || is_builtin(&words[0]) {
            return Ok(());
        }
        let want: Vec<u8> = words.iter().flat_map(|word| format!("<{word}>").into_bytes()).collect();
        let (out, _) = output("bash", &script, folder.path());
        prop_assert_eq!(&out, &want, "{:?}", text);
    }

    #[test]
    fn the_route_in_a_guard_reason_is_one_that_guard_lets_pass(text in awkward()) {
        prop_assume!(!text.is_empty() && !text.contains('`'));
        let world = World::default();
        let Decision::Deny { reason, .. } = decide(&bash(&text), &world.guard()).decision else {
            return Ok(());
        };
        let Some(route) = reason.split('`').nth(1) else { panic!("no route in {reason}") };
        prop_assert_eq!(decide(&bash(route), &world.guard()).rule, "own-call", "{}", route);
    }
}

fn is_builtin(word: &str) -> bool {
    let out = Command::new("bash")
        .args(["-c", "compgen -b -k -A function"])
        .output();
    let out = out.unwrap_or_else(|error| panic!("bash must be installed: {error}"));
    String::from_utf8_lossy(&out.stdout)
        .lines()
        .any(|line| line == word)
}
