//! How lines are chained: pure text and digests.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::ser::{CompactFormatter, Formatter};
use sha2::{Digest as _, Sha256};

use crate::event::Entry;

/// What stands in the first line's `prev`.
pub(crate) const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// SHA-256 as lower-case hexadecimal digits, as `sha256sum` prints it.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        for digit in [byte >> 4, byte & 15] {
            hex.push(char::from_digit(u32::from(digit), 16).unwrap_or('?'));
        }
    }
    hex
}

/// What the chain needs of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) seq: u64,
    pub(crate) prev: String,
    pub(crate) hash: String,
}

impl Link {
    /// The link of a whole line, without its line end; `None` when its own hash
    /// doesn't fit.
    fn of(line: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Fields {
            seq: u64,
            prev: String,
        }
        let (body, hash) = split_hash(line)?;
        if sha256_hex(&body) != hash {
            return None;
        }
        let Fields { seq, prev } = serde_json::from_slice(&body).ok()?;
        Some(Self { seq, prev, hash })
    }

    /// The link of a line with its line end, or of a last line that lacks it.
    pub(crate) fn of_line(line: &[u8]) -> Option<Self> {
        Self::of(line.strip_suffix(b"\n").unwrap_or(line))
    }

    /// Whether this is the line that follows `before`.
    pub(crate) fn follows(&self, before: &Tail) -> bool {
        before.seq.checked_add(1) == Some(self.seq) && self.prev == before.hash
    }

    pub(crate) fn tail(&self) -> Tail {
        Tail {
            seq: self.seq,
            hash: self.hash.clone(),
        }
    }
}

/// The end of the chain so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) seq: u64,
    pub(crate) hash: String,
}

impl Tail {
    /// Before the first line.
    pub(crate) fn genesis() -> Self {
        Self {
            seq: 0,
            hash: GENESIS.to_owned(),
        }
    }
}

/// `entry` as a line with its own hash and line end, and the chain's new tail.
pub(crate) fn render(entry: &Entry) -> io::Result<(String, Tail)> {
    let mut body = Vec::with_capacity(512);
    let mut serializer = serde_json::Serializer::with_formatter(&mut body, AsJq(CompactFormatter));
    entry.serialize(&mut serializer)?;
    let hash = sha256_hex(&body);
    let mut line = String::from_utf8(body).map_err(io::Error::other)?;
    line.pop();
    line.push_str(",\"hash\":\"");
    line.push_str(&hash);
    line.push_str("\"}\n");
    let tail = Tail {
        seq: entry.seq,
        hash,
    };
    Ok((line, tail))
}

/// The line without its hash, and the hash.
fn split_hash(line: &[u8]) -> Option<(Vec<u8>, String)> {
    const KEY: &[u8] = b",\"hash\":\"";
    let rest = line.strip_suffix(b"\"}")?;
    let at = rest.len().checked_sub(64)?;
    let (start, hash) = rest.split_at(at);
    let mut body = start.strip_suffix(KEY)?.to_vec();
    body.push(b'}');
    let hash = std::str::from_utf8(hash).ok()?;
    let lower = |b: u8| b.is_ascii_digit() || matches!(b, b'a'..=b'f');
    hash.bytes().all(lower).then(|| (body, hash.to_owned()))
}

/// Writes text as `jq -c` 1.7 does, so that it reproduces a line's bytes: DEL is
/// the one character that it escapes and `serde_json` doesn't.
struct AsJq(CompactFormatter);

impl Formatter for AsJq {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for (number, part) in fragment.split('\x7f').enumerate() {
            if number > 0 {
                writer.write_all(b"\\u007f")?;
            }
            self.0.write_string_fragment(writer, part)?;
        }
        Ok(())
    }
}
