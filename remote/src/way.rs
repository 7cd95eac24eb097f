//! The way to a VM's helper: through the daemon, through a guardian where there is no
//! daemon, or by a connection of our own where there is neither.

use std::sync::Arc;

use tokio::net::UnixStream;
use tokio::sync::Mutex;

use crate::daemon::{self, Guardian, NoDaemon, Pool, Site};
use crate::link::{Link, Stream};
use crate::{Ask, HostKey, PipeChoice, RemoteError, Route};

/// What a way leads through.
#[derive(Debug, Clone)]
pub struct Through {
    /// Where the daemon's files lie.
    pub site: Site,
    /// The program that starts it, and its arguments.
    pub starter: Vec<String>,
    /// The program that starts a guardian, and its arguments.
    pub guard: Vec<String>,
}

/// A way that is open. Dropping it closes a connection of its own; one of the
/// daemon's stays.
pub struct Way {
    route: Option<Route>,
    through: Option<Through>,
    /// This process is the daemon, and these are its connections.
    pool: Option<Arc<Pool>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// A connection of our own.
    link: Option<Arc<Link>>,
    /// A stream that is open and was not used yet.
    ready: Option<Stream>,
    /// The one that has our connections, once it was needed.
    guardian: Option<Guardian>,
    /// The daemon can't be had.
    alone: bool,
    /// Nor can a guardian.
    unguarded: bool,
    /// Whoever has the last stream's connection sees when this process dies.
    watched: bool,
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Way")
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

impl Way {
    /// Open the way to the end of `route`. `ask` is called for the passphrase of an
    /// encrypted key.
    pub async fn open(
        route: Route,
        through: Option<Through>,
        ask: Ask<'_>,
    ) -> Result<Self, RemoteError> {
        let way = Self {
            route: Some(route),
            through,
            pool: None,
            state: Mutex::default(),
        };
        let stream = way.connect(ask).await?;
        way.state.lock().await.ready = Some(stream);
        Ok(way)
    }

    /// A way over a connection that is open already, and not renewed when it breaks.
    pub(crate) fn over(link: Link) -> Self {
        let state = State {
            link: Some(Arc::new(link)),
            ..State::default()
        };
        Self {
            route: None,
            through: None,
            pool: None,
            state: Mutex::new(state),
        }
    }

    /// A way of the daemon's own, over its connections.
    pub(crate) fn pooled(route: Route, pool: Arc<Pool>) -> Self {
        Self {
            route: Some(route),
            through: None,
            pool: Some(pool),
            state: Mutex::default(),
        }
    }

    /// The daemon that this way goes through, and what it is asked for.
    pub(crate) async fn daemon(&self) -> Option<(&Site, &Route)> {
        let (through, route) = (self.through.as_ref()?, self.route.as_ref()?);
        self.is_shared().await.then_some((&through.site, route))
    }

    /// A stream to the helper; nobody is asked for anything.
    pub(crate) async fn stream(&self) -> Result<Stream, RemoteError> {
        let ready = self.state.lock().await.ready.take();
        match ready {
            Some(stream) => Ok(stream),
            None => self.connect(None).await,
        }
    }

    /// Whether this way goes through a daemon.
    pub async fn is_shared(&self) -> bool {
        self.through.is_some() && !self.state.lock().await.alone
    }

    /// Whether the VM is told when this process is killed.
    pub(crate) async fn is_watched(&self) -> bool {
        self.state.lock().await.watched
    }

    /// The server's key, where this way is a connection of our own.
    pub async fn host_key(&self) -> Option<HostKey> {
        self.state.lock().await.link.as_ref()?.host_key()
    }

    /// `native` or `system`, where this way is a connection of our own.
    pub async fn kind(&self) -> Option<PipeChoice> {
        Some(self.state.lock().await.link.as_ref()?.kind())
    }

    async fn connect(&self, ask: Ask<'_>) -> Result<Stream, RemoteError> {
        if let (Some(pool), Some(route)) = (&self.pool, &self.route) {
            return pool.stream(route).await.map(|(stream, _use)| stream);
        }
        let mut state = self.state.lock().await;
        let state = &mut *state;
        if let (Some(through), Some(route)) = (&self.through, &self.route) {
            match through.stream(route, state).await {
                Ok(stream) => {
                    state.watched = daemon::outlives_us(&stream);
                    return Ok(Stream::from_daemon(stream));
                }
                Err(NoDaemon::Failed(error)) => return Err(error),
                Err(NoDaemon::Asks(error)) if ask.is_none() => return Err(error),
                Err(NoDaemon::Asks(_) | NoDaemon::Absent(_)) => {}
            }
        }
        state.watched = false;
        if let Some(link) = &state.link
            && let Ok(stream) = link.stream()
        {
            return Ok(stream);
        }
        let Some(route) = &self.route else {
            return Err(RemoteError::Lost);
        };
        let link = Arc::new(Link::open(route, ask).await?);
        let stream = link.stream()?;
        state.link = Some(link);
        Ok(stream)
    }
}

impl Through {
    /// A stream from the daemon, else from a guardian; who is absent once isn't asked
    /// again.
    async fn stream(&self, route: &Route, state: &mut State) -> Result<UnixStream, NoDaemon> {
        if !state.alone {
            match daemon::connect(&self.site, &self.starter, route).await {
                Err(NoDaemon::Absent(why)) => {
                    tracing::debug!(why, "no daemon");
                    state.alone = true;
                }
                done => return done,
            }
        }
        if state.unguarded {
            return Err(NoDaemon::Absent("there is no guardian either".to_owned()));
        }
        let done = Guardian::connect(&mut state.guardian, &self.guard, route).await;
        if let Err(NoDaemon::Absent(why)) = &done {
            tracing::debug!(why, "no guardian");
            state.unguarded = true;
        }
        done
    }
}
