//! Messages as bytes: a length of four bytes, little end first, then postcard.

use bytes::{Buf as _, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::WireError;

/// The longest message: a command of 1 MiB, its environment, and room.
pub const MAX_MESSAGE: usize = 4 * 1024 * 1024;

const LENGTH: usize = 4;

/// The bytes of `message`.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    let bytes = postcard::to_extend(message, vec![0; LENGTH])
        .map_err(|_| WireError::Unusable("the message can't be coded"))?;
    let length = bytes.len() - LENGTH;
    if length > MAX_MESSAGE {
        return Err(WireError::Unusable("the message is too long"));
    }
    let mut bytes = bytes;
    let prefix = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    bytes[..LENGTH].copy_from_slice(&prefix);
    Ok(bytes)
}

/// Takes messages out of bytes that come in any pieces.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: BytesMut,
    position: u64,
}

impl Decoder {
    /// Take bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole message, if it has come.
    pub fn message<T: DeserializeOwned>(&mut self) -> Result<Option<T>, WireError> {
        let Some((prefix, rest)) = self.buffer.split_first_chunk::<LENGTH>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*prefix) as usize;
        if length == 0 || length > MAX_MESSAGE {
            return Err(WireError::Protocol("a message of an impossible length"));
        }
        let Some(bytes) = rest.get(..length) else {
            return Ok(None);
        };
        let (message, rest) = postcard::take_from_bytes(bytes)
            .map_err(|_| WireError::Protocol("a message that can't be read"))?;
        if !rest.is_empty() {
            return Err(WireError::Protocol("bytes behind a message"));
        }
        self.buffer.advance(LENGTH + length);
        self.position += (LENGTH + length) as u64;
        Ok(Some(message))
    }

    /// How many bytes the messages had that [`Decoder::message`] gave so far. On a
    /// run's stream this, and the offset it was attached at, is what to
    /// acknowledge and where to attach again.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// What came behind the last message.
    pub fn into_rest(self) -> BytesMut {
        self.buffer
    }

    /// Whether nothing is left of a message that didn't come whole.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
}
