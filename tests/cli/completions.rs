//! Completions, the man page, and help for people who mistype.

use rstest::rstest;

use crate::support::Sandbox;

#[rstest]
#[case::bash("bash", "_boxery()")]
#[case::zsh("zsh", "#compdef boxery")]
#[case::fish("fish", "complete -c boxery")]
fn completions_are_printed_for_every_common_shell(#[case] shell: &str, #[case] want: &str) {
    let text = Sandbox::new().run(&["completions", shell]);
    assert!(text.starts_with("exit: 0\n"), "{text}");
    assert!(text.contains(want), "{text}");
}

#[test]
fn the_manual_page_is_roff() {
    let text = Sandbox::new().run(&["man"]);
    assert!(text.contains(".TH boxery 1"), "{text}");
}

#[test]
fn a_mistyped_verb_is_answered_with_the_near_one_and_64() {
    insta::assert_snapshot!(Sandbox::new().run(&["completion", "bash"]), @r"
    exit: 64
    ----- stdout
    ----- stderr
    error: unrecognized subcommand 'completion'
    hint: a similar subcommand exists: 'completions'
    ");
}
