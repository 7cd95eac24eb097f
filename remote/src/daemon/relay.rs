//! Carries bytes between a client's socket and its stream to the helper.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use bytes::BytesMut;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::link::Stream;

const CHUNK: usize = 128 * 1024;
/// How often it is looked whether a client is gone that sent more than is taken.
const LOOK: Duration = Duration::from_millis(500);

/// Carry bytes both ways until the helper ends its side or the client is gone. A client
/// that is gone is noticed also while nobody takes what it sent.
pub(super) async fn relay(client: UnixStream, stream: Stream) {
    let Ok(watched) = client.as_fd().try_clone_to_owned() else {
        return;
    };
    let (mut from_client, mut to_client) = client.into_split();
    let up = async {
        loop {
            let mut bytes = BytesMut::with_capacity(CHUNK);
            match from_client.read_buf(&mut bytes).await {
                Ok(1..) => {}
                // It sends no more, and may still read.
                Ok(0) if !is_gone(&watched) => break,
                Ok(0) | Err(_) => return,
            }
            if stream.send_bytes(bytes.freeze()).await.is_err() {
                // What the helper said last is still to be passed on.
                return std::future::pending().await;
            }
        }
        stream.finish().await;
        std::future::pending::<()>().await;
    };
    let down = async {
        while let Some(bytes) = stream.recv().await {
            if to_client.write_all(&bytes).await.is_err() {
                return;
            }
        }
        drop(to_client.shutdown().await);
    };
    tokio::select! {
        () = up => {}
        () = down => {}
        () = gone(&watched) => {}
    }
    // Dropped without a word when the client just went away: the helper learns that.
}

/// Resolves when the other end of this socket is closed for good.
async fn gone(client: &OwnedFd) {
    let mut look = tokio::time::interval(LOOK);
    loop {
        look.tick().await;
        if is_gone(client) {
            return;
        }
    }
}

/// Whether the other end is closed for good, whatever lies unread.
fn is_gone(client: &OwnedFd) -> bool {
    let mut asked = [PollFd::new(client, PollFlags::empty())];
    let at_once = Timespec::default();
    poll(&mut asked, Some(&at_once)).is_ok() && asked[0].revents().contains(PollFlags::HUP)
}
