//! Tricks of the shell, and of the programs that start one, by hand: none hides a denied
//! command.

use boxery_policy::{Action, Verdict};

use crate::support;

const POLICY: &str = r#"{"command": {"deny": ["git push", "npm publish", "rm -rf /", "sudo"], "useDefaults": false}}"#;

#[test]
fn no_trick_hides_a_denied_command() {
    let policy = support::policy(POLICY);
    let (mut count, mut wrong) = (0, Vec::new());
    for line in include_str!("../corpus/tricks.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let (want, text) = line.split_once('\t').expect("verdict, tab, text");
        let text: String = serde_json::from_str(text).expect("a JSON string");
        count += 1;
        let verdict = policy.evaluate(Action::Command(&text));
        if let Verdict::Deny { span, .. } | Verdict::Unclear { span, .. } = &verdict
            && text.get(span.start..span.end).is_none()
        {
            wrong.push(format!("{span:?} is no part of {text:?}"));
        }
        let holds = match (want, &verdict) {
            ("deny", Verdict::Deny { .. })
            | ("open", Verdict::Deny { .. } | Verdict::Unclear { .. })
            | ("allow", Verdict::Allow) => true,
            ("deny" | "open" | "allow", _) => false,
            (other, _) => panic!("`{other}` is no verdict"),
        };
        if !holds {
            wrong.push(format!("{want}: {text:?}: {verdict:?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count >= 700, "no row is lost: {count}");
}
