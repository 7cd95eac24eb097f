//! A guardian: for one client what a daemon is for all, where there is no daemon.
//!
//! To the VM a client that was killed and a link that broke look the same when the
//! connection is the client's own: it just ends. So another process has it, in a
//! session of its own, out of reach of what ends the client. It holds one end of a
//! socket pair, and gets through it an end of another pair for each stream that the
//! client wants; on those it speaks as the daemon does. When the client dies its ends
//! close: the guardian resets its streams, so that the VM hears of it, and ends too.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream as Socket;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::FdFlags;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::time::timeout;

use super::client::{NoDaemon, ask_for_stream};
use super::serve::Daemon;
use crate::Route;
use crate::embedded::start_of;

/// How long the streams of a client that is gone may take to end.
const PARTING: Duration = Duration::from_secs(10);

/// Guard the client at the other end of standard input until it is gone.
pub async fn guard(version: &str) -> io::Result<()> {
    // Whatever is sent to the client's group or comes from its terminal is the client's.
    rustix::process::setsid().ok();
    let client = Socket::from(io::stdin().as_fd().try_clone_to_owned()?);
    client.set_nonblocking(true)?;
    let client = UnixStream::from_std(client)?;
    let daemon = Daemon::new(version, |_| ())?;
    // Nobody has to be let in before a client of another build is told.
    daemon.unlocked.send_replace(true);
    while let Some(stream) = next(&client).await? {
        tokio::spawn(Arc::clone(&daemon).client(stream));
    }
    // What can't be told in this time can't be told.
    drop(timeout(PARTING, daemon.emptied()).await);
    daemon.pool.part().await;
    Ok(())
}

/// The next stream that the client wants; `None` once it is gone.
async fn next(client: &UnixStream) -> io::Result<Option<UnixStream>> {
    loop {
        client.readable().await?;
        match client.try_io(Interest::READABLE, || receive(client)) {
            Ok(Some(socket)) => {
                socket.set_nonblocking(true)?;
                return UnixStream::from_std(socket).map(Some);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(None) | Err(_) => return Ok(None),
        }
    }
}

fn receive(client: &UnixStream) -> io::Result<Option<Socket>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut passed = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    recvmsg(client, &mut bytes, &mut passed, RecvFlags::empty())?;
    let mut sockets = passed.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
        _ => None,
    });
    let Some(socket) = sockets.next() else {
        return Ok(None);
    };
    rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    Ok(Some(Socket::from(socket)))
}

/// The client's side. Dropping it tells the guardian that the client is done.
pub(crate) struct Guardian {
    control: Socket,
}

impl Guardian {
    /// Start one; `starter` is its program and the arguments.
    fn start(starter: &[String]) -> io::Result<Self> {
        let (program, words) = starter.split_first().ok_or(io::ErrorKind::NotFound)?;
        let (control, its) = Socket::pair()?;
        // Its end is reaped by the runtime.
        Command::new(program)
            .args(words)
            .stdin(OwnedFd::from(its))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            .spawn()?;
        Ok(Self { control })
    }

    /// A stream to the helper of the VM at the end of `route`, from the guardian in
    /// `kept`; one that is missing or was killed is started.
    pub(crate) async fn connect(
        kept: &mut Option<Self>,
        starter: &[String],
        route: &Route,
    ) -> Result<UnixStream, NoDaemon> {
        if let Some(guardian) = kept {
            match guardian.stream(route).await {
                Err(NoDaemon::Absent(_)) => {}
                done => return done,
            }
        }
        kept.insert(Self::start(starter)?).stream(route).await
    }

    async fn stream(&self, route: &Route) -> Result<UnixStream, NoDaemon> {
        let (stream, its) = UnixStream::pair()?;
        self.pass(&its)?;
        drop(its);
        ask_for_stream(stream, route).await
    }

    fn pass(&self, stream: &UnixStream) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut passed = SendAncillaryBuffer::new(&mut space);
        let sockets = [stream.as_fd()];
        if !passed.push(SendAncillaryMessage::ScmRights(&sockets)) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let byte = [IoSlice::new(b"s")];
        sendmsg(&self.control, &byte, &mut passed, SendFlags::empty())?;
        Ok(())
    }
}

/// Whether whoever is at the other end of this stream, daemon or guardian, sees it when
/// this process is killed. A sandbox that an agent made for this one call ends by a kill
/// of everybody in it at one stroke.
pub(crate) fn outlives_us(stream: &UnixStream) -> bool {
    let inside = stream
        .peer_cred()
        .is_ok_and(|peer| peer.pid().is_none_or(|pid| pid != 0));
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let is_first = namespace.as_os_str() == FIRST_NAMESPACE;
    let starts = (start_of(1), start_of(std::process::id()));
    !(inside && !is_first && are_of_one_call(starts))
}

/// The processes' namespace that a machine starts with (`PROC_PID_INIT_INO`).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";
/// A namespace whose first process started so long before this one was not made for it,
/// in ticks of 10 ms.
const OLDER: u64 = 500;

fn are_of_one_call(starts: (Option<u64>, Option<u64>)) -> bool {
    matches!(starts, (Some(first), Some(own)) if own.saturating_sub(first) < OLDER)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::a_sandbox_for_this_call(Some(1000), Some(1010), true)]
    #[case::it_is_the_first_itself(Some(1000), Some(1000), true)]
    #[case::a_container_that_was_there(Some(1000), Some(9000), false)]
    #[case::a_system_that_does_not_say(None, None, false)]
    fn a_namespace_as_young_as_its_process_is_for_one_call(
        #[case] first: Option<u64>,
        #[case] own: Option<u64>,
        #[case] want: bool,
    ) {
        assert_eq!(are_of_one_call((first, own)), want);
    }
}
