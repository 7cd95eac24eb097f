//! How the two ends find each other in a pipe that may hold noise.

use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
};

use crate::WireError;
use crate::mux::Side;

/// What either end says first. No text that a start-up file prints holds it.
pub const MAGIC: &[u8; 16] = b"\0boxery helper\x1e\n";

/// The hash of the sources of `wire` and `helper`: both ends are always one build.
pub const BUILD: [u8; 32] = include!(concat!(env!("OUT_DIR"), "/build_hash.rs"));

/// The most that start-up files may print before the helper speaks.
const NOISE: usize = 64 * 1024 * 1024;
const SHOWN: usize = 200;

/// Greet the other end. The laptop skips what stands before the greeting; the
/// VM takes nothing but a greeting. The frames of a
/// [`Connection`](crate::Connection) follow in the same `reader`.
pub async fn greet<R, W>(side: Side, reader: &mut R, writer: &mut W) -> Result<(), WireError>
where
    R: AsyncBufRead + Unpin,
    W: AsyncWrite + Unpin,
{
    writer
        .write_all(&[MAGIC.as_slice(), &BUILD].concat())
        .await?;
    writer.flush().await?;
    match side {
        Side::Laptop => skip_noise(reader).await?,
        Side::Vm => {
            let mut magic = [0; MAGIC.len()];
            reader.read_exact(&mut magic).await?;
            if &magic != MAGIC {
                return Err(WireError::NoGreeting {
                    noise: magic.to_vec(),
                });
            }
        }
    }
    let mut build = BUILD;
    reader.read_exact(&mut build).await?;
    if build != BUILD {
        return Err(WireError::OtherBuild);
    }
    Ok(())
}

/// Read up to the end of the magic.
async fn skip_noise<R: AsyncBufRead + Unpin>(reader: &mut R) -> Result<(), WireError> {
    let mut shown: Vec<u8> = Vec::new();
    let mut skipped = 0;
    let mut matched = 0;
    loop {
        let bytes = reader.fill_buf().await?;
        if bytes.is_empty() || skipped > NOISE {
            return Err(WireError::NoGreeting { noise: shown });
        }
        let mut used = 0;
        for &byte in bytes {
            used += 1;
            // The first byte of the magic is in it only once, so what didn't
            // match can only begin anew at this byte.
            matched = if byte == MAGIC[matched] {
                matched + 1
            } else {
                usize::from(byte == MAGIC[0])
            };
            if matched == MAGIC.len() {
                break;
            }
        }
        let room = SHOWN.saturating_sub(shown.len());
        shown.extend(bytes.iter().take(room.min(used)));
        reader.consume(used);
        skipped += used;
        if matched == MAGIC.len() {
            return Ok(());
        }
    }
}
