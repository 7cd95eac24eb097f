//! The ports that a daemon offers by itself, for runs that outlive their clients too.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::greeting::{Offered, PortsWish};
use super::pool::Pool;
use crate::ports::{Offers as Changes, announce, keep};
use crate::{Announced, Offer, Route, Way};

/// A session of which nothing is known is asked about once, when the call that
/// brought it is likely over.
const LATER: Duration = Duration::from_millis(500);

/// For how long a session is remembered that has no listener: what it was told of isn't
/// told again.
const MEMORY: Duration = Duration::from_mins(30);

/// Everything that is offered.
#[derive(Default)]
pub(super) struct Offers {
    kept: Mutex<HashMap<String, Kept>>,
}

/// The ports of one session or run.
struct Kept {
    vm: String,
    offers: watch::Receiver<Option<Vec<Offer>>>,
    /// Which were told to a client.
    told: HashSet<(u16, u16)>,
    /// When a client last asked.
    asked: Instant,
    keeping: JoinHandle<()>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.keeping.abort();
    }
}

impl Offers {
    /// The changes of what is wanted, which is offered from now on.
    pub(super) fn want(
        &self,
        pool: &Arc<Pool>,
        wish: &PortsWish,
    ) -> watch::Receiver<Option<Vec<Offer>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        trim(&mut kept);
        let known = kept.entry(key(wish));
        let entry = known.or_insert_with(|| begin(pool, wish, Duration::ZERO));
        entry.asked = Instant::now();
        if entry.keeping.is_finished() {
            let told = std::mem::take(&mut entry.told);
            *entry = begin(pool, wish, Duration::ZERO);
            entry.told = told;
        }
        entry.offers.clone()
    }

    /// What is offered; a client learns it now.
    pub(super) fn tell(&self, wish: &PortsWish) -> Vec<Announced> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = kept.get_mut(&key(wish)) else {
            return Vec::new();
        };
        let now = entry.offers.borrow().clone().unwrap_or_default();
        announce(&now, &mut entry.told)
    }

    /// Who was to learn it has gone without: somebody else is to be told.
    pub(super) fn untell(&self, wish: &PortsWish, news: &[Announced]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = kept.get_mut(&key(wish)) {
            for Announced { offer, .. } in news.iter().filter(|announced| announced.new) {
                entry.told.remove(&(offer.port, offer.local));
            }
        }
    }

    /// What [`Self::tell`] says, for a session that may have been left to us by another
    /// daemon.
    pub(super) fn news(&self, pool: &Arc<Pool>, wish: &PortsWish) -> Vec<Announced> {
        {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            trim(&mut kept);
            let known = kept.entry(key(wish));
            let entry = known.or_insert_with(|| begin(pool, wish, LATER));
            entry.asked = Instant::now();
        }
        self.tell(wish)
    }

    /// What is offered, by VM.
    pub(super) fn list(&self) -> Vec<Offered> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<Offered> = kept
            .values()
            .flat_map(|entry| {
                let offers = entry.offers.borrow().clone().unwrap_or_default();
                let offered = |offer: Offer| Offered {
                    vm: entry.vm.clone(),
                    port: offer.port,
                    local: offer.local,
                    job: offer.run.to_string(),
                };
                offers.into_iter().map(offered)
            })
            .collect();
        found.sort();
        found
    }

    /// Whether no run is left whose ports are wanted.
    pub(super) fn is_idle(&self) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.values().all(|entry| entry.keeping.is_finished())
    }

    /// Offer nothing more.
    pub(super) fn close(&self) {
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

/// Forget sessions whose last listener is gone and that nobody asks about any more.
fn trim(kept: &mut HashMap<String, Kept>) {
    kept.retain(|_, entry| !entry.keeping.is_finished() || entry.asked.elapsed() < MEMORY);
}

fn key(wish: &PortsWish) -> String {
    serde_json::to_string(&(&wish.route, &wish.wanted)).unwrap_or_default()
}

fn begin(pool: &Arc<Pool>, wish: &PortsWish, after: Duration) -> Kept {
    let (changes, offers) = watch::channel(None);
    let way = way(pool, &wish.route);
    let wanted = wish.wanted.clone();
    let keeping = tokio::spawn(async move {
        let changes: Changes = changes;
        tokio::time::sleep(after).await;
        keep(way, wanted, &changes).await;
    });
    Kept {
        vm: wish.route.vm.clone(),
        offers,
        told: HashSet::new(),
        asked: Instant::now(),
        keeping,
    }
}

fn way(pool: &Arc<Pool>, route: &Route) -> Arc<Way> {
    Arc::new(Way::pooled(route.clone(), Arc::clone(pool)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_session_without_listeners_is_forgotten_and_not_at_once() {
        let (_, offers) = watch::channel(None);
        let entry = |keeping, asked| Kept {
            vm: "dev".to_owned(),
            offers: offers.clone(),
            told: HashSet::new(),
            asked,
            keeping,
        };
        let now = Instant::now();
        let Some(long_ago) = now.checked_sub(MEMORY) else {
            panic!("this machine was started a moment ago");
        };
        let lives = tokio::spawn(std::future::pending());
        let over = [tokio::spawn(async {}), tokio::spawn(async {})];
        while !over.iter().all(JoinHandle::is_finished) {
            tokio::task::yield_now().await;
        }
        let [young, old] = over;
        let mut kept = HashMap::from([
            ("lives".to_owned(), entry(lives, long_ago)),
            ("young".to_owned(), entry(young, now)),
            ("old".to_owned(), entry(old, long_ago)),
        ]);
        trim(&mut kept);
        let mut names: Vec<&str> = kept.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["lives", "young"]);
    }
}
