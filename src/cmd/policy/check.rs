//! `boxery policy check`.

use std::fmt::Write as _;

use boxery_policy::{Action, Matched, RuleKind, Span, Verdict};
use serde_json::{Value, json};

use super::Whose;
use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;
use crate::ui::Tone;

/// Say what the policy makes of a command
///
/// The rule that decides, and a mark under the words that it decided by. Exit status:
/// 0 allowed, 1 denied, 2 what can't be told before it runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The command, as one argument
    #[arg(value_name = "TEXT")]
    text: String,
    #[command(flatten)]
    whose: Whose,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let (_, in_force) = args.whose.find(app)?;
    for warning in in_force.warnings() {
        app.ui.say(format_args!("careful: {warning}"));
    }
    let verdict = in_force.policy.evaluate(Action::Command(&args.text));
    if args.json {
        app.ui.line(to_json(&verdict));
        return Ok(exit(&verdict));
    }
    match &verdict {
        Verdict::Allow => app.ui.line(format_args!(
            "{}, by {}",
            app.ui.paint(Tone::Good, "allow"),
            in_force.summary()
        )),
        Verdict::Deny { rule, span } => {
            let place = rule
                .source
                .as_ref()
                .map_or_else(String::new, |source| format!(" in {source}"));
            app.ui.line(format_args!(
                "{}: {rule}{place}",
                app.ui.paint(Tone::Bad, "deny")
            ));
            app.ui.raw(&marked(&args.text, *span));
        }
        Verdict::Unclear { reason, span } => {
            app.ui.line(format_args!(
                "{}: {reason}",
                app.ui.paint(Tone::Care, "unclear")
            ));
            app.ui.raw(&marked(&args.text, *span));
            app.ui.say(if in_force.policy.is_default() {
                "hint: without a policy file that passes; with one it is denied".to_owned()
            } else {
                format!(
                    "hint: under {} that is denied, since VMs don't judge what really starts yet",
                    in_force.summary()
                )
            });
        }
    }
    Ok(exit(&verdict))
}

fn exit(verdict: &Verdict) -> Exit {
    match verdict {
        Verdict::Allow => Exit::Done,
        Verdict::Deny { .. } => Exit::No,
        Verdict::Unclear { .. } => Exit::CannotSay,
    }
}

fn to_json(verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Allow => json!({ "verdict": "allow" }),
        Verdict::Deny { rule, span } => json!({
            "verdict": "deny",
            "by": section(rule),
            "rule": rule.rule,
            "source": rule.source,
            "reason": rule.to_string(),
            "span": [span.start, span.end],
        }),
        Verdict::Unclear { reason, span } => json!({
            "verdict": "unclear",
            "reason": reason,
            "span": [span.start, span.end],
        }),
    }
}

/// Where a rule stands.
fn section(rule: &Matched) -> String {
    match rule.kind {
        RuleKind::Command => "command.deny".to_owned(),
        RuleKind::Default(name) => format!("default: {name}"),
        RuleKind::Ssh(key) => format!("ssh.{key}"),
        RuleKind::DenyWrite => "filesystem.denyWrite".to_owned(),
        RuleKind::NotWritable => "filesystem.allowWrite".to_owned(),
        RuleKind::DangerousFile | RuleKind::BadPath => "filesystem".to_owned(),
        RuleKind::DeniedDomain => "network.deniedDomains".to_owned(),
        RuleKind::UnknownDomain => "network.allowedDomains".to_owned(),
        RuleKind::BadUrl => "network".to_owned(),
    }
}

/// The line of `text` in which `span` begins, with a mark under it.
fn marked(text: &str, span: Span) -> String {
    let start = floor(text, span.start);
    let end = floor(text, span.end).max(start);
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let shown = |part: &str| -> String {
        let letter = |c: char| if c.is_control() { ' ' } else { c };
        part.chars().map(letter).collect()
    };
    let mut out = String::new();
    let _ = writeln!(out, "  {}", shown(&text[line_start..line_end]));
    let before = text[line_start..start].chars().count();
    let under = text[start..end.min(line_end)].chars().count().max(1);
    let _ = writeln!(out, "  {}{}", " ".repeat(before), "^".repeat(under));
    out
}

/// The last character's begin at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::in_the_middle("sudo git push", (5, 13), "  sudo git push\n       ^^^^^^^^\n")]
    #[case::at_the_end("a b", (2, 3), "  a b\n    ^\n")]
    #[case::empty("a b", (3, 3), "  a b\n     ^\n")]
    #[case::on_a_second_line("é\nxé git y", (3, 10), "  xé git y\n  ^^^^^^\n")]
    #[case::over_two_lines("git\\\n push", (0, 10), "  git\\\n  ^^^^\n")]
    #[case::tab("a\tb", (2, 3), "  a b\n    ^\n")]
    #[case::past_the_end("ab", (1, 99), "  ab\n   ^\n")]
    fn the_mark_stands_under_the_words(
        #[case] text: &str,
        #[case] (start, end): (usize, usize),
        #[case] want: &str,
    ) {
        assert_eq!(marked(text, Span { start, end }), want);
    }
}
