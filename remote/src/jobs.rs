//! Runs that outlive their call: jobs of the VM.

use boxery_wire::{Blob, Decoder, FromRun, Reply, Request, Run, RunId, StateId, Stdin, Whose};
use tokio::io::AsyncWriteExt as _;

use crate::link::Stream;
use crate::run::{Output, RunRequest, begin, check, lost, refused, sent};
use crate::{RemoteError, Way};

pub use boxery_wire::{End, Job, JobState, Loss, Machine, Outcome, Port, RunId as JobId, Why};

/// What the helper knows of its VM.
pub async fn machine(way: &Way) -> Result<Machine, RemoteError> {
    match ask(way, &Request::Hello).await? {
        Reply::Hello(machine) => Ok(*machine),
        other => Err(unfit(&other)),
    }
}

/// The jobs that the VM knows.
pub async fn list(way: &Way) -> Result<Vec<Job>, RemoteError> {
    match ask(way, &Request::Jobs).await? {
        Reply::Jobs(jobs) => Ok(jobs),
        other => Err(unfit(&other)),
    }
}

/// Whether the script of this digest was run on the VM to a good end.
pub async fn is_set_up(way: &Way, script: StateId) -> Result<bool, RemoteError> {
    match ask(way, &Request::IsSetUp { script }).await? {
        Reply::SetUp(done) => Ok(done),
        other => Err(unfit(&other)),
    }
}

/// The TCP ports on which runs and jobs listen.
pub async fn ports(way: &Way) -> Result<Vec<Port>, RemoteError> {
    match ask(way, &Request::Ports).await? {
        Reply::Ports(ports) => Ok(ports),
        other => Err(unfit(&other)),
    }
}

/// A name for a run that is to be started.
pub fn new_id() -> Result<JobId, RemoteError> {
    Ok(RunId(crate::random::bytes()?))
}

/// Take the helper off the VM, unless runs go on: how many do.
pub async fn leave(way: &Way) -> Result<u32, RemoteError> {
    match ask(way, &Request::Leave).await? {
        Reply::Left(running) => Ok(running),
        other => Err(unfit(&other)),
    }
}

/// Start a job. It is executed at most once: when the connection breaks before the
/// VM has answered, the same request is sent again.
pub async fn start(way: &Way, request: &RunRequest) -> Result<JobId, RemoteError> {
    check(request)?;
    let run = Run {
        stdin: Stdin::Null,
        job: true,
        ..sent(request, false, true)?
    };
    let id = run.run;
    let wish = Request::Run(Box::new(run));
    let reply = match ask(way, &wish).await {
        Err(RemoteError::Lost) => ask(way, &wish).await?,
        reply => reply?,
    };
    match reply {
        Reply::Started => Ok(id),
        Reply::Failed(failure) => Err(refused(failure, false, request)),
        other => Err(unfit(&other)),
    }
}

/// Pass on what a job printed, and with `follow` what it will print. How it ended,
/// if it has, and how many bytes in the middle were not kept.
pub async fn tail(
    way: &Way,
    job: JobId,
    follow: bool,
    mut stdout: Output,
    mut stderr: Output,
) -> Result<(Option<Outcome>, u64), RemoteError> {
    let stream = way.stream().await?;
    let (reply, mut decoder): (Reply, Decoder) =
        begin(&stream, &Request::Tail { run: job, follow }).await?;
    match reply {
        Reply::Started => {}
        other => return Err(unfit(&other)),
    }
    let mut skipped = 0;
    loop {
        while let Some(message) = decoder.message().map_err(|error| RemoteError::Helper {
            detail: error.to_string(),
        })? {
            let written = match message {
                FromRun::Stdout(Blob(bytes)) => stdout.write_all(&bytes).await,
                FromRun::Stderr(Blob(bytes)) => stderr.write_all(&bytes).await,
                FromRun::Skipped(bytes) => {
                    skipped += bytes;
                    Ok(())
                }
                FromRun::StdinTaken(_) | FromRun::FolderGone(_) | FromRun::Released => Ok(()),
                FromRun::End(end) => {
                    drop((stdout.flush().await, stderr.flush().await));
                    return Ok((Some(end.outcome), skipped));
                }
            };
            if written.is_err() {
                // Nobody reads on.
                return Ok((None, skipped));
            }
        }
        drop((stdout.flush().await, stderr.flush().await));
        match stream.recv().await {
            Some(bytes) => decoder.push(&bytes),
            None if follow => return Err(RemoteError::Lost),
            None => return Ok((None, skipped)),
        }
    }
}

/// Wait until a job has ended, however often the connection breaks meanwhile. An end
/// that nobody knows is an error that says why.
pub async fn wait(way: &Way, job: JobId) -> Result<End, RemoteError> {
    let end = ended(way, &Request::Wait { run: job }).await?;
    match end.outcome {
        Outcome::Lost(loss) => Err(lost(loss)),
        Outcome::Exited(_) | Outcome::Signalled(_) | Outcome::Cancelled(_) => Ok(end),
    }
}

/// End a job and all of its processes.
pub async fn stop(way: &Way, job: JobId) -> Result<End, RemoteError> {
    ended(way, &Request::Stop { run: job }).await
}

async fn ended(way: &Way, request: &Request) -> Result<End, RemoteError> {
    loop {
        match ask(way, request).await {
            Ok(Reply::Ended(end)) => return Ok(end),
            Ok(other) => return Err(unfit(&other)),
            // Asked again: neither question changes anything the second time.
            Err(RemoteError::Lost) => {
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// A stream that is connected to `port` of the VM's loopback, or with `whose` to the
/// socket on which one of these runs listens.
pub(crate) async fn connect_port(
    way: &Way,
    port: u16,
    whose: Option<Whose>,
) -> Result<(Stream, Decoder), RemoteError> {
    let stream = way.stream().await?;
    let (reply, decoder) = begin(&stream, &Request::Forward { port, whose }).await?;
    match reply {
        Reply::Started => Ok((stream, decoder)),
        other => Err(unfit(&other)),
    }
}

async fn ask(way: &Way, request: &Request) -> Result<Reply, RemoteError> {
    let stream = way.stream().await?;
    let (reply, _) = begin(&stream, request).await?;
    stream.finish().await;
    Ok(reply)
}

/// An answer that says no, or that belongs to another question.
pub(crate) fn unfit(reply: &Reply) -> RemoteError {
    match reply {
        Reply::Failed(failure) => refused(failure.clone(), false, &RunRequest::default()),
        _ => RemoteError::Helper {
            detail: "it gave an answer to another question".to_owned(),
        },
    }
}

/// The name of a job as a person writes it: all of its digits, or the first few
/// where they are enough.
pub fn resolve(text: &str, jobs: &[Job]) -> Option<JobId> {
    if let Ok(id) = text.parse::<RunId>() {
        return Some(id);
    }
    let mut found = jobs
        .iter()
        .filter(|job| text.len() >= 4 && job.run.to_string().starts_with(text));
    let first = found.next()?;
    found.next().is_none().then_some(first.run)
}
