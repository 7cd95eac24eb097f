//! Carries bytes between a socket of this laptop and a stream to the helper.

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::link::Stream;

const CHUNK: usize = 128 * 1024;

/// Both directions, each closed by itself, until both are. `first` has come already.
pub(crate) async fn carry(
    stream: &Stream,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    first: Bytes,
) {
    let up = async {
        loop {
            let mut bytes = BytesMut::with_capacity(CHUNK);
            match from.read_buf(&mut bytes).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => break,
            }
            if stream.send_bytes(bytes.freeze()).await.is_err() {
                return;
            }
        }
        stream.finish().await;
    };
    let down = async {
        if to.write_all(&first).await.is_err() {
            return;
        }
        while let Some(bytes) = stream.recv().await {
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
        drop(to.shutdown().await);
    };
    tokio::join!(up, down);
}
