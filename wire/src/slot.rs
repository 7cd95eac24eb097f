//! One stream as the connection sees it: what came, what goes, what is owed.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use crate::frame::{Header, Kind, MAX_DATA};
use crate::mux::{OUTBOX, WINDOW};

/// Small pieces are put together up to this, so that many of them cost no more
/// memory than one.
const COALESCE: usize = 16 * 1024;

#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) bell: Arc<Bell>,
    pub(crate) queued: bool,
    pub(crate) announce: bool,
    pub(crate) inbox: VecDeque<BytesMut>,
    /// What the other end may still send.
    pub(crate) window: u32,
    /// What was taken and not yet given back as credit.
    pub(crate) taken: u32,
    pub(crate) owed: bool,
    pub(crate) outbox: VecDeque<Bytes>,
    pub(crate) unsent: usize,
    /// What this end may still send.
    pub(crate) credit: u32,
    pub(crate) finish: Half,
    pub(crate) remote_finished: bool,
    pub(crate) remote_reset: bool,
    /// The `Stream` is gone.
    pub(crate) abandoned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    Open,
    Finishing,
    Finished,
}

#[derive(Debug, Default)]
pub(crate) struct Bell {
    pub(crate) readable: Notify,
    pub(crate) writable: Notify,
}

impl Slot {
    pub(crate) fn new(announce: bool) -> Self {
        Self {
            bell: Arc::default(),
            queued: false,
            announce,
            inbox: VecDeque::new(),
            window: WINDOW,
            taken: 0,
            owed: false,
            outbox: VecDeque::new(),
            unsent: 0,
            credit: WINDOW,
            finish: Half::Open,
            remote_finished: false,
            remote_reset: false,
            abandoned: false,
        }
    }

    pub(crate) fn store(&mut self, bytes: BytesMut) {
        if let Some(last) = self.inbox.back_mut()
            && last.len() + bytes.len() <= COALESCE
        {
            last.extend_from_slice(&bytes);
        } else {
            self.inbox.push_back(bytes);
        }
    }
}

impl Slot {
    /// Write what this stream has for one turn; true when it is over.
    pub(crate) fn write_next(&mut self, id: u32, batch: &mut Vec<u8>) -> bool {
        if self.abandoned && self.remote_reset {
            return true;
        }
        if self.announce {
            self.announce = false;
            Header::write(Kind::Open, id, &[], batch);
        }
        if self.abandoned && self.finish == Half::Open {
            Header::write(Kind::Reset, id, &[], batch);
            return true;
        }
        if self.owed {
            self.owed = false;
            self.window += self.taken;
            Header::write(Kind::Credit, id, &self.taken.to_le_bytes(), batch);
            self.taken = 0;
        }
        if self.credit > 0
            && let Some(front) = self.outbox.front_mut()
        {
            let length = front.len().min(MAX_DATA).min(self.credit as usize);
            let piece = front.split_to(length);
            if front.is_empty() {
                self.outbox.pop_front();
            }
            self.unsent -= length;
            self.credit -= u32::try_from(length).unwrap_or(self.credit);
            Header::write(Kind::Data, id, &piece, batch);
            if self.unsent < OUTBOX {
                self.bell.writable.notify_one();
            }
        }
        if self.outbox.is_empty() && self.finish == Half::Finishing {
            self.finish = Half::Finished;
            Header::write(Kind::Finish, id, &[], batch);
        }
        if self.abandoned && self.finish == Half::Finished {
            if !self.remote_finished {
                Header::write(Kind::Reset, id, &[], batch);
            }
            return true;
        }
        false
    }

    pub(crate) fn has_more(&self) -> bool {
        self.owed
            || (!self.outbox.is_empty() && self.credit > 0)
            || (self.outbox.is_empty() && self.finish == Half::Finishing)
    }
}
