//! The line of a sync to the copy's side, which the VM's helper answers.

use std::io;

use boxery_sync::talk::{Answer, Ask, Line};
use boxery_wire::{Blob, Decoder, Reply, Request};
use tokio::runtime::Handle;

use crate::link::Stream;
use crate::run::begin;
use crate::{RemoteError, Way};

/// A line to the copy in one folder of the VM. It blocks, so it belongs on a thread of
/// its own, while the runtime that opened it goes on elsewhere.
pub struct SyncLine {
    stream: Stream,
    decoder: Decoder,
    runtime: Handle,
}

/// Open the line to `copy`, a folder of the VM, relative ones from the user's home.
pub async fn open(way: &Way, copy: &str) -> Result<SyncLine, RemoteError> {
    let stream = way.stream().await?;
    let copy = Blob::from(copy);
    let (reply, decoder) = begin(&stream, &Request::Sync { copy }).await?;
    match reply {
        Reply::Started => Ok(SyncLine {
            stream,
            decoder,
            runtime: Handle::current(),
        }),
        other => Err(crate::jobs::unfit(&other)),
    }
}

impl Line for SyncLine {
    fn send(&mut self, ask: &Ask) -> io::Result<()> {
        let sent = self.runtime.block_on(self.stream.send(ask));
        sent.map_err(io::Error::other)
    }

    fn receive(&mut self) -> io::Result<Answer> {
        loop {
            if let Some(answer) = self.decoder.message().map_err(io::Error::other)? {
                return Ok(answer);
            }
            let bytes = self.runtime.block_on(self.stream.recv());
            let bytes = bytes.ok_or(io::ErrorKind::UnexpectedEof)?;
            self.decoder.push(&bytes);
        }
    }
}
