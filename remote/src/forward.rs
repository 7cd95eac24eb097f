//! TCP ports of the VM on the laptop.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use boxery_wire::Whose;
use tokio::net::TcpListener;

use crate::carry::carry;
use crate::jobs::connect_port;
use crate::{RemoteError, Way};

/// How many ports above a taken one are tried before any free one is taken.
const NEAR: u16 = 100;
/// What an ordinary user can't listen below, mostly; 80 becomes 8080, 443 becomes 8443.
const PRIVILEGED: u16 = 1024;
const ABOVE: u16 = 8000;

/// A port of the laptop's loopback behind which is one of the VM's.
#[derive(Debug)]
pub struct Forward {
    listener: TcpListener,
    port: u16,
    /// Only to what these runs listen on.
    whose: Option<Whose>,
}

impl Forward {
    /// Listen on 127.0.0.1 under `local` for `port` of the VM's loopback.
    pub async fn listen(local: u16, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, local)).await?;
        let whose = None;
        Ok(Self {
            listener,
            port,
            whose,
        })
    }

    /// The same under `local` or the next number that can be had, and with `whose`
    /// only to what these runs listen on.
    pub async fn listen_near(local: u16, port: u16, whose: Option<Whose>) -> io::Result<Self> {
        let mut tried = Err(io::ErrorKind::AddrInUse.into());
        for local in candidates(local) {
            let at = SocketAddr::from((Ipv4Addr::LOCALHOST, local));
            tried = TcpListener::bind(at).await;
            let taken = |error: &io::Error| {
                matches!(
                    error.kind(),
                    io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
                )
            };
            if !tried.as_ref().is_err_and(taken) {
                break;
            }
        }
        let listener = tried?;
        Ok(Self {
            listener,
            port,
            whose,
        })
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
            match connect_port(way, self.port, self.whose.clone()).await {
                Ok((stream, first)) => {
                    let (from, to) = socket.into_split();
                    let first = first.into_rest().freeze();
                    open.spawn(async move { carry(&stream, from, to, first).await });
                }
                Err(error) => say(&error),
            }
        }
    }
}

/// The numbers that are tried for a port, the best one first; 0 is any that is free.
fn candidates(port: u16) -> impl Iterator<Item = u16> {
    let base = if port < PRIVILEGED {
        ABOVE + port
    } else {
        port
    };
    let first = (base != port).then_some(port);
    let near = base..=base.saturating_add(NEAR);
    first.into_iter().chain(near).chain([0])
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::usual(3000, &[3000, 3001, 3002])]
    #[case::privileged(80, &[80, 8080, 8081])]
    #[case::last(65535, &[65535, 0])]
    fn the_same_number_comes_first_and_then_the_next(#[case] port: u16, #[case] want: &[u16]) {
        let found: Vec<u16> = candidates(port).take(want.len()).collect();
        assert_eq!(found, want);
    }

    #[tokio::test]
    async fn a_taken_port_gives_another_one_on_the_loopback_only() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = taken.local_addr().unwrap().port();
        let forward = Forward::listen_near(port, 1, None).await.unwrap();
        let got = forward.listener.local_addr().unwrap();
        assert!(got.ip().is_loopback() && got.port() != port, "{got}");
        let error = Forward::listen(port, 1).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
