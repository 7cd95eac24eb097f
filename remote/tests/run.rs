//! One command on a real OpenSSH server, over both pipes.

#[path = "support/mod.rs"]
mod support;

use boxery_remote::{PipeChoice, RunRequest};
use rstest::rstest;
use support::{Sshd, bash, run_bytes, run_text, words};

#[rstest]
#[case::out("echo x", 0, "x\n", "")]
#[case::err("echo x >&2", 0, "", "x\n")]
#[case::fails("exit 1", 1, "", "")]
#[case::two_hundred_fifty_five("exit 255", 255, "", "")]
#[case::bash_is_bash("[[ a == a ]] && echo ${BASH_VERSION:+yes}", 0, "yes\n", "")]
#[case::killed("kill -9 $$", 137, "", "")]
#[case::terminated("kill -TERM $$", 143, "", "")]
#[case::interrupted("kill -INT $$", 130, "", "")]
#[case::quits("ulimit -c 0; sh -c 'kill -QUIT $$'", 131, "", "")]
#[case::no_final_newline("printf a; printf b >&2", 0, "a", "b")]
#[case::stdin_is_empty("cat; read x; echo $?", 0, "1\n", "")]
#[case::dev_stdin_is_empty("cat /dev/stdin; echo end", 0, "end\n", "")]
#[case::interrupt_is_not_ignored(
    "trap -p INT; sh -c 'kill -INT $$; echo alive'; echo $?",
    0,
    "130\n",
    ""
)]
#[case::background_does_not_hold("(sleep 60 &) ; sleep 60 & echo hi", 0, "hi\n", "")]
#[case::not_found("no-such-program-here 2>/dev/null", 127, "", "")]
#[tokio::test]
async fn status_and_streams_are_exact(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[case] text: &str,
    #[case] code: u8,
    #[case] stdout: &str,
    #[case] stderr: &str,
) {
    let sshd = Sshd::start();
    let pipe = sshd.open(pipe).await;
    let want = (code, stdout.to_owned(), stderr.to_owned());
    assert_eq!(run_text(&pipe, &bash(text)).await, want);
}

#[rstest]
#[tokio::test]
async fn every_byte_comes_through_on_both_streams(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let sshd = Sshd::start();
    let pipe = sshd.open(pipe).await;
    let bytes: Vec<u8> = (0..=255).cycle().take(3_000_001).collect();
    let request = bash("tee /dev/stderr");
    let captured = run_bytes(&pipe, &request, Some(bytes.clone())).await;
    assert!(captured.succeeded());
    assert!(captured.stdout == bytes, "stdout differs");
    assert!(captured.stderr == bytes, "stderr differs");
}

#[rstest]
#[tokio::test]
async fn several_runs_share_a_pipe(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let sshd = Sshd::start();
    let pipe = sshd.open(pipe).await;
    for round in 0..3 {
        let (request, want) = (words(&["echo", &round.to_string()]), format!("{round}\n"));
        assert_eq!(run_text(&pipe, &request).await, (0, want, String::new()));
    }
}

#[rstest]
#[tokio::test]
async fn folder_and_environment_are_the_callers(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let sshd = Sshd::start();
    let pipe = sshd.open(pipe).await;
    let request = RunRequest {
        cwd: Some("/usr/share".to_owned()),
        env: vec![
            ("LANG".to_owned(), b"C.UTF-8".to_vec()),
            ("IT".to_owned(), b"it's \"$HOME\"\n`id`\\ \xff".to_vec()),
        ],
        ..bash(
            r#"pwd; printf '%s|%s' "$LANG" "$IT"; env | grep -v '^BOXERY_RUN=' | grep -i -e boxery_ -e _bx_"#,
        )
    };
    let captured = run_bytes(&pipe, &request, None).await;
    assert_eq!(
        captured.stdout,
        b"/usr/share\nC.UTF-8|it's \"$HOME\"\n`id`\\ \xff"
    );
    assert_eq!(captured.exit.code(), 1, "nothing else of boxery's is there");
}
