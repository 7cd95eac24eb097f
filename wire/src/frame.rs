//! One frame: a kind, a length of three bytes, a stream's number, a payload.

use crate::WireError;

/// Bytes before each payload.
pub(crate) const HEADER: usize = 8;

/// The longest payload.
pub(crate) const MAX_DATA: usize = 64 * 1024;

/// What a frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The laptop begins a stream.
    Open,
    /// Bytes of a stream.
    Data,
    /// No more bytes follow from this end.
    Finish,
    /// This end reads and writes no more.
    Reset,
    /// The other end may send so many bytes more.
    Credit,
    /// Answer me.
    Ping,
    /// The answer.
    Pong,
}

/// What stands before a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) length: usize,
    pub(crate) stream: u32,
}

impl Header {
    /// Read a header and hold it to its kind.
    pub(crate) fn parse(bytes: [u8; HEADER]) -> Result<Self, WireError> {
        let [kind, a, b, c, stream @ ..] = bytes;
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        let stream = u32::from_le_bytes(stream);
        let (kind, right) = match kind {
            0 => (Kind::Open, length == 0 && stream != 0),
            1 => (Kind::Data, (1..=MAX_DATA).contains(&length) && stream != 0),
            2 => (Kind::Finish, length == 0 && stream != 0),
            3 => (Kind::Reset, length == 0 && stream != 0),
            4 => (Kind::Credit, length == 4 && stream != 0),
            5 => (Kind::Ping, length == 8 && stream == 0),
            6 => (Kind::Pong, length == 8 && stream == 0),
            _ => return Err(WireError::Protocol("a frame of an unknown kind")),
        };
        if !right {
            return Err(WireError::Protocol("a frame that contradicts itself"));
        }
        Ok(Self {
            kind,
            length,
            stream,
        })
    }

    /// Append a frame.
    pub(crate) fn write(kind: Kind, stream: u32, payload: &[u8], to: &mut Vec<u8>) {
        let code = match kind {
            Kind::Open => 0,
            Kind::Data => 1,
            Kind::Finish => 2,
            Kind::Reset => 3,
            Kind::Credit => 4,
            Kind::Ping => 5,
            Kind::Pong => 6,
        };
        let length = u32::try_from(payload.len())
            .unwrap_or(u32::MAX)
            .to_le_bytes();
        to.extend([code, length[0], length[1], length[2]]);
        to.extend(stream.to_le_bytes());
        to.extend(payload);
    }
}
