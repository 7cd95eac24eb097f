//! The caller's input on its way to a run, kept until the VM has it.

use std::collections::VecDeque;

use boxery_wire::{Blob, STDIN_WINDOW, ToRun};
use bytes::{Bytes, BytesMut};
use tokio::io::AsyncReadExt as _;
use tokio::sync::{mpsc, watch};

use super::Input;
use crate::link::Stream;

const CHUNK: usize = 64 * 1024;

/// What was read and is not yet known to have come is at most one window.
pub(super) struct Feed {
    input: Option<Input>,
    /// The command's stdin is a stream of ours.
    piped: bool,
    /// Bytes that the VM may not have yet, and where the first of them stands.
    kept: VecDeque<Bytes>,
    kept_from: u64,
    /// How far it was read.
    read: u64,
    /// How far it was sent on this stream.
    sent: u64,
    end_sent: bool,
    taken: u64,
}

impl Feed {
    pub(super) fn new(input: Option<Input>) -> Self {
        Self {
            piped: input.is_some(),
            input,
            kept: VecDeque::new(),
            kept_from: 0,
            read: 0,
            sent: 0,
            end_sent: false,
            taken: 0,
        }
    }

    /// How much the command has taken, as far as is known.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Another stream goes on from where the VM stands.
    pub(super) fn resume(&mut self, come: u64, ended: bool) {
        self.forget(come);
        self.sent = come.max(self.kept_from);
        self.end_sent = ended;
    }

    /// The VM has all up to here.
    fn forget(&mut self, come: u64) {
        while let Some(first) = self.kept.front() {
            let end = self.kept_from + first.len() as u64;
            if end > come {
                break;
            }
            self.kept.pop_front();
            self.kept_from = end;
        }
    }

    /// Send orders and input until the stream breaks. `taken` says how much of the
    /// input the command has taken.
    pub(super) async fn run(
        &mut self,
        stream: &Stream,
        mut orders: mpsc::UnboundedReceiver<ToRun>,
        mut taken: watch::Receiver<u64>,
    ) {
        loop {
            self.taken = self.taken.max(*taken.borrow_and_update());
            self.forget(self.taken);
            let message = if let Ok(order) = orders.try_recv() {
                order
            } else if let Some(bytes) = self.next_piece() {
                self.sent += bytes.len() as u64;
                ToRun::Stdin(Blob(bytes.to_vec()))
            } else if self.piped && self.input.is_none() && self.sent == self.read && !self.end_sent
            {
                self.end_sent = true;
                ToRun::StdinEnd
            } else {
                let room = self.read < self.taken + STDIN_WINDOW;
                let mut buffer = BytesMut::with_capacity(CHUNK);
                let read = async {
                    match self.input.as_mut() {
                        Some(input) if room => input.read_buf(&mut buffer).await,
                        Some(_) | None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    order = orders.recv() => match order {
                        Some(order) => order,
                        None => return,
                    },
                    changed = taken.changed() => {
                        if changed.is_err() { return; }
                        continue;
                    }
                    read = read => {
                        match read {
                            Ok(0) | Err(_) => self.input = None,
                            Ok(length) => {
                                self.read += length as u64;
                                self.kept.push_back(buffer.freeze());
                            }
                        }
                        continue;
                    }
                }
            };
            if stream.send(&message).await.is_err() {
                return;
            }
        }
    }

    /// The next bytes to send, where the window allows.
    fn next_piece(&self) -> Option<Bytes> {
        let limit = self.taken + STDIN_WINDOW;
        if self.sent >= self.read || self.sent >= limit {
            return None;
        }
        let mut start = self.kept_from;
        for piece in &self.kept {
            let end = start + piece.len() as u64;
            if self.sent < end {
                let from = usize::try_from(self.sent - start).unwrap_or_default();
                let room = usize::try_from(limit - self.sent).unwrap_or(usize::MAX);
                let bytes = piece.slice(from..);
                return Some(bytes.slice(..bytes.len().min(room)));
            }
            start = end;
        }
        None
    }
}
