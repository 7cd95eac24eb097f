//! Time-outs and graces are measured by one clock of the VM's, which nobody sets and
//! which goes on while the VM sleeps.

use std::time::{Duration, Instant};

use boxery_wire::{Failure, Loss, Outcome, Reply, Request, Run, Why};
use rstest::rstest;
use tokio::process::Command;

use crate::support::{self, Home, bash, eventually};

/// A helper whose clocks stand apart from the machine's, and from each other.
fn elsewhere_in_time(boottime: &str, monotonic: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--time", "--boottime", boottime, "--monotonic", monotonic]);
    command.args(["--kill-child", "--", env!("CARGO_BIN_EXE_boxery-helper")]);
    command
}

#[rstest]
#[case::slept_for_days("864000", "0")]
#[case::far_apart("50", "864000")]
#[tokio::test]
async fn a_run_has_its_time_and_its_grace_whatever_the_clocks_say(
    #[case] boottime: &str,
    #[case] monotonic: &str,
) {
    let home = Home::new();
    let helper = home
        .connect_to(elsewhere_in_time(boottime, monotonic))
        .await;
    let begin = Instant::now();
    let timed = Run {
        timeout: Some(1500),
        ..bash("sleep 300")
    };
    let done = helper.run(timed).await;
    assert_eq!(done.outcome, Outcome::Cancelled(Why::TimedOut));
    assert!(begin.elapsed() >= Duration::from_millis(1400));

    let lonely = Run {
        grace: 2,
        ..bash("echo ready; sleep 300")
    };
    let run = lonely.run;
    let (_, mut talk) = helper.ask(&Request::Run(Box::new(lonely))).await;
    talk.until("ready").await;
    let begin = Instant::now();
    helper.cut().await;
    assert!(!support::left(run).is_empty(), "its grace has only begun");
    eventually("the end of the grace", || support::left(run).is_empty()).await;
    assert!(begin.elapsed() >= Duration::from_millis(1900));
    // The next one may see other clocks, as after a sleep.
    let helper = home.connect().await;
    let (reply, _) = helper.ask(&Request::Attach { run, offset: 0 }).await;
    assert_eq!(reply, Reply::Failed(Failure::Lost(Loss::GracePassed)));
}
