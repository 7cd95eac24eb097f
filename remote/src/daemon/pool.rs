//! The connections that a daemon keeps: one per route.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

use super::Connection;
use super::greeting::Told;
use crate::link::{Link, Stream};
use crate::{RemoteError, Route};

/// All connections.
#[derive(Default)]
pub(crate) struct Pool {
    slots: Mutex<HashMap<String, Arc<Slot>>>,
}

/// The connection of one route.
struct Slot {
    vm: String,
    /// Held while it is being opened, so that only one is.
    link: tokio::sync::Mutex<Option<Arc<Link>>>,
    kind: Mutex<Option<&'static str>>,
    streams: AtomicUsize,
    failures: Mutex<Failures>,
}

/// What came of opening it.
#[derive(Default)]
struct Failures {
    /// How many there were.
    count: u64,
    /// The last one, unless a person could help.
    last: Option<Told>,
}

/// One stream in use.
pub(crate) struct Use(Arc<Slot>);

impl Drop for Use {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Pool {
    /// A stream over the route's connection, which is opened where there is none.
    /// Nothing is queued: a VM that can't be reached is an error now.
    pub(crate) async fn stream(&self, route: &Route) -> Result<(Stream, Use), RemoteError> {
        let key = serde_json::to_string(route).unwrap_or_default();
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            let slot = slots.entry(key).or_insert_with(|| {
                Arc::new(Slot {
                    vm: route.vm.clone(),
                    link: tokio::sync::Mutex::default(),
                    kind: Mutex::default(),
                    streams: AtomicUsize::new(0),
                    failures: Mutex::default(),
                })
            });
            Arc::clone(slot)
        };
        let seen = slot.failures().count;
        let mut kept = slot.link.lock().await;
        if let Some(link) = &*kept {
            let link = Arc::clone(link);
            // One that has just broken is replaced, once.
            if let Ok(stream) = link.stream() {
                drop(kept);
                return Ok((stream, slot.used()));
            }
            *kept = None;
        }
        {
            // Who waited for an attempt doesn't make another: each would wait for all
            // before it.
            let failures = slot.failures();
            if let Some(told) = failures.last.as_ref().filter(|_| failures.count > seen) {
                return Err(told.clone().into());
            }
        }
        let link = match Link::open(route, None).await {
            Ok(link) => Arc::new(link),
            Err(error) => {
                let told = Told::new(&error, &route.vm);
                let mut failures = slot.failures();
                failures.count += 1;
                failures.last = (!told.asks()).then_some(told);
                return Err(error);
            }
        };
        *slot.kind.lock().unwrap_or_else(PoisonError::into_inner) = Some(link.kind().as_str());
        let stream = link.stream()?;
        *kept = Some(link);
        drop(kept);
        Ok((stream, slot.used()))
    }

    /// What is kept.
    pub(super) fn list(&self) -> Vec<Connection> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<Connection> = slots
            .values()
            .filter(|slot| match slot.link.try_lock() {
                Ok(link) => link.as_ref().is_some_and(|link| link.is_open()),
                // Being opened or asked at this moment.
                Err(_) => true,
            })
            .map(|slot| {
                let kind = slot.kind.lock().unwrap_or_else(PoisonError::into_inner);
                Connection {
                    vm: slot.vm.clone(),
                    pipe: kind.unwrap_or("opening").to_owned(),
                    streams: slot.streams.load(Ordering::SeqCst),
                }
            })
            .collect();
        found.sort_by(|a, b| a.vm.cmp(&b.vm));
        found
    }

    /// Close them all. One that is being opened ends with this process.
    pub(super) fn close(&self) {
        for slot in self.take() {
            if let Ok(mut link) = slot.link.try_lock() {
                link.take();
            }
        }
    }

    /// The same, and wait until what was to be said over each is said.
    pub(super) async fn part(&self) {
        let mut closing = JoinSet::new();
        for slot in self.take() {
            let Ok(mut link) = slot.link.try_lock() else {
                continue;
            };
            if let Some(link) = link.take() {
                let closed = link.closed();
                drop(link);
                closing.spawn(closed);
            }
        }
        while closing.join_next().await.is_some() {}
    }

    fn take(&self) -> Vec<Arc<Slot>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.drain().map(|(_, slot)| slot).collect()
    }
}

impl Slot {
    fn failures(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn used(self: &Arc<Self>) -> Use {
        self.streams.fetch_add(1, Ordering::SeqCst);
        Use(Arc::clone(self))
    }
}
