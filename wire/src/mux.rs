//! Many streams over one pipe.
//!
//! Only the laptop opens streams. Each direction of each stream has a credit of
//! [`WINDOW`] bytes, renewed as the reader takes them, so that a stream nobody
//! reads stops its own sender and no other. What is ready to be sent goes out
//! one frame of each stream in turn.
//!
//! Invariant: an end holds at most [`WINDOW`] received bytes and
//! [`OUTBOX`] (and one message) unsent ones for each of at most
//! [`MAX_STREAMS`] streams.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Notify, oneshot};

use crate::frame::{HEADER, Header, Kind, MAX_DATA};
use crate::slot::{Bell, Half, Slot};
use crate::{WireError, encode};

/// What may be sent on a stream before its reader takes some of it.
pub const WINDOW: u32 = 8 * 1024 * 1024;

/// Beyond so many unsent bytes a stream's sender waits.
pub const OUTBOX: usize = 256 * 1024;

/// How many streams may be open at once.
pub const MAX_STREAMS: usize = 4096;

/// What is written at once.
const BATCH: usize = 128 * 1024;

/// Which end this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The end that opens streams.
    Laptop,
    /// The end that accepts them.
    Vm,
}

/// One end of a pipe. Clones are the same end.
#[derive(Debug, Clone)]
pub struct Connection {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    side: Side,
    state: Mutex<State>,
    /// There is something to write.
    write: Notify,
    /// There is a stream to accept.
    accept: Notify,
}

#[derive(Debug, Default)]
struct State {
    streams: HashMap<u32, Slot>,
    /// Streams with something to write, each once.
    ready: VecDeque<u32>,
    incoming: VecDeque<u32>,
    /// The last stream that was opened.
    last: u32,
    next_ping: u64,
    ping: Option<u64>,
    pong: Option<u64>,
    pings: BTreeMap<u64, oneshot::Sender<()>>,
    closing: bool,
    end: Option<WireError>,
}

impl State {
    fn enqueue(&mut self, id: u32) {
        if let Some(slot) = self.streams.get_mut(&id)
            && !slot.queued
        {
            slot.queued = true;
            self.ready.push_back(id);
        }
    }

    /// Write one round of what is ready; false when there was nothing.
    fn fill(&mut self, batch: &mut Vec<u8>) -> bool {
        if let Some(id) = self.pong.take() {
            Header::write(Kind::Pong, 0, &id.to_le_bytes(), batch);
        }
        if let Some(id) = self.ping.take() {
            Header::write(Kind::Ping, 0, &id.to_le_bytes(), batch);
        }
        while batch.len() < BATCH {
            let Some(id) = self.ready.pop_front() else {
                break;
            };
            let Some(slot) = self.streams.get_mut(&id) else {
                continue;
            };
            slot.queued = false;
            if slot.write_next(id, batch) {
                self.streams.remove(&id);
            } else if slot.has_more() {
                self.enqueue(id);
            }
        }
        !batch.is_empty()
    }

    fn finish(&mut self, end: WireError) {
        if self.end.is_none() {
            self.end = Some(end);
        }
        self.pings.clear();
        for slot in self.streams.values() {
            slot.bell.readable.notify_one();
            slot.bell.writable.notify_one();
        }
    }
}

impl Connection {
    /// One end over `reader` and `writer`, which have [greeted](crate::greet()).
    /// The future moves the bytes, and gives the reason when it is over.
    pub fn new<R, W>(side: Side, reader: R, writer: W) -> (Self, impl Future<Output = WireError>)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let shared = Arc::new(Shared {
            side,
            state: Mutex::default(),
            write: Notify::new(),
            accept: Notify::new(),
        });
        let connection = Self {
            shared: Arc::clone(&shared),
        };
        let drive = async move {
            let end = tokio::select! {
                end = read(&shared, reader) => end,
                end = write(&shared, writer) => end,
            };
            let end = end.err().unwrap_or(WireError::Closed);
            shared.lock().finish(end.clone());
            shared.accept.notify_one();
            end
        };
        (connection, drive)
    }

    /// Begin a stream.
    pub fn open(&self) -> Result<Stream, WireError> {
        let mut state = self.shared.lock();
        if let Some(end) = &state.end {
            return Err(end.clone());
        }
        if self.shared.side != Side::Laptop {
            return Err(WireError::Unusable("only the laptop opens streams"));
        }
        let Some(id) = state.last.checked_add(1) else {
            return Err(WireError::Unusable("this connection has had its streams"));
        };
        if state.streams.len() >= MAX_STREAMS {
            return Err(WireError::Unusable("too many streams are open"));
        }
        state.last = id;
        let slot = Slot::new(true);
        let bell = Arc::clone(&slot.bell);
        state.streams.insert(id, slot);
        state.enqueue(id);
        drop(state);
        self.shared.write.notify_one();
        Ok(Stream {
            shared: Arc::clone(&self.shared),
            id,
            bell,
        })
    }

    /// The next stream that the other end began.
    pub async fn accept(&self) -> Result<Stream, WireError> {
        loop {
            {
                let mut state = self.shared.lock();
                if let Some(id) = state.incoming.pop_front() {
                    if let Some(slot) = state.streams.get(&id) {
                        let bell = Arc::clone(&slot.bell);
                        return Ok(Stream {
                            shared: Arc::clone(&self.shared),
                            id,
                            bell,
                        });
                    }
                    continue;
                }
                if let Some(end) = &state.end {
                    return Err(end.clone());
                }
            }
            self.shared.accept.notified().await;
        }
    }

    /// Resolves when the other end has answered.
    pub async fn ping(&self) -> Result<(), WireError> {
        let answer = {
            let mut state = self.shared.lock();
            if let Some(end) = &state.end {
                return Err(end.clone());
            }
            let id = state.next_ping;
            state.next_ping += 1;
            state.ping = Some(id);
            let (sender, answer) = oneshot::channel();
            state.pings.insert(id, sender);
            answer
        };
        self.shared.write.notify_one();
        answer
            .await
            .map_err(|_| self.end().unwrap_or(WireError::Closed))
    }

    /// End the connection once what can be sent is sent.
    pub fn close(&self) {
        self.shared.lock().closing = true;
        self.shared.write.notify_one();
    }

    /// Why the connection is over, if it is.
    pub fn end(&self) -> Option<WireError> {
        self.shared.lock().end.clone()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One stream: a pipe of bytes in each direction. Dropped without
/// [`Stream::finish`], it is given up: the other end learns that nobody is there.
#[derive(Debug)]
pub struct Stream {
    shared: Arc<Shared>,
    id: u32,
    bell: Arc<Bell>,
}

impl Stream {
    /// Send bytes; waits while too many are unsent.
    pub async fn send(&self, bytes: impl Into<Bytes>) -> Result<(), WireError> {
        let bytes = bytes.into();
        loop {
            {
                let mut state = self.shared.lock();
                if let Some(end) = &state.end {
                    return Err(end.clone());
                }
                let Some(slot) = state.streams.get_mut(&self.id) else {
                    return Err(WireError::Reset);
                };
                if slot.remote_reset {
                    return Err(WireError::Reset);
                }
                if slot.finish != Half::Open {
                    return Err(WireError::Unusable("it was finished"));
                }
                if bytes.is_empty() {
                    return Ok(());
                }
                if slot.unsent < OUTBOX {
                    slot.unsent += bytes.len();
                    slot.outbox.push_back(bytes);
                    state.enqueue(self.id);
                    drop(state);
                    self.shared.write.notify_one();
                    return Ok(());
                }
            }
            self.bell.writable.notified().await;
        }
    }

    /// Send a message.
    pub async fn send_message<T: Serialize>(&self, message: &T) -> Result<(), WireError> {
        self.send(encode(message)?).await
    }

    /// The next bytes; `None` once the other end has finished.
    pub async fn recv(&self) -> Result<Option<Bytes>, WireError> {
        loop {
            {
                let mut state = self.shared.lock();
                let end = state.end.clone();
                let Some(slot) = state.streams.get_mut(&self.id) else {
                    return Err(WireError::Reset);
                };
                if let Some(bytes) = slot.inbox.pop_front() {
                    slot.taken += u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                    if slot.taken >= WINDOW / 4 && !slot.remote_finished && !slot.owed {
                        slot.owed = true;
                        state.enqueue(self.id);
                        drop(state);
                        self.shared.write.notify_one();
                    }
                    return Ok(Some(bytes.freeze()));
                }
                if slot.remote_finished {
                    return Ok(None);
                }
                if slot.remote_reset {
                    return Err(WireError::Reset);
                }
                if let Some(end) = end {
                    return Err(end);
                }
            }
            self.bell.readable.notified().await;
        }
    }

    /// Nothing more is sent from this end. What was sent still arrives, also
    /// when the stream is dropped then.
    pub fn finish(&self) {
        let mut state = self.shared.lock();
        if let Some(slot) = state.streams.get_mut(&self.id)
            && slot.finish == Half::Open
        {
            slot.finish = Half::Finishing;
            state.enqueue(self.id);
            drop(state);
            self.shared.write.notify_one();
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if let Some(slot) = state.streams.get_mut(&self.id) {
            slot.abandoned = true;
            slot.inbox.clear();
            if slot.finish == Half::Open {
                slot.outbox.clear();
                slot.unsent = 0;
            }
            state.enqueue(self.id);
            drop(state);
            self.shared.write.notify_one();
        }
    }
}

async fn write<W: AsyncWrite + Unpin>(shared: &Shared, mut writer: W) -> Result<(), WireError> {
    let mut batch = Vec::with_capacity(BATCH + MAX_DATA + 64);
    loop {
        batch.clear();
        let (some, closing) = {
            let mut state = shared.lock();
            (state.fill(&mut batch), state.closing)
        };
        if some {
            writer.write_all(&batch).await?;
            writer.flush().await?;
        } else if closing {
            return Ok(());
        } else {
            shared.write.notified().await;
        }
    }
}

async fn read<R: AsyncRead + Unpin>(shared: &Shared, mut reader: R) -> Result<(), WireError> {
    loop {
        let mut header = [0; HEADER];
        reader.read_exact(&mut header).await?;
        let header = Header::parse(header)?;
        let mut payload = BytesMut::zeroed(header.length);
        reader.read_exact(&mut payload).await?;
        shared.take(header, payload)?;
    }
}

impl Shared {
    /// Act on one frame.
    fn take(&self, header: Header, payload: BytesMut) -> Result<(), WireError> {
        let mut state = self.lock();
        let id = header.stream;
        match header.kind {
            Kind::Ping => {
                state.pong = Some(number(&payload)?);
                self.write.notify_one();
                return Ok(());
            }
            Kind::Pong => {
                let id = number(&payload)?;
                if id >= state.next_ping {
                    return Err(WireError::Protocol("an answer to no question"));
                }
                let later = state.pings.split_off(&(id + 1));
                for (_, asker) in std::mem::replace(&mut state.pings, later) {
                    let _: Result<(), ()> = asker.send(());
                }
                return Ok(());
            }
            Kind::Open => {
                if self.side != Side::Vm || id <= state.last {
                    return Err(WireError::Protocol("a stream that can't be opened"));
                }
                if state.streams.len() >= MAX_STREAMS {
                    return Err(WireError::Protocol("too many streams"));
                }
                state.last = id;
                state.streams.insert(id, Slot::new(false));
                state.incoming.push_back(id);
                self.accept.notify_one();
                return Ok(());
            }
            Kind::Data | Kind::Finish | Kind::Reset | Kind::Credit => {}
        }
        if id > state.last {
            return Err(WireError::Protocol("a frame of a stream that isn't open"));
        }
        // A stream that this end is done with: what was on its way still comes.
        let Some(slot) = state.streams.get_mut(&id) else {
            return Ok(());
        };
        match header.kind {
            Kind::Data => {
                let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
                if slot.remote_finished || slot.remote_reset {
                    return Err(WireError::Protocol("bytes behind the end of a stream"));
                }
                slot.window = slot
                    .window
                    .checked_sub(length)
                    .ok_or(WireError::Protocol("more bytes than were allowed"))?;
                if !slot.abandoned {
                    slot.store(payload);
                    slot.bell.readable.notify_one();
                }
            }
            Kind::Finish => {
                if slot.remote_finished || slot.remote_reset {
                    return Err(WireError::Protocol("a second end of a stream"));
                }
                slot.remote_finished = true;
                slot.bell.readable.notify_one();
            }
            Kind::Reset => {
                slot.remote_reset = true;
                slot.outbox.clear();
                slot.unsent = 0;
                if !slot.remote_finished {
                    slot.inbox.clear();
                }
                slot.bell.readable.notify_one();
                slot.bell.writable.notify_one();
                if slot.abandoned {
                    state.streams.remove(&id);
                }
            }
            Kind::Credit => {
                let more = payload
                    .first_chunk()
                    .map_or(0, |bytes| u32::from_le_bytes(*bytes));
                slot.credit = slot
                    .credit
                    .checked_add(more)
                    .filter(|credit| more > 0 && *credit <= WINDOW)
                    .ok_or(WireError::Protocol("a credit that can't be"))?;
                if !slot.outbox.is_empty() {
                    state.enqueue(id);
                    self.write.notify_one();
                }
            }
            Kind::Open | Kind::Ping | Kind::Pong => {}
        }
        Ok(())
    }
}

fn number(payload: &[u8]) -> Result<u64, WireError> {
    payload
        .first_chunk()
        .map(|bytes| u64::from_le_bytes(*bytes))
        .ok_or(WireError::Protocol("a number that is too short"))
}
