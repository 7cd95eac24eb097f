//! Ports of the VM that appear on the laptop by themselves: what a run listens on is
//! offered on 127.0.0.1 as long as it listens.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use boxery_wire::{Decoder, FromPorts, Port, Reply, Request, RunId};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::daemon::Telling;
use crate::run::begin;
use crate::{Forward, RemoteError, Way, daemon};

pub use boxery_wire::Whose;

/// Longest pause between two tries to reach the VM.
const PAUSE: Duration = Duration::from_secs(5);
/// Shortest such pause.
const SHORT: Duration = Duration::from_millis(100);
/// How long a VM that was never reached is tried: a person may have to be asked for
/// something, which the daemon never does.
const FIRST_PATIENCE: Duration = Duration::from_secs(30);
/// How long a VM may stay away before its ports are given up, as a run is.
const PATIENCE: Duration = Duration::from_hours(8);
/// How long a daemon may take to say what is new before a command runs.
const NEWS: Duration = Duration::from_millis(500);
/// How long it may take to find out what a run listens on.
const FIRST: Duration = Duration::from_secs(3);

/// Which ports are offered by themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PortChoiceFile", into = "PortChoiceFile")]
pub enum PortChoice {
    /// Every one.
    #[default]
    Auto,
    /// None.
    Off,
    /// These.
    Only(Vec<u16>),
}

impl PortChoice {
    fn takes(&self, port: u16) -> bool {
        match self {
            Self::Auto => true,
            Self::Off => false,
            Self::Only(ports) => ports.contains(&port),
        }
    }
}

/// As it is written: a word or a list.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PortChoiceFile {
    Word(PortWord),
    List(Vec<u16>),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PortWord {
    Auto,
    Off,
}

impl From<PortChoiceFile> for PortChoice {
    fn from(file: PortChoiceFile) -> Self {
        match file {
            PortChoiceFile::Word(PortWord::Auto) => Self::Auto,
            PortChoiceFile::Word(PortWord::Off) => Self::Off,
            PortChoiceFile::List(ports) => Self::Only(ports),
        }
    }
}

impl From<PortChoice> for PortChoiceFile {
    fn from(choice: PortChoice) -> Self {
        match choice {
            PortChoice::Auto => Self::Word(PortWord::Auto),
            PortChoice::Off => Self::Word(PortWord::Off),
            PortChoice::Only(ports) => Self::List(ports),
        }
    }
}

/// Whose ports are wanted here, and which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedPorts {
    /// The runs.
    pub whose: Whose,
    /// Which of their ports.
    pub choice: PortChoice,
}

/// A port of the VM that is offered here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Offer {
    /// The VM's port.
    pub port: u16,
    /// The port of 127.0.0.1 here.
    pub local: u16,
    /// The run that listens.
    pub run: RunId,
}

/// An offer, and whether somebody was told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announced {
    /// The offer.
    pub offer: Offer,
    /// Nobody was told until now.
    pub new: bool,
}

/// What is offered now; `None` before the VM has said anything.
pub(crate) type Offers = watch::Sender<Option<Vec<Offer>>>;

/// Offer what `wanted` runs listen on, until none of them lives. A VM that is away
/// keeps its ports here until it says otherwise.
pub(crate) async fn keep(way: Arc<Way>, wanted: WantedPorts, offers: &Offers) {
    let mut kept = Kept {
        way,
        wanted,
        open: HashMap::new(),
        locals: HashMap::new(),
    };
    let mut pause = Duration::ZERO;
    let mut seen = None;
    let began = Instant::now();
    loop {
        sleep(pause).await;
        let before = seen;
        match kept.follow(offers, &mut seen).await {
            Ok(()) => break,
            Err(error) => tracing::debug!(%error, "ports are not told"),
        }
        let away = match seen {
            Some(seen) => Instant::elapsed(&seen) > PATIENCE,
            None => began.elapsed() > FIRST_PATIENCE,
        };
        if away {
            break;
        }
        pause = if seen == before { pause * 2 } else { SHORT }.clamp(SHORT, PAUSE);
    }
    offers.send_replace(Some(Vec::new()));
}

struct Kept {
    way: Arc<Way>,
    wanted: WantedPorts,
    open: HashMap<u16, Open>,
    /// Where a port was last: a server that starts again finds its place.
    locals: HashMap<u16, u16>,
}

/// A port that is offered, until dropped.
struct Open {
    offer: Offer,
    serving: JoinHandle<()>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Kept {
    /// Do as the VM says until none of the runs lives.
    async fn follow(
        &mut self,
        offers: &Offers,
        seen: &mut Option<Instant>,
    ) -> Result<(), RemoteError> {
        let stream = self.way.stream().await?;
        let whose = self.wanted.whose.clone();
        let (reply, mut decoder): (Reply, Decoder) =
            begin(&stream, &Request::WatchPorts { whose }).await?;
        if reply != Reply::Started {
            return Err(RemoteError::Lost);
        }
        *seen = Some(Instant::now());
        loop {
            while let Some(message) = decoder.message().map_err(|error| RemoteError::Helper {
                detail: error.to_string(),
            })? {
                match message {
                    FromPorts::Now(ports) => self.have(&ports).await,
                    FromPorts::Over => return Ok(()),
                }
                let mut now: Vec<Offer> = self.open.values().map(|open| open.offer).collect();
                now.sort_unstable();
                offers.send_if_modified(|offers| {
                    let changed = offers.as_ref() != Some(&now);
                    *offers = Some(now);
                    changed
                });
            }
            let bytes = stream.recv().await;
            *seen = Some(Instant::now());
            decoder.push(&bytes.ok_or(RemoteError::Lost)?);
        }
    }

    /// Offer exactly these.
    async fn have(&mut self, ports: &[Port]) {
        let wanted: HashMap<u16, RunId> = ports
            .iter()
            .filter(|port| self.wanted.choice.takes(port.port))
            .map(|port| (port.port, port.run))
            .collect();
        self.open.retain(|port, _| wanted.contains_key(port));
        for (port, run) in wanted {
            if let Some(open) = self.open.get_mut(&port) {
                open.offer.run = run;
                continue;
            }
            let before = self.locals.get(&port).copied().unwrap_or(port);
            let whose = Some(self.wanted.whose.clone());
            let Ok(forward) = Forward::listen_near(before, port, whose).await else {
                continue;
            };
            let Ok(local) = forward.local() else { continue };
            self.locals.insert(port, local);
            let way = Arc::clone(&self.way);
            let serving = async move {
                // Why a connection fails, whoever connected sees by its end.
                let say = |error: &RemoteError| tracing::debug!(%error, port, "not forwarded");
                drop(forward.serve(&way, say).await);
            };
            let offer = Offer { port, local, run };
            let serving = tokio::spawn(serving);
            self.open.insert(port, Open { offer, serving });
        }
    }
}

impl Way {
    /// What is offered of `wanted` here, by what a daemon knows at this moment; it
    /// doesn't ask the VM.
    pub async fn known_ports(&self, wanted: &WantedPorts) -> Vec<Announced> {
        self.ports_of_daemon(wanted, Telling::News, NEWS).await
    }

    /// Have a daemon offer the ports of `wanted` from now on, as long as the runs live;
    /// what they are at this moment. None where there is no daemon.
    pub async fn offer_ports(&self, wanted: &WantedPorts) -> Vec<Announced> {
        self.ports_of_daemon(wanted, Telling::Once, FIRST).await
    }

    async fn ports_of_daemon(
        &self,
        wanted: &WantedPorts,
        telling: Telling,
        limit: Duration,
    ) -> Vec<Announced> {
        let Some((site, route)) = self.daemon().await else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let asking = daemon::ports(site, route, wanted, telling, |now| found = now);
        // Without an answer in time there is nothing to tell.
        drop(timeout(limit, asking).await);
        found
    }

    /// Have the ports of `wanted` offered, and tell `say` of them at every change, for
    /// as long as this is polled. Through a daemon they stay; without one they end
    /// with this.
    pub async fn follow_ports(
        self: &Arc<Self>,
        wanted: &WantedPorts,
        mut say: impl FnMut(Vec<Announced>),
    ) {
        if let Some((site, route)) = self.daemon().await {
            return daemon::ports(site, route, wanted, Telling::Follow, say).await;
        }
        let offers = Offers::new(None);
        let mut changes = offers.subscribe();
        let mut told = HashSet::new();
        let telling = async {
            while changes.changed().await.is_ok() {
                let now = changes.borrow_and_update().clone().unwrap_or_default();
                say(announce(&now, &mut told));
            }
        };
        tokio::select! {
            () = keep(Arc::clone(self), wanted.clone(), &offers) => {}
            () = telling => {}
        }
    }
}

/// Note that these are told.
pub(crate) fn announce(now: &[Offer], told: &mut HashSet<(u16, u16)>) -> Vec<Announced> {
    let announced = |offer: &Offer| Announced {
        offer: *offer,
        new: told.insert((offer.port, offer.local)),
    };
    now.iter().map(announced).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::auto("\"auto\"", Some(PortChoice::Auto))]
    #[case::off("\"off\"", Some(PortChoice::Off))]
    #[case::list("[3000, 8080]", Some(PortChoice::Only(vec![3000, 8080])))]
    #[case::none("[]", Some(PortChoice::Only(vec![])))]
    #[case::another_word("\"on\"", None)]
    #[case::too_large("[70000]", None)]
    fn ports_are_a_word_or_a_list(#[case] text: &str, #[case] want: Option<PortChoice>) {
        assert_eq!(serde_json::from_str(text).ok(), want);
    }
}
