//! Which files a policy keeps from a sync: those that may not be read, and those that
//! nothing else may change.

use boxery_policy::{Policy, Roots};
use rstest::rstest;

use crate::support::Disk;

fn policy(text: &str) -> Policy {
    let disk = Disk::of(&[("/w/fence.json", text)]);
    let resolved = disk.resolve("/w/fence.json").expect("valid");
    let roots = Roots {
        home: "/home/u",
        folder: "/w",
        links: &|_| None,
    };
    Policy::new(&resolved, &roots)
}

#[rstest]
#[case::below_a_folder("secrets", "/w/secrets/deep/key", true)]
#[case::the_folder("secrets", "/w/secrets", true)]
#[case::like_the_folder("secrets", "/w/secrets.md", false)]
#[case::anywhere("**/.env", "/w/a/b/.env", true)]
#[case::a_pattern_from_the_folder("*.pem", "/w/key.pem", true)]
#[case::not_below_it("*.pem", "/w/a/key.pem", false)]
#[case::of_the_home("~/.ssh", "/home/u/.ssh/id", true)]
fn what_may_not_be_read_is_named(#[case] rule: &str, #[case] path: &str, #[case] want: bool) {
    let text = format!(r#"{{"filesystem": {{"denyRead": ["{rule}"]}}}}"#);
    assert_eq!(policy(&text).denies_read(path, "/w"), want);
}

#[rstest]
#[case::named("/w/locked/a", true)]
#[case::dangerous("/w/sub/.bashrc", true)]
#[case::only_not_allowed("/w/a", false)]
fn what_may_not_be_changed_is_named_whatever_else_may(#[case] path: &str, #[case] want: bool) {
    let text = r#"{"filesystem": {"allowWrite": ["/tmp"], "denyWrite": ["locked"]}}"#;
    assert_eq!(policy(text).keeps_from_change(path, "/w"), want);
}
