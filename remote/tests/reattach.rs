//! A run whose connection breaks goes on, and so do its output and its input, at the
//! very byte.

#![expect(
    clippy::unwrap_used,
    reason = "a scene that can't be set up should fail at once"
)]

#[path = "support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use boxery_remote::{
    Cancel, Input, PipeChoice, RemoteError, RunEnd, RunExit, RunIo, RunRequest, Way, run,
};
use rstest::rstest;
use support::{Sshd, bash, eventually, run_text, running, token};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Numbers, a line each, so that a byte lost or doubled anywhere shows.
fn numbers(count: u32) -> Vec<u8> {
    (1..=count)
        .flat_map(|n| format!("{n}\n").into_bytes())
        .collect()
}

/// A run whose link is cut again each time so many bytes have come.
async fn run_and_cut(
    way: &Way,
    request: &RunRequest,
    stdin: Option<Input>,
    mut on_byte: impl FnMut(usize),
) -> (Result<RunEnd, RemoteError>, Vec<u8>) {
    let (mut stdout, output) = tokio::io::duplex(1 << 16);
    let io = RunIo {
        stdin,
        stdout: Box::pin(output),
        stderr: Box::pin(tokio::io::sink()),
    };
    let reading = async {
        let mut all = Vec::new();
        let mut chunk = vec![0; 1 << 16];
        loop {
            let read = stdout.read(&mut chunk).await.unwrap();
            if read == 0 {
                return all;
            }
            all.extend(&chunk[..read]);
            on_byte(all.len());
        }
    };
    let both = async { tokio::join!(run(way, request, io, std::future::pending()), reading) };
    tokio::time::timeout(Duration::from_mins(2), both)
        .await
        .unwrap()
}

#[rstest]
#[tokio::test]
async fn output_goes_on_at_the_byte_where_the_link_broke(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[values(1, 150_000, 1_000_003)] every: usize,
) {
    let sshd = Sshd::start();
    let (link, route) = sshd.behind_a_link(pipe);
    let way = Way::open(route, None, None).await.unwrap();
    let mut cuts = 0;
    let request = bash("seq 1 3000000; exit 7");
    let (end, output) = run_and_cut(&way, &request, None, |length| {
        if cuts < 4 && length >= every * (cuts + 1) {
            cuts += 1;
            link.cut();
        }
    })
    .await;
    let end = end.unwrap();
    assert_eq!(end.exit, RunExit::Code(7));
    assert!(output == numbers(3_000_000), "bytes were lost or doubled");
    assert_eq!(end.stdout_bytes, output.len() as u64);
    assert!(end.reconnected >= 1 && link.connections() >= 2, "{end:?}");
}

/// Input that comes a little at a time.
fn slowly(bytes: Vec<u8>) -> Input {
    struct Slowly(std::io::Cursor<Vec<u8>>);
    impl AsyncRead for Slowly {
        fn poll_read(
            mut self: std::pin::Pin<&mut Self>,
            context: &mut std::task::Context<'_>,
            buffer: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            let mut few = [0; 9000];
            let mut small = tokio::io::ReadBuf::new(&mut few[..buffer.remaining().min(9000)]);
            let read = std::pin::Pin::new(&mut self.0).poll_read(context, &mut small);
            buffer.put_slice(small.filled());
            read
        }
    }
    Box::pin(Slowly(std::io::Cursor::new(bytes)))
}

#[rstest]
#[tokio::test]
async fn input_goes_on_at_the_byte_where_the_link_broke(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let sshd = Sshd::start();
    let (link, route) = sshd.behind_a_link(pipe);
    let way = Way::open(route, None, None).await.unwrap();
    let sent = numbers(600_000);
    let mut cuts = 0;
    let (end, output) = run_and_cut(&way, &bash("cat"), Some(slowly(sent.clone())), |length| {
        if cuts < 3 && length >= 700_000 * (cuts + 1) {
            cuts += 1;
            link.cut();
        }
    })
    .await;
    assert_eq!(end.unwrap().exit, RunExit::Code(0));
    assert!(output == sent, "bytes were lost or doubled");
}

#[rstest]
#[tokio::test]
async fn a_run_is_never_executed_twice(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let sshd = Sshd::start();
    let (link, route) = sshd.behind_a_link(pipe);
    let way = Way::open(route, None, None).await.unwrap();
    let file = sshd.path("count");
    #[expect(clippy::disallowed_methods, reason = "a scratch file")]
    std::fs::write(&file, "").unwrap();
    assert_eq!(run_text(&way, &bash("true")).await.0, 0);
    let made = std::process::Command::new("chmod")
        .args(["a+rw", file.as_str()])
        .status();
    assert!(made.unwrap().success());
    for round in 0..12_u64 {
        // At any point: before the request, behind it, behind the answer.
        link.cut_after(round * 160);
        let request = bash(&format!("echo {round} >>{file}"));
        let end = loop {
            match run_and_cut(&way, &request, None, |_| {}).await.0 {
                Ok(end) => break end,
                Err(RemoteError::Lost) => panic!("nobody knows of round {round}"),
                // It could not connect, so nothing was asked for yet.
                Err(_) => {}
            }
        };
        assert_eq!(end.exit, RunExit::Code(0), "round {round}");
    }
    link.cut_after(u64::MAX / 2);
    let written = std::fs::read_to_string(&file).unwrap();
    let rounds: Vec<u64> = written.lines().map(|line| line.parse().unwrap()).collect();
    assert!(rounds.iter().copied().eq(0..12), "{rounds:?}");
}

#[rstest]
#[tokio::test]
async fn a_run_that_nobody_comes_back_to_ends_when_its_grace_passes(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let (sshd, token) = (Sshd::start(), token());
    let (link, route) = sshd.behind_a_link(pipe);
    let way = Way::open(route, None, None).await.unwrap();
    let request = RunRequest {
        grace: Some(Duration::from_secs(1)),
        ..bash(&format!(
            "sleep {token} & (setsid sleep {token} &); echo ready; wait"
        ))
    };
    let started = tokio::spawn(async move {
        run_and_cut(&way, &request, None, |_| {
            link.set_down(true);
            link.cut();
        })
        .await
        .0
    });
    eventually("it began", Duration::from_secs(20), || {
        running(&token).len() == 2
    })
    .await;
    eventually("it ends", Duration::from_secs(20), || {
        running(&token).is_empty()
    })
    .await;
    started.abort();
}

#[rstest]
#[tokio::test]
async fn a_client_that_learns_late_is_told_that_the_run_was_ended(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let (sshd, token) = (Sshd::start(), token());
    let (link, route) = sshd.behind_a_link(pipe);
    let way = Way::open(route, None, None).await.unwrap();
    let request = RunRequest {
        grace: Some(Duration::ZERO),
        ..bash(&format!("echo ready; sleep {token}"))
    };
    let link = std::sync::Arc::new(link);
    let cut = std::sync::Arc::clone(&link);
    let (began, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
    let started = tokio::spawn(async move {
        run_and_cut(&way, &request, None, |_| {
            cut.set_down(true);
            cut.cut();
            began.send(()).unwrap();
        })
        .await
        .0
    });
    has_begun.recv().await.unwrap();
    eventually("it ends", Duration::from_secs(20), || {
        running(&token).is_empty()
    })
    .await;
    link.set_down(false);
    let end = started.await.unwrap();
    assert!(
        matches!(end, Err(RemoteError::GracePassed | RemoteError::Lost)),
        "{end:?}"
    );
}

#[rstest]
#[tokio::test]
async fn who_is_cancelled_while_the_link_is_down_does_not_wait_for_it(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let (sshd, token) = (Sshd::start(), token());
    let (link, route) = sshd.behind_a_link(pipe);
    let way = Way::open(route, None, None).await.unwrap();
    let request = RunRequest {
        grace: Some(Duration::from_secs(2)),
        ..bash(&format!("echo ready; sleep {token}"))
    };
    let (mut stdout, output) = tokio::io::duplex(1 << 16);
    let (cancel, cancelled) = tokio::sync::oneshot::channel();
    let io = RunIo {
        stdin: None,
        stdout: Box::pin(output),
        stderr: Box::pin(tokio::io::sink()),
    };
    let ended =
        tokio::spawn(
            async move { run(&way, &request, io, async { cancelled.await.unwrap() }).await },
        );
    let mut ready = [0; 6];
    stdout.read_exact(&mut ready).await.unwrap();
    link.set_down(true);
    link.cut();
    let start = Instant::now();
    cancel.send(Cancel::Interrupt).unwrap();
    let end = ended.await.unwrap().unwrap();
    assert_eq!(
        (end.exit, end.left),
        (RunExit::Cancelled(Cancel::Interrupt), None)
    );
    assert!(
        start.elapsed() < Duration::from_secs(25),
        "{:?}",
        start.elapsed()
    );
    eventually("it ends", Duration::from_secs(20), || {
        running(&token).is_empty()
    })
    .await;
}

#[rstest]
#[tokio::test]
async fn a_reader_that_stalls_stalls_nobody_else(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let sshd = Sshd::start();
    let way = std::sync::Arc::new(sshd.open(pipe).await);
    assert_eq!(run_text(&way, &bash("true")).await.0, 0);
    let (mut stdout, output) = tokio::io::duplex(1 << 10);
    let stalled = {
        let way = std::sync::Arc::clone(&way);
        tokio::spawn(async move {
            let io = RunIo {
                stdin: None,
                stdout: Box::pin(output),
                stderr: Box::pin(tokio::io::sink()),
            };
            let request = bash("head -c 40000000 /dev/zero");
            run(&way, &request, io, std::future::pending()).await
        })
    };
    // Once it has begun nobody reads it.
    let mut first = [0; 1];
    stdout.read_exact(&mut first).await.unwrap();
    let start = Instant::now();
    for _ in 0..10 {
        assert_eq!(run_text(&way, &bash("true")).await.0, 0);
    }
    let each = start.elapsed() / 10;
    assert!(each < Duration::from_millis(250), "{each:?}");
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest.len(), 40_000_000 - 1);
    assert_eq!(stalled.await.unwrap().unwrap().exit, RunExit::Code(0));
}
