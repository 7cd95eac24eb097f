//! No text makes the engine panic, hang, or take more than linear time.

use std::time::{Duration, Instant};

use boxery_policy::{Action, Verdict, parse_policy};
use proptest::prelude::*;
use rstest::rstest;

use crate::support;

const PIECES: &[&str] = &[
    "git",
    "push",
    "bash",
    "-c",
    "sh",
    "eval",
    "env",
    "sudo",
    "xargs",
    "find",
    "-exec",
    "{}",
    "\\;",
    "if",
    "then",
    "else",
    "fi",
    "for",
    "in",
    "do",
    "done",
    "while",
    "case",
    "esac",
    "function",
    "{",
    "}",
    "(",
    ")",
    "((",
    "))",
    "[[",
    "]]",
    "$(",
    "${",
    "$((",
    "`",
    "'",
    "\"",
    "\\",
    "$'",
    "$\"",
    "<<EOF",
    "EOF",
    "<<-'X'",
    "X",
    "<<<",
    "<(",
    ">(",
    ">",
    "<",
    ">>",
    "&>",
    "2>&1",
    "|",
    "||",
    "&",
    "&&",
    ";",
    ";;",
    ";&",
    "\n",
    " ",
    "\t",
    "\r\n",
    "#",
    "!",
    "~",
    "*",
    "?",
    "[a-z]",
    "{a,b}",
    "{1..9}",
    "a=b",
    "a+=(",
    "é",
    "😀",
    "\u{0}",
    "$x",
    "${x:-y}",
    "$@",
    "time",
    "coproc",
    "alias",
    "trap",
    "ssh",
    "-o",
    "--",
    "-",
    "99999999999>",
    "{fd}>",
    "@(",
    ":",
];

fn shellish() -> impl Strategy<Value = String> {
    proptest::collection::vec((0..PIECES.len(), any::<bool>()), 0..60).prop_map(|pieces| {
        let mut text = String::new();
        for (piece, space) in pieces {
            text.push_str(PIECES[piece]);
            text.push_str(if space { " " } else { "" });
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_shellish_text_breaks_the_engine(text in shellish()) {
        check(&text);
    }

    #[test]
    fn no_text_at_all_breaks_the_engine(text in "\\PC{0,80}") {
        check(&text);
    }

    #[test]
    fn no_text_breaks_the_reader_of_files(text in "[\\[\\]{}:,\"a-z0-9/* \n-]{0,80}") {
        drop(parse_policy(&text, "a file"));
    }
}

fn check(text: &str) {
    let policy =
        support::policy(r#"{"command": {"deny": ["git push"]}, "ssh": {"allowedHosts": ["a"]}}"#);
    let span = match policy.evaluate(Action::Command(text)) {
        Verdict::Allow => return,
        Verdict::Deny { span, .. } | Verdict::Unclear { span, .. } => span,
    };
    assert!(
        text.get(span.start..span.end).is_some(),
        "{span:?} is no part of {text:?}"
    );
}

const MIB: usize = 1 << 20;

#[rstest]
#[case::parentheses("(".repeat(MIB))]
#[case::substitutions("$(".repeat(MIB / 2))]
#[case::quoted_substitutions("\"$(".repeat(MIB / 3))]
#[case::backticks("`".repeat(MIB))]
#[case::escaped_backticks("\\`".repeat(MIB / 2))]
#[case::braces("{ ".repeat(MIB / 2))]
#[case::defaults("${a:-".repeat(MIB / 5))]
#[case::arithmetic("$((".repeat(MIB / 3))]
#[case::arithmetic_commands("((".repeat(MIB / 2))]
#[case::process_substitutions("<(".repeat(MIB / 2))]
#[case::single_quotes("'".repeat(MIB))]
#[case::double_quotes("\"".repeat(MIB - 1))]
#[case::nested_quotes("\"'".repeat(MIB / 2))]
#[case::ifs("if ".repeat(MIB / 3))]
#[case::cases("case x in a) ".repeat(MIB / 13))]
#[case::coprocesses("coproc ".repeat(MIB / 7))]
#[case::bangs("! ".repeat(MIB / 2))]
#[case::times("time ".repeat(MIB / 5))]
#[case::functions("f() ".repeat(MIB / 4))]
#[case::wrappers("env ".repeat(MIB / 4))]
#[case::words("a ".repeat(MIB / 2))]
#[case::commands("a;".repeat(MIB / 2))]
#[case::pipes("a|".repeat(MIB / 2))]
#[case::documents("cat <<X\n".repeat(MIB / 8))]
#[case::documents_in_one_line("<<X ".repeat(MIB / 4))]
#[case::brace_expansions("{a,".repeat(MIB / 3))]
#[case::brace_products("{a,b}".repeat(MIB / 5))]
#[case::options(format!("git {}", "-a ".repeat(MIB / 3 - 2)))]
#[case::xargs_in_xargs("xargs ".repeat(MIB / 6))]
#[case::finds("find -exec ".repeat(MIB / 11))]
#[case::evals("eval ".repeat(MIB / 5))]
#[case::aliases("alias a=a; ".repeat(MIB / 11))]
#[case::alias_of_itself(format!("alias a='a a'; {}", "a;".repeat(MIB / 2 - 10)))]
#[case::variables(format!("x=y; {}", "$x ".repeat(MIB / 3 - 4)))]
#[case::patterns("@(".repeat(MIB / 2))]
#[case::tests(format!("[[ {} ]]", "a && ".repeat(MIB / 5 - 2)))]
#[case::arrays("a=(".repeat(MIB / 3))]
#[case::comments("#\n".repeat(MIB / 2))]
#[case::globs(format!("ls {}", "*".repeat(MIB - 3)))]
#[case::too_long("a".repeat(MIB + 1))]
fn a_mebibyte_of_anything_takes_linear_time(#[case] text: String) {
    let policy =
        support::policy(r#"{"command": {"deny": ["git push", "rm -rf", "git commit --amend"]}}"#);
    let begin = Instant::now();
    let verdict = policy.evaluate(Action::Command(&text));
    let took = begin.elapsed();
    // A debug build on a busy machine; what isn't linear takes hours.
    assert!(
        took < Duration::from_secs(20),
        "{took:?}: {:.80?}",
        format!("{verdict:?}")
    );
}

#[rstest]
#[case::parentheses("(", 400)]
#[case::substitutions("$(", 400)]
#[case::quotes("\"$(", 400)]
fn what_nests_too_deep_is_unclear(#[case] opening: &str, #[case] depth: usize) {
    let closing: String = opening
        .chars()
        .rev()
        .filter_map(|c| match c {
            '(' => Some(')'),
            '"' => Some('"'),
            _ => None,
        })
        .collect();
    let text = format!("echo {}ls{}", opening.repeat(depth), closing.repeat(depth));
    let policy = support::policy("{}");
    assert!(matches!(
        policy.evaluate(Action::Command(&text)),
        Verdict::Unclear { .. }
    ));
}

#[test]
fn shells_in_shells_end_somewhere() {
    let text = (0..20).fold("git push".to_owned(), |text, _| {
        format!("sh -c {}", shlex::try_quote(&text).expect("no NUL"))
    });
    let policy = support::policy("{}");
    assert!(matches!(
        policy.evaluate(Action::Command(&text[..text.len().min(1 << 20)])),
        Verdict::Unclear { .. }
    ));
}
