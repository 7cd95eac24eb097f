//! The laptop's end of a run: sends the request, passes the streams on, finds the
//! run again when the connection breaks, ends it when it must.

use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use boxery_wire::{
    Blob, Decoder, End, Failure, FromRun, Loss, Outcome, Reply, Request, Run, RunId, Size, Stdin,
    ToRun, View, Why,
};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::check::check;
use super::feed::Feed;
use super::sink::Sinks;
use super::{Cancel, RunEnd, RunExit, RunIo, RunNote, RunRequest};
use crate::link::Stream;
use crate::{RemoteError, Way};

/// How long a run may take to begin: a slow login shell is asked for its environment.
const BEGINNING: Duration = Duration::from_mins(2);
/// How long the end of the tree may take: TERM, 2 s, KILL.
const ENDING: Duration = Duration::from_secs(15);
/// For how long a request that nobody answered is sent again.
const ASKING: Duration = Duration::from_secs(30);
/// For how long a run lives on by the VM's clock when nobody comes back.
const GRACE: Duration = Duration::from_hours(8);
/// The same over a connection of our own: there a killed client and a broken connection
/// look the same from the VM, and a killed client must not leave its command behind.
const GRACE_ALONE: Duration = Duration::from_secs(30);
/// How much output the VM keeps for us before the command has to wait.
const JOURNAL: u64 = 1 << 30;
/// How long the VM may take to let go of a run that has ended.
const PARTING: Duration = Duration::from_secs(1);
/// The same where the connection broke at that moment and has to be opened again.
const RETURNING: Duration = Duration::from_secs(10);
/// Longest pause between two tries to connect.
const PAUSE: Duration = Duration::from_secs(5);
/// Unacknowledged output after which it is acknowledged.
const ACKNOWLEDGE: u64 = 256 * 1024;

/// Run a command and pass its streams on as they come. `cancel` resolves when the
/// caller wants it ended; dropping the future ends the whole tree on the VM too.
#[tracing::instrument(
    name = "run.drive",
    level = "debug",
    skip_all,
    fields(program = request.argv.first().map(|p| String::from_utf8_lossy(p).into_owned()))
)]
pub async fn run(
    way: &Way,
    request: &RunRequest,
    io: RunIo,
    cancel: impl Future<Output = Cancel> + Send,
) -> Result<RunEnd, RemoteError> {
    check(request)?;
    let wanted = sent(request, io.stdin.is_some(), way.is_watched().await)?;
    let (kill, killed) = watch::channel(false);
    let mut drive = Drive {
        id: wanted.run,
        feed: Feed::new(io.stdin),
        sinks: Sinks::new(io.stdout, io.stderr, request.listener.clone(), killed),
        offset: 0,
        kill,
        ending: None,
        deadline: far(),
        sizes: request.terminal.clone(),
    };
    let mut cancel = pin!(cancel);
    let mut asked = false;
    let mut started = false;
    let mut reconnected = 0;
    let mut broken_at = Instant::now();
    let mut pause = Duration::ZERO;
    let end = loop {
        let ask = if started {
            Request::Attach {
                run: drive.id,
                offset: drive.offset,
            }
        } else {
            Request::Run(Box::new(wanted.clone()))
        };
        let attempt = async {
            sleep(pause).await;
            let stream = way.stream().await?;
            asked = true;
            let (reply, rest) = timeout(BEGINNING, begin(&stream, &ask))
                .await
                .unwrap_or(Err(RemoteError::Lost))?;
            Ok::<_, RemoteError>((stream, reply, rest))
        };
        let attempted = tokio::select! {
            attempted = attempt => attempted,
            why = cancel.as_mut(), if drive.ending.is_none() => {
                if !asked {
                    return Ok(drive.ended(RunExit::Cancelled(why), Some(0), reconnected));
                }
                // It may have begun: whoever answers next is told.
                drive.end_it(RunExit::Cancelled(why));
                continue;
            }
            () = sleep_until(drive.deadline) => break None,
        };
        let (stream, reply, rest) = match attempted {
            Ok(attempted) => attempted,
            Err(error) => {
                let limit = match (asked, started) {
                    (false, _) => Duration::ZERO,
                    (true, false) => ASKING,
                    (true, true) => request.grace.unwrap_or(GRACE),
                };
                // Who wants it ended waits for the deadline of that.
                if drive.ending.is_none() && broken_at.elapsed() >= limit {
                    return Err(if started { RemoteError::Lost } else { error });
                }
                pause = (pause * 2).clamp(Duration::from_millis(100), PAUSE);
                continue;
            }
        };
        match reply {
            Reply::Started => {}
            Reply::Attached { stdin, stdin_ended } => drive.feed.resume(stdin, stdin_ended),
            Reply::Failed(failure) => return Err(refused(failure, started, request)),
            Reply::Hello(_)
            | Reply::Jobs(_)
            | Reply::Ended(_)
            | Reply::Ports(_)
            | Reply::SetUp(_)
            | Reply::Left(_)
            | Reply::Target(_)
            | Reply::Source(_) => {
                return Err(RemoteError::Helper {
                    detail: "it gave an answer to another question".to_owned(),
                });
            }
        }
        if started {
            reconnected += 1;
        }
        started = true;
        match drive.attached(&stream, rest, cancel.as_mut()).await? {
            Attached::Ended(end) => {
                if !matches!(
                    timeout(PARTING, part(&stream, drive.offset)).await,
                    Ok(true)
                ) {
                    drop(timeout(RETURNING, part_again(way, drive.id, drive.offset)).await);
                }
                break Some(end);
            }
            Attached::GivenUp => break None,
            Attached::Broken => {
                broken_at = Instant::now();
                pause = Duration::ZERO;
            }
        }
    };
    let Some(end) = end else {
        let exit = drive.ending.unwrap_or(RunExit::OutputClosed);
        return Ok(drive.ended(exit, None, reconnected));
    };
    let exit = match (drive.ending, end.outcome) {
        (Some(ending), _) => ending,
        (None, Outcome::Exited(code)) => RunExit::Code(code),
        (None, Outcome::Signalled(signal)) => RunExit::Code(signal.saturating_add(128)),
        (None, Outcome::Cancelled(Why::TimedOut)) => RunExit::TimedOut,
        (None, Outcome::Cancelled(Why::Asked)) => RunExit::Cancelled(Cancel::Terminate),
        (None, Outcome::Lost(loss)) => return Err(lost(loss)),
    };
    Ok(drive.ended(exit, Some(end.background), reconnected))
}

/// The request as it is sent.
pub(crate) fn sent(request: &RunRequest, piped: bool, watched: bool) -> Result<Run, RemoteError> {
    let blob = |bytes: &Vec<u8>| Blob(bytes.clone());
    let wanted = request.grace.unwrap_or(GRACE);
    let grace = if watched {
        wanted
    } else {
        wanted.min(GRACE_ALONE)
    };
    Ok(Run {
        run: match request.id {
            Some(id) => id,
            None => RunId(crate::random::bytes()?),
        },
        argv: request.argv.iter().map(blob).collect(),
        cwd: request.cwd.as_deref().map(Blob::from),
        view: request.view.as_ref().map(|(at, folder)| View {
            at: at.as_str().into(),
            folder: folder.as_str().into(),
        }),
        env: request
            .env
            .iter()
            .map(|(name, value)| (Blob::from(name.as_str()), blob(value)))
            .collect(),
        stdin: match (&request.terminal, piped) {
            (Some(sizes), _) => Stdin::Pty(*sizes.borrow()),
            (None, true) => Stdin::Pipe,
            (None, false) => Stdin::Null,
        },
        timeout: request
            .timeout
            .map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
        grace: grace.as_secs(),
        session: request.session.clone(),
        keep: request.keep,
        git: request.git.clone(),
        sets_up: request.sets_up,
        job: false,
        journal: JOURNAL,
    })
}

/// Send a stream's first message and wait for the answer. Returned with it: what
/// has come behind it.
pub(crate) async fn begin(
    stream: &Stream,
    request: &Request,
) -> Result<(Reply, Decoder), RemoteError> {
    stream.send(request).await?;
    let mut decoder = Decoder::default();
    loop {
        if let Some(reply) = decoder.message().map_err(|error| broke(&error))? {
            // Positions count from behind the answer.
            let mut rest = Decoder::default();
            rest.push(&decoder.into_rest());
            return Ok((reply, rest));
        }
        let bytes = stream.recv().await.ok_or(RemoteError::Lost)?;
        decoder.push(&bytes);
    }
}

/// Tell the VM that all of a run has come; true once it has let go of it. Who leaves
/// before looks like one who was killed.
async fn part(stream: &Stream, offset: u64) -> bool {
    if stream.send(&ToRun::Ack(offset)).await.is_err() {
        return false;
    }
    stream.finish().await;
    let mut decoder = Decoder::default();
    while let Some(bytes) = stream.recv().await {
        decoder.push(&bytes);
        if matches!(decoder.message(), Ok(Some(FromRun::Released))) {
            return true;
        }
    }
    false
}

/// The same over another connection: what nobody acknowledges is kept for hours.
async fn part_again(way: &Way, run: RunId, offset: u64) {
    let Ok(stream) = way.stream().await else {
        return;
    };
    // With any other answer it knew already, or can't be told.
    if let Ok((Reply::Attached { .. }, _)) = begin(&stream, &Request::Attach { run, offset }).await
    {
        part(&stream, offset).await;
    }
}

fn broke(error: &boxery_wire::WireError) -> RemoteError {
    RemoteError::Helper {
        detail: error.to_string(),
    }
}

fn far() -> Instant {
    Instant::now() + Duration::from_hours(30 * 365 * 24)
}

/// Why the VM doesn't do it.
pub(crate) fn refused(failure: Failure, started: bool, request: &RunRequest) -> RemoteError {
    let path = request.cwd.clone().unwrap_or_default();
    match failure {
        Failure::FolderGone => RemoteError::FolderGone { path },
        Failure::FolderDenied => RemoteError::FolderDenied { path },
        Failure::NoBash => RemoteError::NoBash,
        Failure::Lost(loss) if started => lost(loss),
        Failure::Lost(_) => RemoteError::Lost,
        Failure::NoState { detail } => RemoteError::NoState { detail },
        Failure::View { detail } => RemoteError::NoView { detail },
        Failure::Refused => RemoteError::VmRefused {
            what: "the connection".to_owned(),
            detail: "nothing listens there".to_owned(),
        },
        Failure::Misplaced(why) => RemoteError::Misplaced { path, why },
        Failure::System { what, errno } => RemoteError::VmRefused {
            what,
            detail: std::io::Error::from_raw_os_error(errno).to_string(),
        },
    }
}

pub(crate) fn lost(loss: Loss) -> RemoteError {
    match loss {
        Loss::GracePassed => RemoteError::GracePassed,
        Loss::Unknown | Loss::Acknowledged => RemoteError::Lost,
        Loss::Broken => RemoteError::NoStatus,
        Loss::Restarted => RemoteError::Restarted,
    }
}

/// How a time of being attached ended.
enum Attached {
    Ended(End),
    Broken,
    /// The VM doesn't answer to the wish that the run ends.
    GivenUp,
}

struct Drive {
    id: RunId,
    feed: Feed,
    sinks: Sinks,
    /// How many bytes of the run's messages were passed on.
    offset: u64,
    kill: watch::Sender<bool>,
    ending: Option<RunExit>,
    deadline: Instant,
    /// The size of its terminal.
    sizes: Option<watch::Receiver<Size>>,
}

impl Drive {
    fn end_it(&mut self, exit: RunExit) {
        self.ending = Some(exit);
        self.deadline = Instant::now() + ENDING;
        self.kill.send_replace(true);
    }

    fn ended(&self, exit: RunExit, left: Option<u32>, reconnected: u32) -> RunEnd {
        let (stdout_bytes, stderr_bytes) = self.sinks.bytes();
        RunEnd {
            exit,
            left,
            stdout_bytes,
            stderr_bytes,
            reconnected,
        }
    }

    /// Carry bytes until the run ends or the stream does.
    async fn attached(
        &mut self,
        stream: &Stream,
        rest: Decoder,
        mut cancel: Pin<&mut (impl Future<Output = Cancel> + Send)>,
    ) -> Result<Attached, RemoteError> {
        let (orders, ordered) = mpsc::unbounded_channel();
        if self.ending.is_some() {
            drop(orders.send(ToRun::Cancel));
        }
        let sizes = self.sizes.clone();
        if let Some(sizes) = &sizes {
            // It may have changed while nobody was attached.
            drop(orders.send(ToRun::Resize(*sizes.borrow())));
        }
        let (closed, mut is_closed) = watch::channel(false);
        let mut ending = self.ending;
        let mut deadline = self.deadline;
        let kill = self.kill.clone();
        let end_it = |exit, ending: &mut Option<RunExit>, deadline: &mut Instant| {
            *ending = Some(exit);
            *deadline = Instant::now() + ENDING;
            kill.send_replace(true);
            drop(orders.send(ToRun::Cancel));
        };
        let taken = watch::channel(self.feed.taken());
        let attached = {
            let mut reading = pin!(read(
                stream,
                rest,
                &mut self.offset,
                &mut self.sinks,
                &orders,
                &closed,
                &taken.0,
            ));
            let mut feeding = pin!(self.feed.run(stream, ordered, taken.1));
            let mut resizing = pin!(resize(sizes, &orders));
            let mut fed = false;
            loop {
                tokio::select! {
                    () = &mut resizing => {}
                    attached = &mut reading => break attached?,
                    // The stream is broken; what came before is still read.
                    () = &mut feeding, if !fed => fed = true,
                    why = cancel.as_mut(), if ending.is_none() => {
                        end_it(RunExit::Cancelled(why), &mut ending, &mut deadline);
                    }
                    Ok(_) = is_closed.wait_for(|closed| *closed), if ending.is_none() => {
                        end_it(RunExit::OutputClosed, &mut ending, &mut deadline);
                    }
                    () = sleep_until(deadline) => break Attached::GivenUp,
                }
            }
        };
        self.ending = ending;
        self.deadline = deadline;
        Ok(attached)
    }
}

/// Tell the run whenever its terminal has another size.
async fn resize(sizes: Option<watch::Receiver<Size>>, orders: &mpsc::UnboundedSender<ToRun>) {
    if let Some(mut sizes) = sizes {
        while sizes.changed().await.is_ok() {
            let size = *sizes.borrow_and_update();
            drop(orders.send(ToRun::Resize(size)));
        }
    }
    std::future::pending::<()>().await;
}

/// Pass on what comes, and say how much of it was.
async fn read(
    stream: &Stream,
    mut decoder: Decoder,
    offset: &mut u64,
    sinks: &mut Sinks,
    orders: &mpsc::UnboundedSender<ToRun>,
    closed: &watch::Sender<bool>,
    taken: &watch::Sender<u64>,
) -> Result<Attached, RemoteError> {
    let base = *offset;
    let mut acknowledged = base;
    loop {
        let mut ended = None;
        while let Some(message) = decoder.message().map_err(|error| broke(&error))? {
            match message {
                FromRun::Stdout(Blob(bytes)) => sinks.stdout(bytes).await,
                FromRun::Stderr(Blob(bytes)) => sinks.stderr(bytes).await,
                FromRun::StdinTaken(count) => drop(taken.send_replace(count)),
                FromRun::Skipped(_) | FromRun::Released => {}
                FromRun::FolderGone(folder) => {
                    let folder = String::from_utf8_lossy(&folder).into_owned();
                    sinks.note(RunNote::FolderGone(folder));
                }
                FromRun::End(end) => {
                    ended = Some(end);
                    break;
                }
            }
        }
        sinks.flush().await;
        if sinks.is_closed() {
            closed.send_replace(true);
        }
        *offset = base + decoder.position();
        if let Some(end) = ended {
            return Ok(Attached::Ended(end));
        }
        if *offset - acknowledged >= ACKNOWLEDGE {
            acknowledged = *offset;
            drop(orders.send(ToRun::Ack(acknowledged)));
        }
        match stream.recv().await {
            Some(bytes) => decoder.push(&bytes),
            None => return Ok(Attached::Broken),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::watched(None, true, GRACE)]
    #[case::watched_as_wanted(Some(Duration::from_mins(1)), true, Duration::from_mins(1))]
    #[case::alone(None, false, GRACE_ALONE)]
    #[case::alone_as_wanted(Some(Duration::from_secs(2)), false, Duration::from_secs(2))]
    fn only_a_client_whose_death_nobody_tells_has_a_short_grace(
        #[case] wanted: Option<Duration>,
        #[case] watched: bool,
        #[case] want: Duration,
    ) {
        let request = RunRequest {
            grace: wanted,
            ..RunRequest::default()
        };
        let sent = sent(&request, false, watched).unwrap();
        assert_eq!(sent.grace, want.as_secs());
    }
}
