//! The SSH server inside.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use camino::Utf8Path;
use russh::keys::PublicKey;
use russh::server::{Auth, ChannelOpenHandle, Config, Handler, Msg, Session, VerifiedPublicKey};
use russh::{Channel, ChannelId, MethodKind, MethodSet};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::channel::{self, Shell};
use super::state::{EmbeddedVm, failed};
use crate::RemoteError;

/// The server ends this long after its last connection.
const IDLE: Duration = Duration::from_mins(10);

/// Serve the VM in `folder`, whose `/` is `root` (`/` itself inside namespaces).
/// Prints `port N` on standard output once clients can connect; ends 10 minutes
/// after its last use, or when standard input ends.
pub async fn serve(folder: &Utf8Path, root: &Utf8Path) -> Result<(), RemoteError> {
    let vm = EmbeddedVm::new(folder.to_owned());
    let client = vm.key("client_key")?.public_key().clone();
    let config = Arc::new(Config {
        methods: MethodSet::from(&[MethodKind::PublicKey][..]),
        auth_rejection_time: Duration::from_millis(200),
        auth_rejection_time_initial: Some(Duration::ZERO),
        keys: vec![vm.key("host_key")?],
        nodelay: true,
        keepalive_interval: Some(Duration::from_secs(15)),
        ..Config::default()
    });
    let home = root.join("root");
    std::fs::create_dir_all(&home).map_err(|e| failed(&home, e))?;
    let shell = Arc::new(Shell { home });
    let listener = TcpListener::bind(("127.0.0.1", 0))
        .await
        .map_err(|e| failed(folder, e))?;
    let port = listener.local_addr().map_err(|e| failed(folder, e))?.port();
    announce(port).map_err(|e| failed(folder, e))?;

    let clients = Arc::new(Clients::default());
    let mut orphaned = std::pin::pin!(until_stdin_ends());
    loop {
        let idle_since = Instant::now();
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = clients.idle(idle_since, IDLE) => return Ok(()),
            () = &mut orphaned => return Ok(()),
        };
        let Ok((stream, _)) = accepted else { continue };
        drop(stream.set_nodelay(true));
        let connection = Connection {
            client: client.clone(),
            shell: Arc::clone(&shell),
            open: Vec::new(),
            _guest: Guest::new(&clients),
        };
        let config = Arc::clone(&config);
        tokio::spawn(async move {
            if let Ok(session) = russh::server::run_stream(config, stream, connection).await {
                drop(session.await);
            }
        });
    }
}

fn announce(port: u16) -> std::io::Result<()> {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "port {port}")?;
    stdout.flush()
}

/// The keeper holds the other end.
async fn until_stdin_ends() {
    let mut stdin = tokio::io::stdin();
    let mut sink = tokio::io::sink();
    drop(tokio::io::copy(&mut stdin, &mut sink).await);
}

/// How many connections there are.
#[derive(Debug, Default)]
struct Clients {
    count: AtomicUsize,
    left: Notify,
}

impl Clients {
    /// Resolves once nobody has been connected for `long`, counted from `since` and
    /// from when the last one left.
    async fn idle(&self, since: Instant, long: Duration) {
        let mut deadline = since + long;
        loop {
            let left = self.left.notified();
            tokio::time::sleep_until(deadline).await;
            if self.count.load(Ordering::SeqCst) == 0 {
                return;
            }
            left.await;
            deadline = Instant::now() + long;
        }
    }
}

/// One connection, counted as long as it lives.
struct Guest(Arc<Clients>);

impl Guest {
    fn new(clients: &Arc<Clients>) -> Self {
        clients.count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(clients))
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::SeqCst);
        self.0.left.notify_waiters();
    }
}

struct Connection {
    client: PublicKey,
    shell: Arc<Shell>,
    open: Vec<Channel<Msg>>,
    _guest: Guest,
}

impl Handler for Connection {
    type Error = russh::Error;

    async fn auth_publickey(
        &mut self,
        _user: &str,
        key: VerifiedPublicKey<'_>,
    ) -> Result<Auth, Self::Error> {
        if key.public_key.key_data() == self.client.key_data() {
            Ok(Auth::Accept)
        } else {
            Ok(Auth::reject())
        }
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        self.open.push(channel);
        reply.accept().await;
        Ok(())
    }

    async fn exec_request(
        &mut self,
        id: ChannelId,
        command: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        let Some(at) = self.open.iter().position(|channel| channel.id() == id) else {
            return session.channel_failure(id);
        };
        let channel = self.open.swap_remove(at);
        session.channel_success(id)?;
        tokio::spawn(channel::serve(
            channel,
            Arc::clone(&self.shell),
            command.to_vec(),
        ));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_idle_only_while_nobody_is_connected_and_for_long_enough() {
        let clients = Arc::new(Clients::default());
        let long = Duration::from_millis(20);
        clients.idle(Instant::now(), long).await;

        let guest = Guest::new(&clients);
        let mut idle = std::pin::pin!(clients.idle(Instant::now() - long, long));
        assert!(
            tokio::time::timeout(3 * long, &mut idle).await.is_err(),
            "idle beside a guest"
        );
        drop(guest);
        let left = Instant::now();
        idle.await;
        assert!(left.elapsed() >= long);
    }
}
