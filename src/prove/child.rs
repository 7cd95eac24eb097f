//! The agent's process: what it says, how it ends, and the end when it doesn't.

use std::io::{self, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use crate::error::Failure;

/// No session of a script takes that long, on however busy a machine.
const DEADLINE: Duration = Duration::from_mins(1);

/// How an agent ended and what it said.
pub(crate) struct Ended {
    status: Option<ExitStatus>,
    said: String,
}

impl Ended {
    /// `problem`, and how the agent ended.
    pub(crate) fn describe(&self, problem: &str) -> String {
        let how = match self.status {
            None => format!(
                "it was still going on after {} s and was ended",
                DEADLINE.as_secs()
            ),
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit status {code}"),
                (None, Some(signal)) => format!("ended by signal {signal}"),
                (None, None) => "it ended".to_owned(),
            },
        };
        let said: String = self.said.trim().chars().take(500).collect();
        if said.is_empty() {
            format!("{problem} ({how})")
        } else {
            format!("{problem} ({how}; it said: {said})")
        }
    }

    /// The same as a failure.
    pub(crate) fn failure(&self, problem: &str) -> Failure {
        self.describe(problem).into()
    }
}

/// Read what the agent says until it ends; past the deadline, end its whole group.
pub(crate) fn wait(mut child: Child) -> io::Result<Ended> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (done, finished) = std::sync::mpsc::channel::<()>();
    let group = rustix::process::Pid::from_child(&child);
    std::thread::scope(|scope| {
        let readers = [
            scope.spawn(move || read_lossy(stdout)),
            scope.spawn(move || read_lossy(stderr)),
        ];
        let watchdog = scope.spawn(move || {
            let started = Instant::now();
            let late = finished.recv_timeout(DEADLINE).is_err() && started.elapsed() >= DEADLINE;
            if late {
                rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
            }
            late
        });
        let status = child.wait()?;
        drop(done);
        let late = watchdog.join().unwrap_or_default();
        // What it left behind holds the pipes and has no further business.
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        let said = readers
            .map(|reader| reader.join().unwrap_or_default())
            .concat();
        Ok(Ended {
            status: (!late).then_some(status),
            said,
        })
    })
}

fn read_lossy(pipe: Option<impl io::Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What came before a failure is still worth telling.
        pipe.take(64 << 10).read_to_end(&mut bytes).ok();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
