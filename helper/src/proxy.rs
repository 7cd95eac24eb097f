//! Between a stream of the connection and the supervisor of its run.
//!
//! Down go the supervisor's bytes as they are. Up go whole messages only, so that
//! a client that went away in the middle of one can still be told of.

use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;

use boxery_wire::{Decoder, Stream, ToRun, WireError, encode};
use bytes::BytesMut;
use rustix::process::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use crate::process;

/// What is read at once.
const PIECE: usize = 128 * 1024;
/// How long a run may take to hear that its client is gone.
const TELLING: Duration = Duration::from_secs(5);

/// What a client may say, and what its going away means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    /// It owns the run: gone, the run ends.
    Owner,
    /// It looks on.
    Guest,
}

/// Pass on until either end is over. True when the supervisor, the process `pid`, said
/// anything. It is woken where it is told to end the run: it may have been stopped.
pub(crate) async fn run(
    stream: &Stream,
    decoder: &mut Decoder,
    supervisor: std::os::unix::net::UnixStream,
    client: Client,
    pid: Option<Pid>,
) -> Result<bool, WireError> {
    supervisor.set_nonblocking(true)?;
    let (from, to) = UnixStream::from_std(supervisor)?.into_split();
    let mut said = false;
    {
        let silent = Cell::new(false);
        let down = down(stream, from, &mut said);
        let mut up = pin!(up(stream, decoder, to, client, pid, &silent));
        tokio::select! {
            done = up.as_mut() => done?,
            done = down => match done {
                // What carries output may be the first to see that the client is gone;
                // the run is told all the same.
                Err(WireError::Reset) if !silent.get() => {
                    timeout(TELLING, up).await.unwrap_or(Err(WireError::Reset))?;
                }
                done => done?,
            },
        }
    }
    Ok(said)
}

async fn down(stream: &Stream, mut from: OwnedReadHalf, said: &mut bool) -> Result<(), WireError> {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(PIECE);
        // A supervisor that was killed is an end, too.
        let length = from.read_buf(&mut buffer).await.unwrap_or(0);
        if length == 0 {
            return Ok(());
        }
        *said = true;
        stream.send(buffer.split().freeze()).await?;
    }
}

/// `silent` says from when on the run hears no more, not even that its client is gone.
async fn up(
    stream: &Stream,
    decoder: &mut Decoder,
    mut to: OwnedWriteHalf,
    client: Client,
    pid: Option<Pid>,
    silent: &Cell<bool>,
) -> Result<(), WireError> {
    loop {
        while let Some(message) = decoder.message::<ToRun>()? {
            if client == Client::Guest {
                return Err(WireError::Protocol("a guest has nothing to say"));
            }
            if message == ToRun::Cancel {
                process::wake(pid);
            }
            if to.write_all(&encode(&message)?).await.is_err() {
                // What it said last is still to be passed on.
                silent.set(true);
                return std::future::pending().await;
            }
        }
        match stream.recv().await {
            Ok(Some(bytes)) => decoder.push(&bytes),
            // It says no more, and still listens.
            Ok(None) => {
                silent.set(true);
                return std::future::pending().await;
            }
            Err(error @ WireError::Reset) => {
                if client == Client::Owner {
                    process::wake(pid);
                    to.write_all(&encode(&ToRun::Abandon)?).await?;
                }
                return Err(error);
            }
            Err(error) => return Err(error),
        }
    }
}
