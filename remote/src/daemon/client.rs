//! The client's side: find the daemon, start it, ask it.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::time::timeout;

use super::Site;
use super::greeting::{Answer, Build, Hello, PortsWish, Status, Telling, Wish, receive, send};
use crate::{Announced, RemoteError, Route, WantedPorts};

/// How long a daemon may take to come up.
const START: Duration = Duration::from_secs(5);
/// How often a client looks again, when the daemon ends or begins just then.
const TRIES: usize = 3;

/// Why there is no stream from the daemon.
#[derive(Debug)]
pub enum NoDaemon {
    /// It can't be started or reached, or is of another build; the caller connects
    /// by itself.
    Absent(String),
    /// A person has to be asked for something, which the daemon never does.
    Asks(RemoteError),
    /// It can't reach the VM either.
    Failed(RemoteError),
}

impl From<io::Error> for NoDaemon {
    fn from(error: io::Error) -> Self {
        Self::Absent(error.to_string())
    }
}

/// A stream to the helper of the VM at the end of `route`, from the daemon of
/// `site`, which `starter` (program and arguments) starts where none is up.
pub async fn connect(
    site: &Site,
    starter: &[String],
    route: &Route,
) -> Result<UnixStream, NoDaemon> {
    for _ in 0..TRIES {
        let stream = match dial(site).await {
            Ok(stream) => stream,
            Err(error) if is_absent(&error) => {
                start(site, starter).await?;
                dial(site).await?
            }
            Err(error) => return Err(error.into()),
        };
        match greet(stream, route).await? {
            Greeted::Stream(stream) => return Ok(stream),
            // It has let go of its lock and its socket, or ended just then: the next one
            // is ours.
            Greeted::Gone => {}
        }
    }
    Err(NoDaemon::Absent("the daemon went away".into()))
}

/// The same of whoever is at the other end of `stream`.
pub(super) async fn ask_for_stream(
    stream: UnixStream,
    route: &Route,
) -> Result<UnixStream, NoDaemon> {
    match greet(stream, route).await? {
        Greeted::Stream(stream) => Ok(stream),
        Greeted::Gone => Err(NoDaemon::Absent("the guardian went away".into())),
    }
}

/// What came of a request for a stream.
enum Greeted {
    /// From here on this is one.
    Stream(UnixStream),
    /// Nobody answers any more.
    Gone,
}

async fn greet(mut stream: UnixStream, route: &Route) -> Result<Greeted, NoDaemon> {
    let build = Build::own().ok_or_else(|| NoDaemon::Absent("this build has no file".into()))?;
    let hello = Hello {
        build,
        wish: Wish::Stream(Box::new(route.clone())),
    };
    if send(&mut stream, &hello).await.is_err() {
        return Ok(Greeted::Gone);
    }
    match receive::<Answer>(&mut stream).await {
        Ok(Answer::Stream) => Ok(Greeted::Stream(stream)),
        Ok(Answer::Failed(told)) if told.asks() => Err(NoDaemon::Asks(told.into())),
        Ok(Answer::Failed(told)) => Err(NoDaemon::Failed(told.into())),
        Ok(Answer::Older) | Err(_) => Ok(Greeted::Gone),
        Ok(Answer::Newer) => Err(NoDaemon::Absent("the daemon is of a newer build".into())),
        Ok(Answer::Status(_) | Answer::Stopping | Answer::Ports(_)) => {
            Err(NoDaemon::Absent("the daemon misunderstood".into()))
        }
    }
}

/// Tell `say` what is offered of `wanted` here, once or for as long as the runs and
/// the daemon live. Nothing where there is no daemon of this build.
pub(crate) async fn ports(
    site: &Site,
    route: &Route,
    wanted: &WantedPorts,
    telling: Telling,
    mut say: impl FnMut(Vec<Announced>),
) {
    let Ok(mut daemon) = ask_for_ports(site, route, wanted, telling).await else {
        return;
    };
    while let Ok(Answer::Ports(now)) = receive(&mut daemon).await {
        say(now);
    }
}

async fn ask_for_ports(
    site: &Site,
    route: &Route,
    wanted: &WantedPorts,
    telling: Telling,
) -> io::Result<UnixStream> {
    let mut stream = dial(site).await?;
    let build = Build::own().ok_or(io::ErrorKind::NotFound)?;
    let wish = Wish::Ports(Box::new(PortsWish {
        route: route.clone(),
        wanted: wanted.clone(),
        telling,
    }));
    send(&mut stream, &Hello { build, wish }).await?;
    Ok(stream)
}

/// What the daemon does; `None` when there is none.
pub async fn status(site: &Site) -> io::Result<Option<Status>> {
    match ask(site, Wish::Status).await? {
        Some(Answer::Status(status)) => Ok(Some(status)),
        Some(_) => Err(io::ErrorKind::InvalidData.into()),
        None => Ok(None),
    }
}

/// End the daemon; false when there is none. The connections that it keeps end
/// with it; runs on them go on and are found again by their clients.
pub async fn stop(site: &Site) -> io::Result<bool> {
    let Some(answer) = ask(site, Wish::Stop).await? else {
        return Ok(false);
    };
    Ok(matches!(answer, Answer::Stopping))
}

async fn ask(site: &Site, wish: Wish) -> io::Result<Option<Answer>> {
    let mut stream = match dial(site).await {
        Ok(stream) => stream,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let build = Build::own().ok_or(io::ErrorKind::NotFound)?;
    send(&mut stream, &Hello { build, wish }).await?;
    let answer = receive(&mut stream).await?;
    if matches!(answer, Answer::Stopping) {
        // It is gone when the socket closes.
        drop(tokio::io::AsyncReadExt::read_u8(&mut stream).await);
    }
    Ok(Some(answer))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

/// Connect, and make sure that it is the same user's.
async fn dial(site: &Site) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(site.socket()).await?;
    if stream.peer_cred()?.uid() != rustix::process::getuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the daemon's socket is another user's",
        ));
    }
    Ok(stream)
}

/// Start a daemon and wait until it serves, or says that another one does.
async fn start(site: &Site, starter: &[String]) -> io::Result<()> {
    site.make()?;
    let (program, words) = starter.split_first().ok_or(io::ErrorKind::NotFound)?;
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(site.log())?;
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .current_dir("/")
        .spawn()?;
    let Some(stdout) = child.stdout.take() else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let mut line = String::new();
    let mut reader = BufReader::new(stdout);
    match timeout(START, reader.read_line(&mut line)).await {
        Ok(Ok(1..)) => Ok(()),
        Ok(_) => Err(io::Error::other("the daemon ended at once")),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}
