//! Streams whose bytes go to a port of the VM, or to a process of ours.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use boxery_wire::{Failure, Reply, Stream, WireError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What is read at once.
const PIECE: usize = 64 * 1024;

/// The addresses of a port on the loopback.
pub(crate) fn loopback(port: u16) -> Vec<SocketAddr> {
    vec![
        (Ipv4Addr::LOCALHOST, port).into(),
        (Ipv6Addr::LOCALHOST, port).into(),
    ]
}

/// Connect to the first of `addresses` that answers and pass bytes on both ways.
pub(crate) async fn run(stream: &Stream, addresses: &[SocketAddr]) -> Result<(), WireError> {
    let connected = TcpStream::connect(addresses).await;
    let Ok(mut server) = connected else {
        stream
            .send_message(&Reply::Failed(Failure::Refused))
            .await?;
        stream.finish();
        return Ok(());
    };
    server.set_nodelay(true)?;
    stream.send_message(&Reply::Started).await?;
    let (from, to) = server.split();
    pass_on(stream, from, to).await
}

/// Pass bytes on both ways as they are, until both directions have ended.
pub(crate) async fn pass_on(
    stream: &Stream,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) -> Result<(), WireError> {
    let up = async {
        while let Some(bytes) = stream.recv().await? {
            // It takes no more, and what it said last is still to be passed on.
            if to.write_all(&bytes).await.is_err() {
                return Ok(());
            }
        }
        to.shutdown().await.ok();
        Ok::<(), WireError>(())
    };
    let down = async {
        let mut buffer = vec![0; PIECE];
        loop {
            let length = from.read(&mut buffer).await?;
            if length == 0 {
                stream.finish();
                return Ok(());
            }
            stream.send(buffer[..length].to_vec()).await?;
        }
    };
    let ((), ()) = tokio::try_join!(up, down)?;
    Ok(())
}
