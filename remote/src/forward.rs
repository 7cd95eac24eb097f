//! TCP ports of the VM on the laptop.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::jobs::connect_port;
use crate::{RemoteError, Way};

const CHUNK: usize = 64 * 1024;

/// A port of the laptop's loopback behind which is one of the VM's.
#[derive(Debug)]
pub struct Forward {
    listener: TcpListener,
    port: u16,
}

impl Forward {
    /// Listen on 127.0.0.1 under `local`, or when that is taken and `near` is set
    /// under one that is free, for `port` of the VM.
    pub async fn listen(local: u16, port: u16, near: bool) -> io::Result<Self> {
        let at = |local| SocketAddr::from((Ipv4Addr::LOCALHOST, local));
        let listener = match TcpListener::bind(at(local)).await {
            Err(error) if near && error.kind() == io::ErrorKind::AddrInUse => {
                TcpListener::bind(at(0)).await?
            }
            listener => listener?,
        };
        Ok(Self { listener, port })
    }

    /// The laptop's port.
    pub fn local(&self) -> io::Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// Serve until dropped. A connection that the VM refuses is closed, and why is
    /// told to `say`; the next one is tried anew, over a new connection to the VM
    /// when the old one broke.
    pub async fn serve(&self, way: &Way, say: impl Fn(&RemoteError)) -> io::Result<()> {
        let mut open = tokio::task::JoinSet::new();
        loop {
            let (socket, _) = tokio::select! {
                accepted = self.listener.accept() => accepted?,
                Some(_) = open.join_next() => continue,
            };
            drop(socket.set_nodelay(true));
            match connect_port(way, self.port).await {
                Ok((stream, first)) => {
                    open.spawn(carry(socket, stream, first.into_rest()));
                }
                Err(error) => say(&error),
            }
        }
    }
}

/// Both directions, each closed by itself.
async fn carry(socket: TcpStream, stream: crate::link::Stream, first: BytesMut) {
    let (mut from, mut to) = socket.into_split();
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
        if !first.is_empty() && to.write_all(&first).await.is_err() {
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
