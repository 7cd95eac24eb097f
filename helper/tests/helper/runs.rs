//! Runs over the pipes of a helper: results, streams, input, the environment.

use std::time::{Duration, Instant};

use boxery_wire::{Blob, Failure, FromRun, Loss, Outcome, Reply, Request, Size, Stdin, ToRun, Why};
use rstest::rstest;

use crate::support::{self, Home, bash, id, run};

#[rstest]
#[case::success("echo out; echo err >&2", "out\n", "err\n", Outcome::Exited(0))]
#[case::status("exit 7", "", "", Outcome::Exited(7))]
#[case::not_found("exec no-such-program-here", "", "not found", Outcome::Exited(127))]
#[case::status_255("exit 255", "", "", Outcome::Exited(255))]
#[case::status_125("exit 125", "", "", Outcome::Exited(125))]
#[case::killed("kill -KILL $$", "", "", Outcome::Signalled(9))]
#[case::terminated("kill -TERM $$", "", "", Outcome::Signalled(15))]
#[case::no_input("cat; echo $?", "0\n", "", Outcome::Exited(0))]
#[case::last_words("printf x; printf y >&2; kill -9 $$", "x", "y", Outcome::Signalled(9))]
#[tokio::test]
async fn a_result_is_what_the_command_made_of_it(
    #[case] text: &str,
    #[case] stdout: &str,
    #[case] stderr: &str,
    #[case] outcome: Outcome,
) {
    let home = Home::new();
    let done = home.connect().await.bash(text).await;
    assert_eq!(String::from_utf8_lossy(&done.stdout), stdout);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(
        said == stderr || !stderr.is_empty() && said.contains(stderr),
        "{said}"
    );
    assert_eq!((done.outcome, done.background), (outcome, 0));
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let home = Home::new();
    let helper = home.connect().await;
    let at = |cwd: &str| boxery_wire::Run {
        cwd: Some(cwd.into()),
        ..bash("true")
    };
    assert_eq!(
        helper.failure(at("/no/such/folder")).await,
        Failure::FolderGone
    );
    assert_eq!(helper.failure(at("/etc/passwd")).await, Failure::FolderGone);
    let no_bash = boxery_wire::Run {
        env: vec![("PATH".into(), "/nowhere".into())],
        ..bash("true")
    };
    assert_eq!(helper.failure(no_bash).await, Failure::NoBash);
    let done = helper.run(run(&[b"no-such-program"])).await;
    assert_eq!(done.outcome, Outcome::Exited(127));
    assert!(
        done.stderr.starts_with(b"boxery: no-such-program: "),
        "{done:?}"
    );
    let done = helper.run(run(&[b"/etc/passwd"])).await;
    assert_eq!(done.outcome, Outcome::Exited(126));
}

#[tokio::test]
async fn the_command_has_its_own_session_the_users_variables_and_the_requests() {
    let home = Home::new();
    let helper = home.connect().await;
    let done = helper
        .run(boxery_wire::Run {
            env: vec![("GREETING".into(), Blob(b"a\xffb\n'\"".to_vec()))],
            cwd: Some("/tmp".into()),
            ..bash(r#"printf %s "$GREETING"; echo "$HOME:$USER:$PWD:$(ps -o sid= -p $$ | tr -d ' ')" >&2; echo $$ >&2"#)
        })
        .await;
    assert_eq!(done.stdout, b"a\xffb\n'\"");
    let text = String::from_utf8(done.stderr).unwrap();
    let pid = text.lines().nth(1).unwrap();
    let want = format!("{}:vmuser:/tmp:{pid}", home.path().display());
    assert_eq!(text.lines().next(), Some(&*want));
}

#[rstest]
#[case::empty(0)]
#[case::an_argument(131_071)]
#[case::longer_than_an_argument(131_072)]
#[case::a_mebibyte(1 << 20)]
#[tokio::test]
async fn a_text_of_any_length_is_run_as_it_is(#[case] length: usize) {
    let home = Home::new();
    let helper = home.connect().await;
    let before = "cat <<'END' | md5sum; echo \"$0 $*\"; exit 3\n";
    let after = "\nEND\n";
    let filler: String = ("é$`\"'\\\n".chars().cycle()).take(length / 2).collect();
    let mut filler = filler;
    while before.len() + filler.len() + after.len() > length.max(before.len() + after.len()) {
        filler.pop();
    }
    let text = format!("{before}{filler}{after}");
    let done = helper
        .run(run(&[b"bash", b"-c", text.as_bytes(), b"name", b"a b"]))
        .await;
    let digest = std::process::Command::new("bash")
        .args(["-c", "head -c -0 | md5sum"])
        .stdin({
            let mut file = tempfile::tempfile().unwrap();
            std::io::Write::write_all(&mut file, format!("{filler}\n").as_bytes()).unwrap();
            std::io::Seek::rewind(&mut file).unwrap();
            file
        })
        .output()
        .unwrap();
    let want = format!("{}name a b\n", String::from_utf8(digest.stdout).unwrap());
    assert_eq!(String::from_utf8_lossy(&done.stdout), want, "{done:?}");
    assert_eq!(done.outcome, Outcome::Exited(3));
}

#[tokio::test]
async fn arguments_are_any_bytes_but_nul() {
    let home = Home::new();
    let helper = home.connect().await;
    let bytes: Vec<u8> = (1..=255).collect();
    let many: Vec<Vec<u8>> = (0..200).map(|n| bytes.repeat(1 + n % 20)).collect();
    let mut argv: Vec<&[u8]> = vec![b"printf", b"%s\\0"];
    argv.extend(many.iter().map(Vec::as_slice));
    let done = helper.run(run(&argv)).await;
    let want: Vec<u8> = many
        .iter()
        .flat_map(|word| [word.as_slice(), &[0]].concat())
        .collect();
    assert!(done.stdout == want);
}

#[tokio::test]
async fn input_is_passed_on_and_its_end_is_seen() {
    let home = Home::new();
    let helper = home.connect().await;
    let request = boxery_wire::Run {
        stdin: Stdin::Pipe,
        ..bash("wc -c")
    };
    let (reply, mut talk) = helper.ask(&Request::Run(Box::new(request))).await;
    assert_eq!(reply, Reply::Started);
    let (mut sent, mut taken) = (0_u64, 0_u64);
    let total = 20_u64 << 20;
    while sent < total {
        while sent < total && sent - taken < boxery_wire::STDIN_WINDOW {
            talk.say(&ToRun::Stdin(Blob(vec![7; 64 * 1024]))).await;
            sent += 64 * 1024;
        }
        match talk.next::<FromRun>().await.unwrap() {
            FromRun::StdinTaken(all) => taken = all,
            other => panic!("{other:?}"),
        }
        if total - sent < boxery_wire::STDIN_WINDOW / 2 && sent == total {
            break;
        }
    }
    talk.say(&ToRun::StdinEnd).await;
    let done = talk.collect().await;
    assert_eq!(
        String::from_utf8_lossy(&done.stdout).trim(),
        total.to_string()
    );
}

#[tokio::test]
async fn a_command_that_reads_nothing_holds_up_neither_signals_nor_cancelling() {
    let home = Home::new();
    let helper = home.connect().await;
    let request = boxery_wire::Run {
        stdin: Stdin::Pipe,
        ..bash("trap 'echo usr1' USR1; echo ready; while :; do read -t 60 <> <(:); done")
    };
    let (_, mut talk) = helper.ask(&Request::Run(Box::new(request))).await;
    talk.until("ready").await;
    for _ in 0..60 {
        talk.say(&ToRun::Stdin(Blob(vec![7; 64 * 1024]))).await;
    }
    talk.say(&ToRun::Signal(10)).await;
    talk.until("usr1").await;
    talk.say(&ToRun::Cancel).await;
    let done = talk.collect().await;
    assert_eq!(done.outcome, Outcome::Cancelled(Why::Asked));
}

#[tokio::test]
async fn a_command_finds_no_signal_ignored_whatever_the_helper_found() {
    let home = Home::new();
    let mut command = tokio::process::Command::new("sh");
    command
        .args(["-c", "trap '' HUP INT QUIT TERM PIPE; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_boxery-helper"));
    let helper = home.connect_to(command).await;
    let done = helper
        .run(bash(
            "grep SigIgn /proc/self/status; trap 'exit 5' INT; kill -INT $$",
        ))
        .await;
    let ignored = String::from_utf8_lossy(&done.stdout);
    let ignored = ignored.trim().trim_start_matches("SigIgn:\t");
    // Above 31 are the ones that C libraries keep for themselves.
    let ignored = u64::from_str_radix(ignored, 16).unwrap() & 0x7fff_ffff;
    assert_eq!((ignored, done.outcome), (0, Outcome::Exited(5)));
}

#[tokio::test]
async fn a_terminal_has_its_size_and_takes_signals_by_its_keys() {
    let home = Home::new();
    let helper = home.connect().await;
    let request = boxery_wire::Run {
        stdin: Stdin::Pty(Size {
            columns: 91,
            rows: 17,
        }),
        ..bash(
            "tty -s && stty size; read line; stty size; trap 'echo int; exit 4' INT; echo on; while :; do read -t 1 x; done",
        )
    };
    let (_, mut talk) = helper.ask(&Request::Run(Box::new(request))).await;
    talk.until("17 91").await;
    talk.say(&ToRun::Resize(Size {
        columns: 50,
        rows: 20,
    }))
    .await;
    talk.say(&ToRun::Stdin("\n".into())).await;
    talk.until("20 50").await;
    talk.until("on\r\n").await;
    talk.say(&ToRun::Stdin("\x03".into())).await;
    let done = talk.collect().await;
    assert!(String::from_utf8_lossy(&done.stdout).contains("int"));
    assert_eq!(done.outcome, Outcome::Exited(4));
}

#[tokio::test]
async fn a_background_child_does_not_hold_up_the_end() {
    let home = Home::new();
    let helper = home.connect().await;
    let begin = Instant::now();
    let request = bash("(sleep 300 &); echo hi");
    let run = request.run;
    let done = helper.run(request).await;
    assert_eq!((&*done.stdout, done.background), (&b"hi\n"[..], 1));
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
    // It is a job now, until somebody ends it.
    let Reply::Jobs(jobs) = helper.ask(&Request::Jobs).await.0 else {
        panic!("jobs are listed")
    };
    let job = jobs.iter().find(|job| job.run == run).unwrap();
    assert_eq!(
        job.state,
        boxery_wire::JobState::Background(Outcome::Exited(0))
    );
    let (reply, _) = helper.ask(&Request::Stop { run }).await;
    assert!(matches!(reply, Reply::Ended(_)), "{reply:?}");
    assert!(support::left(run).is_empty());
}

#[tokio::test]
async fn what_a_filter_of_the_output_prints_last_is_not_lost() {
    let home = Home::new();
    let helper = home.connect().await;
    for _ in 0..50 {
        let done = helper
            .bash("exec > >(sed s/a/b/); echo a; seq 1 10000")
            .await;
        let text = String::from_utf8_lossy(&done.stdout);
        assert_eq!(
            (text.lines().count(), text.lines().next()),
            (10_001, Some("b")),
            "{done:?}"
        );
    }
}

#[tokio::test]
async fn a_run_whose_time_is_up_is_ended() {
    let home = Home::new();
    let helper = home.connect().await;
    let request = boxery_wire::Run {
        timeout: Some(100),
        ..bash("echo on; sleep 300")
    };
    let run = request.run;
    let done = helper.run(request).await;
    assert_eq!(done.outcome, Outcome::Cancelled(Why::TimedOut));
    assert_eq!(done.stdout, b"on\n");
    assert!(support::left(run).is_empty());
}

#[tokio::test]
async fn a_run_that_was_never_heard_of_is_lost() {
    let home = Home::new();
    let helper = home.connect().await;
    let request = Request::Attach {
        run: id(),
        offset: 0,
    };
    let (reply, _) = helper.ask(&request).await;
    assert_eq!(reply, Reply::Failed(Failure::Lost(Loss::Unknown)));
}

#[tokio::test]
async fn a_stalled_reader_does_not_delay_another_run() {
    let home = Home::new();
    let helper = home.connect().await;
    let request = bash("head -c 209715200 /dev/zero; echo done >&2");
    let (reply, mut stalled) = helper.ask(&Request::Run(Box::new(request))).await;
    assert_eq!(reply, Reply::Started);
    let mut times = Vec::new();
    for _ in 0..50 {
        let begin = Instant::now();
        assert_eq!(helper.bash("true").await.outcome, Outcome::Exited(0));
        times.push(begin.elapsed());
    }
    times.sort();
    assert!(times[25] < Duration::from_millis(50), "{times:?}");
    let mut length = 0;
    loop {
        match stalled.next::<FromRun>().await.unwrap() {
            FromRun::Stdout(bytes) => length += bytes.len(),
            FromRun::End(_) => break,
            _ => {}
        }
        if length % 50 == 0 {
            stalled.say(&ToRun::Ack(stalled.taken())).await;
        }
    }
    assert_eq!(length, 209_715_200);
}
