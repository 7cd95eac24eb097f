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

#[rstest]
#[case::boxery(&["man"], ".TH boxery 1")]
#[case::a_verb(&["man", "pin"], ".TH boxery-pin 1")]
#[case::a_verb_of_a_verb(&["man", "hook", "install"], ".TH boxery-hook-install 1")]
fn every_verb_has_a_manual_page_in_roff(#[case] arguments: &[&str], #[case] want: &str) {
    let text = Sandbox::new().run(arguments);
    assert!(text.contains(want), "{text}");
}

#[test]
fn every_manual_page_is_written_into_a_folder() {
    let sandbox = Sandbox::new();
    assert_eq!(
        sandbox.run(&["man", "--out", "pages"]),
        "exit: 0\n----- stdout\n----- stderr\n"
    );
    let page = sandbox.project().join("pages/boxery-hook-install.1");
    assert!(page.is_file());
    let hidden = sandbox.project().join("pages/boxery-embedded-server.1");
    assert!(!hidden.exists());
}

#[test]
fn a_page_of_no_verb_is_a_usage_error() {
    insta::assert_snapshot!(Sandbox::new().run(&["man", "hook", "instal"]), @r"
    exit: 64
    ----- stdout
    ----- stderr
    error: no verb is named `hook instal`
    hint: `boxery --help` lists the verbs
    ");
}

#[test]
fn a_mistyped_verb_is_answered_with_the_near_one_and_64() {
    insta::assert_snapshot!(Sandbox::new().run(&["completion", "bash"]), @r"
    exit: 64
    ----- stdout
    ----- stderr
    error: unrecognized subcommand 'completion'
    hint: some similar subcommands exist: 'copies', 'cp', 'completions'
    ");
}
