//! Many runs, much output, many connections: what they cost.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of a test: what can't be read fails it"
)]

use boxery_wire::{FromRun, Outcome, Reply, Request, Run, ToRun};

use crate::support::{Helper, Home, bash, eventually};

/// The most memory that a process ever had, in KiB.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

#[tokio::test]
async fn output_without_limit_takes_constant_memory() {
    let home = Home::new();
    let helper = home.connect().await;
    let request = bash("echo $PPID >&2; head -c 400000000 /dev/zero");
    let (_, mut talk) = helper.ask(&Request::Run(Box::new(request))).await;
    let (mut supervisor, mut length, mut acknowledged) = (0, 0, 0);
    let mut supervisors_peak = 0;
    loop {
        match talk.next::<FromRun>().await.unwrap() {
            FromRun::Stderr(bytes) => {
                supervisor = String::from_utf8(bytes.0).unwrap().trim().parse().unwrap();
            }
            FromRun::Stdout(bytes) => length += bytes.len(),
            FromRun::End(end) => {
                assert_eq!(end.outcome, Outcome::Exited(0));
                supervisors_peak = supervisors_peak.max(peak(supervisor));
                break;
            }
            other => panic!("{other:?}"),
        }
        if talk.taken() > acknowledged + (1 << 20) {
            acknowledged = talk.taken();
            talk.say(&ToRun::Ack(acknowledged)).await;
        }
    }
    assert_eq!(length, 400_000_000);
    let helpers_peak = peak(helper.child.id().unwrap());
    assert!(
        supervisors_peak < 60_000,
        "the supervisor had {supervisors_peak} KiB"
    );
    assert!(helpers_peak < 60_000, "the helper had {helpers_peak} KiB");
}

#[tokio::test]
async fn fifty_runs_at_once_keep_their_streams_apart() {
    let home = Home::new();
    let helper = home.connect().await;
    let one = async |helper: &Helper, number: u32| {
        let text = format!("for i in $(seq 200); do echo {number}:$i; done; exit {number}");
        let done = helper.bash(&text).await;
        let lines: Vec<String> = (1..=200).map(|i| format!("{number}:{i}")).collect();
        let text = String::from_utf8(done.stdout).unwrap();
        assert!(text.lines().eq(&lines), "{number}");
        assert_eq!(done.outcome, Outcome::Exited(u8::try_from(number).unwrap()));
    };
    let (h, mut all) = (&helper, Vec::new());
    for number in 0..50 {
        all.push(Box::pin(one(h, number)));
    }
    let mut left = all;
    // All of them are polled until none is left.
    std::future::poll_fn(|context| {
        left.retain_mut(|run| run.as_mut().poll(context).is_pending());
        if left.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}

#[tokio::test]
async fn connections_that_come_and_go_leave_nothing() {
    let home = Home::new();
    for round in 0..60 {
        let mut helper = home.connect().await;
        let pid = helper.child.id().unwrap();
        let request = Run {
            grace: 0,
            ..bash("echo $PPID; sleep 300")
        };
        let (reply, mut talk) = helper.ask(&Request::Run(Box::new(request))).await;
        assert_eq!(reply, Reply::Started);
        let line = String::from_utf8(talk.until("\n").await).unwrap();
        if round % 2 == 0 {
            helper.connection.close();
            helper.child.wait().await.unwrap();
        } else {
            helper.kill().await;
        }
        // Nobody's child, it stays a zombie for as long as init likes.
        let stat = format!("/proc/{}/stat", line.trim());
        eventually("the supervisor's end", || {
            std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "))
        })
        .await;
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}
