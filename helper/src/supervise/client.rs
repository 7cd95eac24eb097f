//! Whoever is connected to a supervisor.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use boxery_wire::{Decoder, Request, ToRun, encode};
use serde::Serialize;

use super::journal::{Found, Journal};

/// What is read or written at once.
const PIECE: usize = 256 * 1024;

/// What a client is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It hasn't said.
    New,
    /// The client of the run: gets the journal from a position.
    Owner(u64),
    /// Gets the log from a position.
    Tail { position: u64, follow: bool },
    /// Waits for the end of the command.
    Wait,
    /// Waits for the end of every process.
    Stop,
    /// Gets what it is still owed.
    Leaving,
}

/// What a client said.
#[derive(Debug)]
pub(super) enum Said {
    First(Request),
    Then(ToRun),
}

/// One connection.
#[derive(Debug)]
pub(super) struct Client {
    stream: UnixStream,
    decoder: Decoder,
    pub(super) role: Role,
    unsent: Vec<u8>,
    sent: usize,
    /// It takes nothing any more. What it said before it went is still to be read: that
    /// it won't come back, for one.
    deaf: bool,
    pub(super) gone: bool,
}

impl Client {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            decoder: Decoder::default(),
            role: Role::New,
            unsent: Vec::new(),
            sent: 0,
            deaf: false,
            gone: false,
        })
    }

    /// Read what has come. The last thing may be that it is [gone](Self::gone).
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Vec<Said> {
        match self.stream.read(buffer) {
            Ok(0) => self.gone = true,
            Ok(length) => self.decoder.push(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.gone = true,
        }
        self.said()
    }

    /// The messages that are there.
    pub(super) fn said(&mut self) -> Vec<Said> {
        let mut said = Vec::new();
        loop {
            let first = self.role == Role::New && said.is_empty();
            let next = if first {
                self.decoder
                    .message()
                    .map(|message| message.map(Said::First))
            } else {
                self.decoder
                    .message()
                    .map(|message| message.map(Said::Then))
            };
            match next {
                Ok(Some(message)) => said.push(message),
                Ok(None) => return said,
                Err(_) => {
                    self.gone = true;
                    return said;
                }
            }
        }
    }

    /// Send a message of its own once there is room.
    pub(super) fn reply(&mut self, message: &impl Serialize) {
        match encode(message) {
            Ok(bytes) => self.unsent.extend(bytes),
            Err(_) => self.gone = true,
        }
    }

    /// Whether there is something to send to it.
    pub(super) fn wants(&self, journal: &Journal, log: &Journal) -> bool {
        if self.deaf {
            return false;
        }
        if self.sent < self.unsent.len() {
            return true;
        }
        match self.role {
            Role::Owner(position) => position < journal.end(),
            Role::Tail { position, .. } => position < log.end(),
            Role::New | Role::Wait | Role::Stop | Role::Leaving => false,
        }
    }

    /// Send what it takes.
    pub(super) fn write(&mut self, journal: &mut Journal, log: &mut Journal) {
        while !self.gone && self.wants(journal, log) {
            if self.sent == self.unsent.len() {
                self.sent = 0;
                if self.fill(journal, log).is_err() {
                    self.gone = true;
                    return;
                }
            }
            match self.stream.write(&self.unsent[self.sent..]) {
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.deaf = true,
            }
        }
        if self.deaf || self.sent == self.unsent.len() {
            self.unsent.clear();
            self.sent = 0;
        }
    }

    /// Whether it has all that was meant for it.
    pub(super) fn is_served(&self) -> bool {
        self.role == Role::Leaving && self.sent == self.unsent.len()
    }

    fn fill(&mut self, journal: &mut Journal, log: &mut Journal) -> io::Result<()> {
        match &mut self.role {
            Role::Owner(position) => match journal.read(*position, &mut self.unsent, PIECE)? {
                Found::Bytes(length) => *position += length as u64,
                Found::Gap(_) | Found::End => return Err(io::ErrorKind::UnexpectedEof.into()),
            },
            Role::Tail { position, .. } => match log.read_message(*position, &mut self.unsent)? {
                Found::Bytes(length) => *position += length as u64,
                Found::Gap(next) => {
                    let gap = boxery_wire::FromRun::Skipped(next - *position);
                    *position = next;
                    self.unsent = encode(&gap).map_err(io::Error::other)?;
                }
                Found::End => self.unsent.clear(),
            },
            Role::New | Role::Wait | Role::Stop | Role::Leaving => self.unsent.clear(),
        }
        Ok(())
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
