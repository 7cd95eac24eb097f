//! A run goes on while the link is broken, and its stream at the byte where it broke.

use std::time::Duration;

use boxery_wire::{Failure, FromRun, Loss, Outcome, Reply, Request, Run, Stdin, ToRun};
use rstest::rstest;

use crate::support::{self, Done, Home, bash, eventually};

/// How a link breaks.
#[derive(Debug, Clone, Copy)]
enum Break {
    Cut,
    KillHelper,
}

#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stream_goes_on_at_the_byte_where_it_broke(
    #[values(Break::Cut, Break::KillHelper)] how: Break,
    #[values(true, false)] acknowledging: bool,
) {
    let home = Home::new();
    let request = bash("for i in $(seq 1 400000); do echo $i; done; echo end >&2; exit 9");
    let run = request.run;
    let mut want: Vec<u8> = Vec::new();
    for number in 1..=400_000 {
        want.extend(format!("{number}\n").bytes());
    }
    let (mut stdout, mut taken, mut breaks) = (Vec::new(), 0_u64, 0_usize);
    let mut stderr = Vec::new();
    let end = 'all: loop {
        let helper = home.connect().await;
        let (reply, mut talk) = if taken == 0 {
            helper.ask(&Request::Run(Box::new(request.clone()))).await
        } else {
            helper.ask(&Request::Attach { run, offset: taken }).await
        };
        assert!(!matches!(reply, Reply::Failed(_)), "{reply:?}");
        let (base, goal) = (taken, stdout.len() + 100_000 + 77_777 * breaks);
        loop {
            match talk.next::<FromRun>().await.unwrap() {
                FromRun::Stdout(bytes) => stdout.extend(bytes.0),
                FromRun::Stderr(bytes) => stderr.extend(bytes.0),
                FromRun::StdinTaken(_)
                | FromRun::Skipped(_)
                | FromRun::FolderGone(_)
                | FromRun::Released => panic!("nothing of the kind"),
                FromRun::End(end) => {
                    talk.say(&ToRun::Ack(base + talk.taken())).await;
                    break 'all end;
                }
            }
            taken = base + talk.taken();
            if acknowledging {
                talk.say(&ToRun::Ack(taken)).await;
            }
            if stdout.len() > goal {
                break;
            }
        }
        breaks += 1;
        match how {
            Break::Cut => helper.cut().await,
            Break::KillHelper => helper.kill().await,
        }
    };
    assert!(breaks > 3, "{breaks}");
    assert!(stdout == want, "{} of {} bytes", stdout.len(), want.len());
    assert_eq!(
        (stderr.as_slice(), end.outcome),
        (&b"end\n"[..], Outcome::Exited(9))
    );
}

#[tokio::test]
async fn a_run_that_ended_meanwhile_is_told_with_its_status() {
    let home = Home::new();
    let helper = home.connect().await;
    let request = bash("echo one; read -t 300 <> go; echo two; exit 5");
    let (run, fifo) = (request.run, home.path().join("go"));
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
    let (_, mut talk) = helper.ask(&Request::Run(Box::new(request))).await;
    talk.until("one\n").await;
    let taken = talk.taken();
    helper.cut().await;
    let mut go = std::fs::File::options().write(true).open(&fifo).unwrap();
    std::io::Write::write_all(&mut go, b"\n").unwrap();
    eventually("the end of the command", || support::left(run).is_empty()).await;
    let helper = home.connect().await;
    let (reply, mut talk) = helper.ask(&Request::Attach { run, offset: taken }).await;
    assert!(matches!(reply, Reply::Attached { .. }), "{reply:?}");
    let mut rest = Vec::new();
    let end = loop {
        match talk.next::<FromRun>().await.unwrap() {
            FromRun::Stdout(bytes) => rest.extend(bytes.0),
            FromRun::End(end) => break end,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        (rest.as_slice(), end.outcome),
        (&b"two\n"[..], Outcome::Exited(5))
    );
    talk.say(&ToRun::Ack(taken + talk.taken())).await;
    // Acknowledged to its end, it is done with.
    while talk.next::<FromRun>().await.is_some() {}
    let (reply, _) = helper.ask(&Request::Attach { run, offset: taken }).await;
    assert_eq!(reply, Reply::Failed(Failure::Lost(Loss::Acknowledged)));
}

#[tokio::test]
async fn a_run_is_executed_once_however_often_it_is_asked_for() {
    let home = Home::new();
    let request = bash("echo x >> count; sleep 0.2; cat count");
    let ask = Request::Run(Box::new(request.clone()));
    let first = home.connect().await;
    let second = home.connect().await;
    let ((one, _a), (two, _b)) = tokio::join!(first.ask(&ask), second.ask(&ask));
    assert_eq!((one, two), (Reply::Started, Reply::Started));
    first.kill().await;
    let third = home.connect().await;
    let (reply, mut talk) = third.ask(&ask).await;
    assert_eq!(reply, Reply::Started);
    let Done { stdout, .. } = talk.collect().await;
    assert_eq!(stdout, b"x\n");
    while talk.next::<FromRun>().await.is_some() {}
    let (reply, _) = third.ask(&ask).await;
    assert_eq!(reply, Reply::Failed(Failure::Lost(Loss::Acknowledged)));
    assert_eq!(std::fs::read(home.path().join("count")).unwrap(), b"x\n");
}

#[tokio::test]
async fn a_run_ends_when_its_grace_passes_with_nobody_back() {
    let home = Home::new();
    let helper = home.connect().await;
    let request = Run {
        grace: 1,
        ..bash("setsid sleep 300 & echo ready; wait")
    };
    let run = request.run;
    let (_, mut talk) = helper.ask(&Request::Run(Box::new(request))).await;
    talk.until("ready").await;
    helper.cut().await;
    assert!(!support::left(run).is_empty());
    eventually("the end of the run", || support::left(run).is_empty()).await;
    let helper = home.connect().await;
    let mut reply = None;
    eventually_async(async || {
        let request = Request::Attach {
            run,
            offset: u64::MAX,
        };
        reply = Some(helper.ask(&request).await.0);
        reply == Some(Reply::Failed(Failure::Lost(Loss::GracePassed)))
    })
    .await;
}

#[tokio::test]
async fn a_run_whose_folder_was_removed_ends_with_its_supervisor() {
    let home = Home::new();
    let helper = home.connect().await;
    let request = bash("setsid sleep 300 & echo ready; wait");
    let run = request.run;
    let (_, mut talk) = helper.ask(&Request::Run(Box::new(request))).await;
    talk.until("ready").await;
    helper.cut().await;
    let supervisors = || support::inside(home.path());
    assert!(!support::left(run).is_empty() && !supervisors().is_empty());
    std::fs::remove_dir_all(home.run(run)).unwrap();
    eventually("the end of everybody", || {
        support::left(run).is_empty() && supervisors().is_empty()
    })
    .await;
}

async fn eventually_async(mut is_so: impl AsyncFnMut() -> bool) {
    let begin = std::time::Instant::now();
    while !is_so().await {
        assert!(begin.elapsed() < support::PATIENCE, "it never came");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_full_journal_stops_the_writer_until_it_is_acknowledged() {
    let home = Home::new();
    let helper = home.connect().await;
    let limit = 40 << 20;
    let request = Run {
        journal: limit,
        ..bash("head -c 100000000 /dev/zero; touch finished")
    };
    let run = request.run;
    let (_, mut talk) = helper.ask(&Request::Run(Box::new(request))).await;
    assert!(talk.next::<FromRun>().await.is_some());
    helper.cut().await;
    let spilled = || -> u64 {
        let entries = std::fs::read_dir(home.run(run)).unwrap().flatten();
        let lengths = entries.filter_map(|entry| Some(entry.metadata().ok()?.len()));
        lengths.sum()
    };
    eventually("a journal on the disk", || spilled() > 20 << 20).await;
    assert!(spilled() < limit + (1 << 20));
    assert!(!home.path().join("finished").exists());
    let helper = home.connect().await;
    let (_, mut talk) = helper.ask(&Request::Attach { run, offset: 0 }).await;
    let mut length = 0;
    loop {
        match talk.next::<FromRun>().await.unwrap() {
            FromRun::Stdout(bytes) => {
                assert!(bytes.iter().all(|byte| *byte == 0));
                length += bytes.len();
            }
            FromRun::End(_) => break,
            other => panic!("{other:?}"),
        }
        talk.say(&ToRun::Ack(talk.taken())).await;
    }
    assert_eq!(length, 100_000_000);
    assert!(home.path().join("finished").exists());
}

#[tokio::test]
async fn input_goes_on_where_it_broke() {
    let home = Home::new();
    let helper = home.connect().await;
    let request = Run {
        stdin: Stdin::Pipe,
        ..bash("cat")
    };
    let run = request.run;
    let (_, mut talk) = helper.ask(&Request::Run(Box::new(request))).await;
    talk.say(&ToRun::Stdin("one ".into())).await;
    talk.until("one ").await;
    let taken = talk.taken();
    helper.cut().await;
    let helper = home.connect().await;
    let (reply, mut talk) = helper.ask(&Request::Attach { run, offset: taken }).await;
    let stdin_ended = false;
    assert_eq!(
        reply,
        Reply::Attached {
            stdin: 4,
            stdin_ended
        }
    );
    talk.say(&ToRun::Stdin("two".into())).await;
    talk.say(&ToRun::StdinEnd).await;
    let done = tokio::time::timeout(Duration::from_mins(1), talk.collect())
        .await
        .unwrap();
    assert_eq!(
        (done.stdout.as_slice(), done.outcome),
        (&b"two"[..], Outcome::Exited(0))
    );
}

#[tokio::test]
async fn a_supervisor_and_its_helper_are_gone_when_all_is_taken() {
    let home = Home::new();
    for _ in 0..20 {
        let mut helper = home.connect().await;
        let request = bash("echo $PPID");
        let run = request.run;
        let done = helper.run(request).await;
        let supervisor = String::from_utf8(done.stdout).unwrap();
        let path = format!("/proc/{}", supervisor.trim());
        eventually("the supervisor's end", || {
            !std::path::Path::new(&path).exists()
        })
        .await;
        let files = std::fs::read_dir(home.run(run)).unwrap().flatten();
        let names: Vec<_> = files.map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["done"]);
        helper.connection.close();
        assert!(helper.child.wait().await.unwrap().success());
    }
}
