//! Harmless command lines of the kinds that agents write: none is denied by `code`, and
//! hardly any is unclear. The rates are published in `docs/policy.md`.

use boxery_policy::{Action, Verdict};

#[test]
fn no_harmless_command_is_denied_and_hardly_any_is_unclear() {
    let text = include_str!("../corpus/harmless.tsv");
    let code = crate::support::template("code");
    let (mut count, mut denied, mut unclear) = (0, Vec::new(), Vec::new());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (_, command) = line.split_once('\t').expect("source, tab, text");
        let command: String = serde_json::from_str(command).expect("a JSON string");
        count += 1;
        match code.evaluate(Action::Command(&command)) {
            Verdict::Allow => {}
            Verdict::Deny { rule, .. } => denied.push(format!("{command:?}: {rule}")),
            Verdict::Unclear { reason, .. } => unclear.push(format!("{command:?}: {reason}")),
        }
    }
    println!(
        "harmless: {count} lines, {} denied, {} unclear ({:.1} %)\n{}",
        denied.len(),
        unclear.len(),
        100.0 * f64::from(u32::try_from(unclear.len()).unwrap()) / f64::from(count),
        unclear.join("\n")
    );
    assert!(count >= 400, "{count}");
    assert!(denied.is_empty(), "{denied:#?}");
    assert!(
        unclear.len() * 100 <= usize::try_from(count).unwrap() * 2,
        "{unclear:#?}"
    );
}
