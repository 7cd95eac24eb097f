//! The daemon itself.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use fs2::FileExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::Site;
use super::greeting::{
    Answer, Build, Hello, PortsWish, Status, Telling, Told, Wish, receive, send,
};
use super::offers::Offers;
use super::pool::Pool;
use super::relay::relay;
use crate::Route;

/// How long a client may take for its greeting.
const GREETING: Duration = Duration::from_secs(10);
/// How often it looks whether its socket is still there.
const LOOK: Duration = Duration::from_secs(2);

/// Serve until nobody has come for `idle`, a newer build takes over, or somebody
/// stops it. Prints `ready` on standard output once clients can connect, also when
/// another daemon serves them. Lines of its log go to `say`.
pub async fn serve(
    site: &Site,
    idle: Duration,
    version: &str,
    say: impl Fn(&str) + Send + Sync + 'static,
) -> io::Result<()> {
    // Away from the terminal of whoever happened to start it first.
    rustix::process::setsid().ok();
    site.make()?;
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(site.lock())?;
    if lock.try_lock_exclusive().is_err() {
        // One serves already, or is about to.
        return ready();
    }
    let path = site.socket();
    std::fs::remove_file(&path).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    let listener = UnixListener::bind(&path)?;
    let inode = std::fs::symlink_metadata(&path)?.ino();
    let daemon = Daemon::new(version, say)?;
    (daemon.say)(&format!("version {version} serves"));
    ready()?;

    let mut terminate = signal(SignalKind::terminate())?;
    let mut look = tokio::time::interval(LOOK);
    let mut idle_since = Instant::now();
    let still_ours = || std::fs::symlink_metadata(&path).is_ok_and(|found| found.ino() == inode);
    let why = loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                tokio::spawn(Arc::clone(&daemon).client(stream));
            }
            () = daemon.stopping.notified() => {
                break if daemon.retired.load(Ordering::SeqCst) { "a newer build takes over" } else { "stopped" };
            }
            () = daemon.left.notified() => idle_since = Instant::now(),
            () = sleep_until(idle_since + idle) => {
                if daemon.clients.load(Ordering::SeqCst) == 0 && daemon.offers.is_idle() { break "idle" }
                idle_since = Instant::now();
            }
            _ = terminate.recv() => break "terminated",
            _ = look.tick() => if !still_ours() { break "its socket is gone" },
        }
    };
    (daemon.say)(why);
    drop(listener);
    if still_ours() {
        drop(std::fs::remove_file(&path));
    }
    daemon.offers.close();
    // The next one may serve from here on, while old streams are drained.
    drop(lock);
    daemon.unlocked.send_replace(true);
    if daemon.retired.load(Ordering::SeqCst) {
        daemon.emptied().await;
    }
    daemon.pool.close();
    Ok(())
}

/// Tell the starter, and let its pipe go.
fn ready() -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(b"ready\n")?;
    stdout.flush()?;
    let null = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(())
}

/// Whoever has the connections: a daemon, or a guardian.
pub(super) struct Daemon {
    build: Build,
    version: String,
    since: Instant,
    pub(super) pool: Arc<Pool>,
    offers: Offers,
    clients: AtomicUsize,
    left: Notify,
    /// Whether a newer build takes over.
    retired: AtomicBool,
    /// Whether another daemon may serve.
    pub(super) unlocked: watch::Sender<bool>,
    stopping: Notify,
    say: Box<dyn Fn(&str) + Send + Sync>,
}

/// One client, counted as long as it lives.
struct Guest(Arc<Daemon>);

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::SeqCst);
        self.0.left.notify_waiters();
        self.0.left.notify_one();
    }
}

impl Daemon {
    pub(super) fn new(
        version: &str,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            build: Build::own().ok_or(io::ErrorKind::NotFound)?,
            version: version.to_owned(),
            since: Instant::now(),
            pool: Arc::default(),
            offers: Offers::default(),
            clients: AtomicUsize::new(0),
            left: Notify::new(),
            retired: AtomicBool::new(false),
            unlocked: watch::Sender::new(false),
            stopping: Notify::new(),
            say: Box::new(say),
        }))
    }

    /// Resolves when no client has a stream.
    pub(super) async fn emptied(&self) {
        while self.clients.load(Ordering::SeqCst) > 0 {
            self.left.notified().await;
        }
    }

    pub(super) async fn client(self: Arc<Self>, mut stream: UnixStream) {
        let own = rustix::process::getuid().as_raw();
        if !stream.peer_cred().is_ok_and(|peer| peer.uid() == own) {
            return;
        }
        let Ok(Ok(hello)) = timeout(GREETING, receive::<Hello>(&mut stream)).await else {
            return;
        };
        match hello.wish {
            Wish::Status => {
                let status = Status {
                    pid: std::process::id(),
                    seconds: self.since.elapsed().as_secs(),
                    version: self.version.clone(),
                    clients: self.clients.load(Ordering::SeqCst),
                    connections: self.pool.list(),
                    ports: self.offers.list(),
                };
                drop(send(&mut stream, &Answer::Status(status)).await);
            }
            Wish::Stop => {
                drop(send(&mut stream, &Answer::Stopping).await);
                self.stopping.notify_one();
                // Open until this process ends, so that the client sees when.
                std::future::pending::<()>().await;
            }
            Wish::Ports(wish) => {
                if hello.build == self.build && !self.retired.load(Ordering::SeqCst) {
                    self.ports(stream, &wish).await;
                }
            }
            Wish::Stream(route) => {
                if hello.build.is_newer(self.build) {
                    self.retired.store(true, Ordering::SeqCst);
                    self.stopping.notify_one();
                    // Once the lock is free, so that the client's own can have it.
                    let mut unlocked = self.unlocked.subscribe();
                    drop(unlocked.wait_for(|unlocked| *unlocked).await);
                    drop(send(&mut stream, &Answer::Older).await);
                } else if hello.build != self.build {
                    drop(send(&mut stream, &Answer::Newer).await);
                } else {
                    self.clients.fetch_add(1, Ordering::SeqCst);
                    let _guest = Guest(Arc::clone(&self));
                    self.stream(stream, &route).await;
                }
            }
        }
    }

    /// Offer ports, and tell the client as much as it wants to know.
    async fn ports(&self, mut client: UnixStream, wish: &PortsWish) {
        if wish.telling == Telling::News {
            let news = self.offers.news(&self.pool, wish);
            if send(&mut client, &Answer::Ports(news.clone()))
                .await
                .is_err()
            {
                self.offers.untell(wish, &news);
            }
            return;
        }
        let mut offers = self.offers.want(&self.pool, wish);
        if offers.wait_for(Option::is_some).await.is_err() {
            return;
        }
        let (mut from, mut to) = client.split();
        loop {
            let news = self.offers.tell(wish);
            let sent = send(&mut to, &Answer::Ports(news.clone())).await;
            if sent.is_err() {
                // It waited no longer than its limit.
                self.offers.untell(wish, &news);
                return;
            }
            if wish.telling == Telling::Once {
                return;
            }
            let mut byte = [0];
            tokio::select! {
                changed = offers.changed() => if changed.is_err() { return },
                // It says nothing more: it is gone.
                _ = tokio::io::AsyncReadExt::read(&mut from, &mut byte) => return,
            }
        }
    }

    /// Give the client a stream of the VM's connection, and carry its bytes.
    async fn stream(&self, mut client: UnixStream, route: &Route) {
        match self.pool.stream(route).await {
            Ok((stream, _use)) => {
                if send(&mut client, &Answer::Stream).await.is_ok() {
                    relay(client, stream).await;
                }
            }
            Err(error) => {
                let told = Told::new(&error, &route.vm);
                (self.say)(&format!("{}: {}", route.vm, error.with_causes()));
                drop(send(&mut client, &Answer::Failed(told)).await);
            }
        }
    }
}
