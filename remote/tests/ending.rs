//! What a run leaves behind when it ends early, and when it ends by itself.

#![expect(
    clippy::unwrap_used,
    reason = "a scene that can't be set up should fail at once"
)]

#[path = "support/mod.rs"]
mod support;

use std::time::Duration;

use boxery_remote::{
    Cancel, Input, PipeChoice, RemoteError, RunEnd, RunExit, RunIo, RunRequest, Way, run,
};
use rstest::rstest;
use support::{Sshd, bash, eventually, run_text, running, token};
use tokio::io::{AsyncReadExt as _, DuplexStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Everything that a tree can be: a child, a background child, one that ignores
/// TERM, a stopped one, one in a session of its own, a daemon that forked twice,
/// one that dropped its environment.
fn tree(token: &str) -> String {
    format!(
        "sleep {token} &
         (setsid sleep {token} &)
         (setsid bash -c 'sleep {token} & disown; exec sleep {token}' &)
         (env -i sleep {token} &)
         env -i bash -c 'sleep {token}; :' &
         bash -c 'trap \"\" TERM HUP INT; while :; do sleep 0.05; done' _ {token} &
         sleep {token} & stopped=$!
         nohup sleep {token} >/dev/null 2>&1 &
         until [ $(grep -lzxf - /proc/[0-9]*/cmdline 2>/dev/null <<<{token} | wc -l) -ge 9 ]; do sleep 0.02; done
         kill -STOP $stopped
         echo ready
         wait; sleep {token}"
    )
}

struct Started {
    ended: JoinHandle<Result<RunEnd, RemoteError>>,
    cancel: Option<oneshot::Sender<Cancel>>,
    stdout: DuplexStream,
}

/// Start a run in the background and wait until it says `ready`.
async fn start(way: Way, request: RunRequest, stdin: Option<Input>) -> Started {
    let (mut stdout, output) = tokio::io::duplex(1 << 20);
    let (cancel, cancelled) = oneshot::channel();
    let io = RunIo {
        stdin,
        stdout: Box::pin(output),
        stderr: Box::pin(tokio::io::sink()),
    };
    let ended = tokio::spawn(async move {
        let cancelled = async {
            match cancelled.await {
                Ok(cancel) => cancel,
                Err(_) => std::future::pending().await,
            }
        };
        run(&way, &request, io, cancelled).await
    });
    let mut ready = [0; 6];
    tokio::time::timeout(Duration::from_secs(30), stdout.read_exact(&mut ready))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&ready, b"ready\n");
    Started {
        ended,
        cancel: Some(cancel),
        stdout,
    }
}

#[rstest]
#[case::interrupt(Cancel::Interrupt, 130)]
#[case::terminate(Cancel::Terminate, 143)]
#[tokio::test]
async fn a_cancelled_run_leaves_nothing(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[case] why: Cancel,
    #[case] code: u8,
) {
    let (sshd, token) = (Sshd::start(), token());
    let mut started = start(sshd.open(pipe).await, bash(&tree(&token)), None).await;
    assert!(running(&token).len() >= 9);
    started.cancel.take().unwrap().send(why).unwrap();
    let end = started.ended.await.unwrap().unwrap();
    assert_eq!((end.exit, end.left), (RunExit::Cancelled(why), Some(0)));
    assert_eq!(end.exit.code(), code);
    assert_eq!(running(&token), [""; 0], "left when the client said so");
}

#[rstest]
#[tokio::test]
async fn a_timed_out_run_leaves_nothing_and_does_no_more(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let (sshd, token) = (Sshd::start(), token());
    let request = RunRequest {
        timeout: Some(Duration::from_millis(500)),
        ..bash(&format!("echo before; sleep {token}; echo after"))
    };
    let pipe = sshd.open(pipe).await;
    let text = run_text(&pipe, &request).await;
    assert_eq!(text, (124, "before\n".to_owned(), String::new()));
    assert_eq!(running(&token), [""; 0]);
}

#[rstest]
#[tokio::test]
async fn a_dropped_run_ends_the_tree(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let (sshd, token) = (Sshd::start(), token());
    let started = start(sshd.open(pipe).await, bash(&tree(&token)), None).await;
    started.ended.abort();
    eventually("the tree ends", Duration::from_secs(10), || {
        running(&token).is_empty()
    })
    .await;
}

#[rstest]
#[tokio::test]
async fn nobody_reading_the_output_ends_the_tree(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let (sshd, token) = (Sshd::start(), token());
    let text = format!("sleep {token} & echo ready; while :; do echo more; done");
    let started = start(sshd.open(pipe).await, bash(&text), None).await;
    drop(started.stdout);
    let end = started.ended.await.unwrap().unwrap();
    assert_eq!((end.exit, end.left), (RunExit::OutputClosed, Some(0)));
    assert_eq!(running(&token), [""; 0]);
}

#[rstest]
#[tokio::test]
async fn a_reader_that_stalls_does_not_keep_a_run_from_ending(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let (sshd, token) = (Sshd::start(), token());
    let text = format!("sleep {token} & echo ready; yes; :");
    let mut started = start(sshd.open(pipe).await, bash(&text), None).await;
    started
        .cancel
        .take()
        .unwrap()
        .send(Cancel::Terminate)
        .unwrap();
    let end = started.ended.await.unwrap().unwrap();
    assert_eq!(end.exit, RunExit::Cancelled(Cancel::Terminate));
    eventually("the tree ends", Duration::from_secs(10), || {
        running(&token).is_empty()
    })
    .await;
}

#[rstest]
#[tokio::test]
async fn what_a_finished_run_left_in_the_background_stays(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[values(false, true)] piped: bool,
) {
    let (sshd, token) = (Sshd::start(), token());
    let pipe = sshd.open(pipe).await;
    let text = format!("sleep {token} >/dev/null 2>&1 & (setsid sleep {token} &); echo hi");
    let stdin = piped.then(Vec::new);
    let captured = support::run_bytes(&pipe, &bash(&text), stdin).await;
    assert_eq!(
        (captured.exit, &captured.stdout[..]),
        (RunExit::Code(0), &b"hi\n"[..])
    );
    drop(pipe);
    // Long enough for whoever would sweep: the next run's own time.
    let next = sshd.open(PipeChoice::Native).await;
    run_text(&next, &bash("sleep 1")).await;
    assert_eq!(running(&token).len(), 2);
    run_text(&next, &bash(&format!("pkill -f 'sleep {token}'"))).await;
}
