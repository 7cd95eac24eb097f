//! No text makes the engine panic, hang, or take more than linear time.

use std::time::Duration;

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
    "docker",
    "run",
    "exec",
    "python",
    "perl",
    "awk",
    "sed",
    "tar",
    "--to-command=",
    "tmux",
    "crontab",
    "make",
    "tee",
    "system(",
    "-i\u{85}",
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
#[case::backslashes("\\".repeat(MIB))]
#[case::continued_lines("\\\n".repeat(MIB / 2))]
#[case::open_documents("cat <<'X'\n".repeat(MIB / 10))]
#[case::nested_documents("cat <<X\n$(".repeat(MIB / 10))]
#[case::semicolons(";".repeat(MIB))]
#[case::case_ends("case x in ".to_owned() + &";;;".repeat(MIB / 4))]
#[case::brace_products_with_words("a{b,c}".repeat(MIB / 6))]
#[case::brace_ranges("{1..9}".repeat(MIB / 6))]
#[case::many_brace_words("{a,b}{c,d} ".repeat(MIB / 11))]
#[case::function_substitutions("${ ".repeat(MIB / 3))]
#[case::ended_function_substitutions("${ a; }".repeat(MIB / 8))]
#[case::quotes_in_quotes("\"${a:-\"".repeat(MIB / 7))]
#[case::dollar_quotes("$'\\x".repeat(MIB / 5))]
#[case::indices("a[$(".repeat(MIB / 4))]
#[case::here_strings(format!("{{ {} }} <<< \"$x {}\"", "bash; ".repeat(MIB / 24), "a".repeat(MIB / 2)))]
#[case::shells_in_pipes("bash | ".repeat(MIB / 8) + "bash")]
#[case::containers("docker run x ".repeat(MIB / 14))]
#[case::sandboxes("bwrap a ".repeat(MIB / 9))]
#[case::launchers_of_launchers("perf stat --x gdb --args ".repeat(MIB / 28))]
#[case::terminals(format!("tmux new {}", "'a b' ".repeat(MIB / 7)))]
#[case::options("tar --to-command=a ".repeat(MIB / 20))]
#[case::python(format!("python -c '{}'", "system(\"a\");".repeat(MIB / 14)))]
#[case::open_python(format!("python -c '{}'", "system(".repeat(MIB / 8)))]
#[case::open_quotes_in_perl(format!("perl -e '{}'", "`system(\"\\".repeat(MIB / 10)))]
#[case::apostrophes_in_python(format!("python -c \"{}\"", "system('".repeat(MIB / 9)))]
#[case::awk_pipes(format!("awk '{}'", "\"a\"|".repeat(MIB / 5)))]
#[case::seds(format!("sed '{}'", "s/a/b/e;".repeat(MIB / 9)))]
#[case::written("echo a > x; bash x; ".repeat(MIB / 22))]
#[case::written_by_itself("echo bash x >> x; ".repeat(MIB / 22) + "bash x")]
#[case::written_more_and_more("cat x x > y; cat y > x; bash x; ".repeat(MIB / 36))]
#[case::git_settings("git -c alias.x=y ".repeat(MIB / 18))]
#[case::crontab(format!("crontab <<X\n{}X", "* * * * * a\n".repeat(MIB / 14)))]
#[case::makefile(format!("make -f - <<X\n{}X", "\ta\n".repeat(MIB / 5)))]
#[case::assignments("PAGER='a b' ".repeat(MIB / 13))]
#[case::prompts("PS4='$(a)' ".repeat(MIB / 12))]
#[case::env_splits("env -S '".repeat(MIB / 9))]
#[case::env_in_env("env -S env ".repeat(MIB / 12))]
#[case::parallel_inputs(format!("parallel ::: {}", "a ".repeat(MIB / 2 - 10)))]
#[case::ssh("ssh h ".repeat(MIB / 7))]
#[case::too_long("a".repeat(MIB + 1))]
fn a_mebibyte_of_anything_takes_linear_time(#[case] text: String) {
    let policy =
        support::policy(r#"{"command": {"deny": ["git push", "rm -rf", "git commit --amend"]}}"#);
    let begin = busy();
    let verdict = policy.evaluate(Action::Command(&text));
    let took = busy().saturating_sub(begin);
    // A debug build; what isn't linear takes hours.
    assert!(
        took < Duration::from_secs(20),
        "{took:?}: {:.80?}",
        format!("{verdict:?}")
    );
}

/// The time that this thread has computed, whatever else the machine does.
fn busy() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("it is not negative")
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
