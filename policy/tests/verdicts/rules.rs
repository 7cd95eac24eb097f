//! Holds every default rule to its own examples.

use boxery_policy::{Action, RULES, RuleKind, Verdict};

#[test]
fn every_rule_denies_and_passes_what_it_says() {
    let defaults = crate::support::policy("{}");
    let mut wrong = Vec::new();
    for rule in RULES {
        assert!(
            !rule.about.is_empty()
                && !rule.examples.denied.is_empty()
                && !rule.examples.passed.is_empty()
        );
        for text in rule.examples.denied {
            let verdict = defaults.evaluate(Action::Command(text));
            let by_it = matches!(&verdict, Verdict::Deny { rule: found, .. } if found.kind == RuleKind::Default(rule.name));
            if !by_it {
                wrong.push(format!(
                    "{}: `{text}` should be denied: {verdict:?}",
                    rule.name
                ));
            }
        }
        for text in rule.examples.passed {
            let verdict = defaults.evaluate(Action::Command(text));
            if verdict != Verdict::Allow {
                wrong.push(format!("{}: `{text}` should pass: {verdict:?}", rule.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
