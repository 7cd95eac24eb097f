//! The conversation of one copy, over a socket.

use std::io::{self, Read as _, Write as _};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Decoder, encode};

/// What is read at once.
const PIECE: usize = 128 * 1024;

/// Both directions.
#[derive(Debug)]
pub struct Talk {
    stream: UnixStream,
    decoder: Decoder,
    buffer: Vec<u8>,
}

impl Talk {
    /// A conversation over `stream`, of which `before` has been read.
    pub fn new(stream: UnixStream, before: &[u8]) -> Self {
        let mut decoder = Decoder::default();
        decoder.push(before);
        Self {
            stream,
            decoder,
            buffer: vec![0; PIECE],
        }
    }

    /// Wait for the next message; the end of the conversation is an error.
    pub fn hear<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        loop {
            if let Some(message) = self.decoder.message().map_err(io::Error::other)? {
                return Ok(message);
            }
            self.read()?;
        }
    }

    /// The next message, if it has come.
    pub fn heard<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        loop {
            if let Some(message) = self.decoder.message().map_err(io::Error::other)? {
                return Ok(Some(message));
            }
            let mut asked = [PollFd::new(&self.stream, PollFlags::IN)];
            if poll(&mut asked, Some(&Timespec::default()))? == 0 {
                return Ok(None);
            }
            self.read()?;
        }
    }

    /// Wait until the other end has said something more, or `other` is readable: whether
    /// it has. The end of the conversation counts as something.
    pub fn wait(&self, other: Option<BorrowedFd<'_>>) -> io::Result<bool> {
        if !self.decoder.is_empty() {
            return Ok(true);
        }
        let mut asked = vec![PollFd::new(&self.stream, PollFlags::IN)];
        asked.extend(other.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN)));
        loop {
            match poll(&mut asked, None) {
                Ok(_) => return Ok(!asked[0].revents().is_empty()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Say something.
    pub fn say<T: Serialize>(&mut self, message: &T) -> io::Result<()> {
        let bytes = encode(message).map_err(io::Error::other)?;
        self.stream.write_all(&bytes)
    }

    /// Read on, whatever comes, until the other end has nothing more to say: so that
    /// it hears our last word.
    pub fn let_go(&mut self) {
        while self.read().is_ok() {
            self.decoder = Decoder::default();
        }
    }

    fn read(&mut self) -> io::Result<()> {
        let length = self.stream.read(&mut self.buffer)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.decoder.push(&self.buffer[..length]);
        Ok(())
    }
}
