//! Nothing outlives a run that is ended, however it tries.

use std::time::{Duration, Instant};

use boxery_wire::{Failure, Loss, Outcome, Reply, Request, ToRun, Why};
use rstest::rstest;

use crate::support::{self, Home, bash, eventually};

/// A process that becomes the subreaper of its own children, which outlive it.
const SUBREAPER: &str = r#"
import ctypes, os, signal
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.pause()
        os._exit(0)
print("ready", flush=True)
signal.pause()
"#;

/// A child that is made its maker's sibling: clone with `CLONE_PARENT` and SIGCHLD.
const CLONE_PARENT: &str = r#"
import ctypes, os, signal, platform
number = 56 if platform.machine() == "x86_64" else 220
if ctypes.CDLL(None).syscall(number, 0x8000 | 17, 0, 0, 0, 0) == 0:
    os.setsid()
    signal.pause()
print("ready", flush=True)
signal.pause()
"#;

/// A chain: each link forks the next one and ends at once.
const CHAIN: &str = r#"
import os, select, time
print("ready", flush=True)
end = time.time() + 300
while time.time() < end:
    if os.fork() != 0:
        os._exit(0)
    select.select([], [], [], 0.001)
"#;

fn python(text: &str) -> String {
    format!("exec python3 -c '{text}'")
}

#[rstest]
#[case::plain("echo ready; sleep 300")]
#[case::background("sleep 300 & sleep 301 & echo ready; wait")]
#[case::setsid("setsid sleep 300 & setsid setsid sleep 301 & echo ready; wait")]
#[case::double_fork("(setsid bash -c 'sleep 300 & disown' &); sleep 0.1; echo ready; sleep 300")]
#[case::deaf(
    "trap '' TERM HUP INT; (trap '' TERM; sleep 300) & echo ready; while :; do sleep 1; done"
)]
#[case::stopped("sleep 300 & kill -STOP $!; echo ready; kill -STOP $$")]
#[case::nohup("nohup setsid nohup sleep 300 >/dev/null 2>&1 & echo ready; sleep 300")]
#[case::closed_streams("exec 1>&- 2>&- ; sleep 300")]
#[case::own_subreaper(&python(SUBREAPER))]
#[case::clone_parent(&python(CLONE_PARENT))]
#[case::fork_chain(&python(CHAIN))]
#[tokio::test]
async fn cancelling_leaves_nobody(#[case] text: &str) {
    let home = Home::new();
    let helper = home.connect().await;
    let request = bash(text);
    let run = request.run;
    let (reply, mut talk) = helper.ask(&Request::Run(Box::new(request))).await;
    assert_eq!(reply, Reply::Started);
    if text.contains("ready") {
        talk.until("ready").await;
    } else {
        eventually("the command", || !support::left(run).is_empty()).await;
    }
    let begin = Instant::now();
    talk.say(&ToRun::Cancel).await;
    let done = talk.collect().await;
    assert!(
        matches!(done.outcome, Outcome::Cancelled(Why::Asked)),
        "{done:?}"
    );
    assert_eq!(done.background, 0);
    assert_eq!(support::left(run), std::collections::HashMap::new());
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "{:?}",
        begin.elapsed()
    );
}

#[tokio::test]
async fn a_client_that_goes_away_takes_its_run_along() {
    let home = Home::new();
    let helper = home.connect().await;
    let request = bash("setsid sleep 300 & echo ready; wait");
    let run = request.run;
    let (_, mut talk) = helper.ask(&Request::Run(Box::new(request))).await;
    talk.until("ready").await;
    drop(talk);
    eventually("the end of the run", || support::left(run).is_empty()).await;
}

#[rstest]
#[case::killed("KILL", "")]
#[case::with_a_daemon("KILL", "(setsid setsid sleep 300 &) ; ")]
#[tokio::test]
async fn a_killed_supervisor_is_swept_after(#[case] signal: &str, #[case] before: &str) {
    let home = Home::new();
    let helper = home.connect().await;
    let text = format!("{before} sleep 300 & kill -{signal} $PPID; echo ready; sleep 300");
    let request = bash(&text);
    let run = request.run;
    let (_, mut talk) = helper.ask(&Request::Run(Box::new(request))).await;
    while talk.next::<boxery_wire::FromRun>().await.is_some() {}
    eventually("the end of the run", || support::left(run).is_empty()).await;
    let (reply, _) = helper.ask(&Request::Attach { run, offset: 0 }).await;
    assert_eq!(reply, Reply::Failed(Failure::Lost(Loss::Broken)));
    // The same if the VM had been started again since.
    let boot = home.run(run).join("boot");
    std::fs::remove_file(&boot).unwrap();
    std::os::unix::fs::symlink("of-another-boot", &boot).unwrap();
    let (reply, _) = helper.ask(&Request::Attach { run, offset: 0 }).await;
    assert_eq!(reply, Reply::Failed(Failure::Lost(Loss::Restarted)));
}

#[tokio::test]
async fn a_supervisor_that_was_killed_after_its_helper_is_swept_by_the_next() {
    let home = Home::new();
    let helper = home.connect().await;
    let request = bash("setsid sleep 300 & echo $PPID; wait");
    let run = request.run;
    let (_, mut talk) = helper.ask(&Request::Run(Box::new(request))).await;
    let line = talk.until("\n").await;
    helper.kill().await;
    let supervisor: i32 = String::from_utf8(line).unwrap().trim().parse().unwrap();
    let supervisor = rustix::process::Pid::from_raw(supervisor).unwrap();
    rustix::process::kill_process(supervisor, rustix::process::Signal::KILL).unwrap();
    let helper = home.connect().await;
    let (reply, _) = helper.ask(&Request::Attach { run, offset: 0 }).await;
    assert_eq!(reply, Reply::Failed(Failure::Lost(Loss::Broken)));
    eventually("the end of the run", || support::left(run).is_empty()).await;
}

#[rstest]
#[case::cancelled(None, Why::Asked)]
#[case::timed_out(Some(1000), Why::TimedOut)]
#[tokio::test]
async fn a_supervisor_that_was_stopped_still_ends_its_run(
    #[case] timeout: Option<u64>,
    #[case] why: Why,
    #[values("sleep 300", "kill -STOP $$")] then: &str,
) {
    let home = Home::new();
    let helper = home.connect().await;
    let text = format!("setsid sleep 300 & echo $PPID; read x < go; kill -STOP $PPID; {then}");
    let fifo = home.path().join("go");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
    let request = boxery_wire::Run {
        timeout,
        ..bash(&text)
    };
    let run = request.run;
    let (_, mut talk) = helper.ask(&Request::Run(Box::new(request))).await;
    let line = talk.until("\n").await;
    let supervisor = String::from_utf8(line).unwrap().trim().to_owned();
    home.put("go", "\n");
    if timeout.is_none() {
        let state = || std::fs::read_to_string(format!("/proc/{supervisor}/stat")).unwrap();
        eventually("the stop", || state().contains(") T ")).await;
        talk.say(&ToRun::Cancel).await;
    }
    assert_eq!(talk.collect().await.outcome, Outcome::Cancelled(why));
    assert!(support::left(run).is_empty());
}
