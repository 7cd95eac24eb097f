//! The conversation of one copy, over the socket that is our stdin.

use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use boxery_wire::{Blob, Decoder, Item, Reply, Request, Taken, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{put, send, sync};

/// What is read at once.
const PIECE: usize = 128 * 1024;

/// Both directions.
#[derive(Debug)]
pub(super) struct Talk {
    stream: UnixStream,
    decoder: Decoder,
    buffer: Vec<u8>,
}

impl Talk {
    /// Wait for the next message; the end of the conversation is an error.
    pub(super) fn next<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        loop {
            if let Some(message) = self.decoder.message().map_err(io::Error::other)? {
                return Ok(message);
            }
            let length = self.stream.read(&mut self.buffer)?;
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.decoder.push(&self.buffer[..length]);
        }
    }

    /// Say something.
    pub(super) fn say<T: Serialize>(&mut self, message: &T) -> io::Result<()> {
        let bytes = encode(message).map_err(io::Error::other)?;
        self.stream.write_all(&bytes)
    }
}

/// What could not be done to a path.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) path: Vec<u8>,
    pub(super) error: io::Error,
}

/// Serve one copy.
pub(crate) fn run() -> io::Result<()> {
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let mut talk = Talk {
        stream: UnixStream::from(control),
        decoder: Decoder::default(),
        buffer: vec![0; PIECE],
    };
    let home = crate::environment()
        .into_iter()
        .find_map(|(name, value)| (name == b"HOME").then_some(value));
    let home = PathBuf::from(OsStr::from_bytes(&home.unwrap_or_else(|| b"/".to_vec())));
    let request: Request = talk.next()?;
    talk.say(&Reply::Started)?;
    match request {
        Request::Get { path } => {
            send::everything(&mut talk, &home.join(OsStr::from_bytes(&path)))?;
            talk.say(&Item::End)?;
            // The taker may have trouble of its own, and tells its user itself.
            talk.next::<Taken>().map(drop)
        }
        Request::Put { path, name } => {
            let mut target = home.join(OsStr::from_bytes(&path));
            if target.is_dir() {
                target.push(OsStr::from_bytes(&name));
            }
            let taken = match put::everything(&mut talk, &target) {
                Ok(()) => Taken::Done,
                Err(trouble) => Taken::Failed {
                    path: Blob(trouble.path),
                    why: trouble.error.to_string(),
                },
            };
            talk.say(&taken)
        }
        Request::Sync { copy } => sync::serve(talk, &home.join(OsStr::from_bytes(&copy))),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}
