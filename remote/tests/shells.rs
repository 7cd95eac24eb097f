//! Every login shell, every byte.

#[path = "support/mod.rs"]
mod support;

use boxery_remote::{PipeChoice, RemoteError, RunRequest};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rstest::rstest;
use support::{Sshd, bash, run_bytes, run_text, shell_user, words};

/// What tries every shell's quoting: in one argument each.
const AWKWARD: &[&str] = &[
    "", " ", "'", "\"", "\\", "\n", "\n\n", "a\nb\n", "$HOME", "`id`", "$(id)", "!!", "!1", "*",
    "?", "[a]", "{a,b}", "~", "a;b", "a|b", "a&b", "<a>b", "#", "-n", "--", "=", "a=b", "%s", "\t",
    "\r", "\r\n", "\x1b[0m", "\x1e", "é", "漢字", "\u{2028}", "'\"'\"'", "\\'", "a'\nb'", ".",
    "..", "(", ")", "\\\n", "^",
];

/// Prints its arguments, each ended by NUL.
fn echo(arguments: &[Vec<u8>]) -> RunRequest {
    let mut argv: Vec<Vec<u8>> = ["printf", "%s\\0"]
        .map(|word| word.as_bytes().to_vec())
        .to_vec();
    argv.extend(arguments.iter().cloned());
    RunRequest {
        argv,
        ..RunRequest::default()
    }
}

fn joined(arguments: &[Vec<u8>]) -> Vec<u8> {
    arguments
        .iter()
        .flat_map(|argument| argument.iter().copied().chain([0]))
        .collect()
}

#[rstest]
#[tokio::test]
async fn arguments_come_out_as_they_went_in(
    #[values("sh", "bash", "zsh", "fish", "tcsh")] shell: &str,
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let sshd = Sshd::start();
    let pipe = sshd.open_as(&shell_user(shell), pipe).await;
    let mut arguments: Vec<Vec<u8>> = AWKWARD
        .iter()
        .map(|text| text.as_bytes().to_vec())
        .collect();
    arguments.extend((1..=255).map(|byte| vec![byte]));
    arguments.push((1..=255).collect());
    arguments.push(b"\xc3".to_vec());
    let captured = run_bytes(&pipe, &echo(&arguments), None).await;
    assert_eq!(captured.stdout, joined(&arguments));
    assert!(captured.stderr.is_empty() && captured.succeeded());
    // And as the text of a bash of its own.
    for text in [
        "exit 7",
        "echo \"$0\" 'a\"b' $'c\\'d' >&2; (exit 9)",
        "[[ a == a ]] && exit 3",
    ] {
        let (here, there) = (
            std::process::Command::new("bash")
                .args(["-c", text])
                .output()
                .unwrap(),
            run_bytes(&pipe, &bash(text), None).await,
        );
        assert_eq!(
            (
                Some(i32::from(there.exit.code())),
                &there.stdout,
                &there.stderr
            ),
            (here.status.code(), &here.stdout, &here.stderr)
        );
    }
}

#[rstest]
#[tokio::test]
async fn noise_of_start_up_files_is_not_the_commands(
    #[values("bash", "zsh", "fish", "tcsh")] shell: &str,
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let sshd = Sshd::start();
    let user = support::noisy_user(shell);
    let file = match shell {
        "bash" => ".bashrc",
        "zsh" => ".zshenv",
        "fish" => ".config/fish/config.fish",
        _ => ".cshrc",
    };
    let noise = match shell {
        "fish" | "tcsh" => "echo noise on stdout; sh -c 'echo noise on stderr >&2'\n",
        _ => "echo noise on stdout; echo noise on stderr >&2; export FROM_RC=yes\n",
    };
    let quiet = sshd.open_as(&user, PipeChoice::Native).await;
    let write = r#"mkdir -p "$(dirname "$1")"; cat >"$1""#;
    let request = words(&["sh", "-c", write, "sh", file]);
    let written = run_bytes(&quiet, &request, Some(noise.as_bytes().to_vec())).await;
    assert!(written.succeeded(), "{written:?}");
    let pipe = sshd.open_as(&user, pipe).await;
    assert_eq!(
        run_text(&pipe, &bash("echo out; echo err >&2; exit 5")).await,
        (5, "out\n".to_owned(), "err\n".to_owned())
    );
    // And what they export reaches the command, as over plain SSH.
    if shell == "zsh" {
        assert_eq!(run_text(&pipe, &bash("echo $FROM_RC")).await.1, "yes\n");
    }
}

#[rstest]
#[tokio::test]
async fn a_shell_that_starts_nothing_is_named(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[values(true, false)] nologin: bool,
) {
    let (sshd, user) = if nologin {
        (Sshd::start(), shell_user("nologin"))
    } else {
        (
            Sshd::start_with("ForceCommand echo only this"),
            shell_user("bash"),
        )
    };
    let error = sshd.try_open_as(&user, pipe).await.unwrap_err();
    match error {
        RemoteError::NoGreeting { output } if nologin => {
            assert!(output.contains("not available"), "{output}");
        }
        RemoteError::NoGreeting { output } => assert_eq!(output, "only this"),
        other => panic!("{other:?}"),
    }
}

#[rstest]
#[case::below(131_071)]
#[case::at_the_limit(131_072)]
#[case::beyond(300_000)]
#[case::most(1_000_000)]
#[tokio::test]
async fn a_text_of_any_length_runs_as_one_argument_would(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[values(false, true)] piped: bool,
    #[case] length: usize,
) {
    let sshd = Sshd::start();
    let pipe = sshd.open(pipe).await;
    let start = "x='";
    let end = "'\nprintf '%s %s %s ' ${#x} \"$0\" \"$1\"; cat; env | grep -c '^_bx'; exit 4 # \\\n";
    let filler = "é\n$(id)`\"\\".repeat(length / 11 + 1);
    let mut text = start.to_owned();
    for c in filler.chars() {
        if text.len() + c.len_utf8() + end.len() > length {
            break;
        }
        text.push(c);
    }
    while text.len() + end.len() < length {
        text.push('.');
    }
    let characters = text.chars().count() - start.len();
    text.push_str(end);
    assert_eq!(text.len(), length);
    let request = RunRequest {
        env: vec![("LC_ALL".to_owned(), b"C.UTF-8".to_vec())],
        ..words(&["bash", "-c", &text, "zero", "one"])
    };
    let stdin = piped.then(|| b"my stdin ".to_vec());
    let captured = run_bytes(&pipe, &request, stdin).await;
    let stdin = if piped { "my stdin " } else { "" };
    assert_eq!(
        String::from_utf8_lossy(&captured.stdout),
        format!("{characters} zero one {stdin}0\n")
    );
    assert_eq!(String::from_utf8_lossy(&captured.stderr), "");
    assert_eq!(captured.exit.code(), 4);
}

#[rstest]
fn any_arguments_come_out_as_they_went_in(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let sshd = Sshd::start();
    let pipe = runtime.block_on(sshd.open(pipe));
    let cases = 96;
    let byte = 1..=255_u8;
    let special = proptest::sample::select(
        b"'\"\\$`!\n\r\t #;&|<>()*?[]{}~\x80\x81\x82\x88\xff\x1e".to_vec(),
    );
    let bytes = proptest::collection::vec(prop_oneof![byte, special], 0..200);
    let long = (1..=255_u8, 1..120_000_usize).prop_map(|(byte, length)| vec![byte; length]);
    let arguments = proptest::collection::vec(prop_oneof![9 => bytes, 1 => long], 0..8);
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&arguments, |arguments| {
            let captured = runtime.block_on(run_bytes(&pipe, &echo(&arguments), None));
            let want = if arguments.is_empty() {
                b"\0".to_vec()
            } else {
                joined(&arguments)
            };
            prop_assert_eq!(captured.stdout, want);
            prop_assert_eq!(captured.stderr, b"");
            Ok(())
        })
        .unwrap();
}
