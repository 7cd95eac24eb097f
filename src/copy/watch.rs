//! Project and copy kept the same for as long as somebody wants it.
//!
//! Both sides tell when something changes; what has changed is found out by a sync, as
//! ever. Where a side can't tell, and for what no kernel tells, there is a sync now and
//! then.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use boxery_remote::Way;
use boxery_remote::sync::{CopyWatch, Watched};
use boxery_sync::talk::Report;
use boxery_sync::watch::{LIMIT, Moment, Watch, is_limit};
use boxery_sync::{EntryPath, State};
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::git::GitReport;
use super::pair::{Pair, Wish};
use super::show::Show;
use super::whole::make_all_same;
use crate::app::App;
use crate::error::Failure;
use crate::reach;

/// Between two syncs where both sides tell of changes.
const SELDOM: Duration = Duration::from_secs(30);
/// The same where one of them can't.
const OFTEN: Duration = Duration::from_secs(3);
/// How long it has to be quiet before what changed is looked at.
const QUIET: Duration = Duration::from_millis(50);
/// For how long at most that is waited for.
const RESTLESS: Duration = Duration::from_millis(500);
/// After a failure, at first and at most.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// What happens while both are kept the same.
pub(crate) enum Happened {
    /// A sync was completed.
    Synced(Box<(Report, GitReport)>),
    /// One failed; the next one is tried soon.
    Failed(Failure),
    /// A side can't tell of changes, in words.
    Blind(String),
}

/// Keep both the same until the future is dropped.
pub(crate) async fn keep_same(
    app: &App,
    pair: &Arc<Pair>,
    way: &Way,
    wish: &Wish,
    show: Show,
    mut tell: impl FnMut(Happened),
) -> Infallible {
    let mut here = match Here::open(pair) {
        Ok(here) => Some(here),
        Err(error) => {
            tell(Happened::Blind(on_the_laptop(&error)));
            None
        }
    };
    let mut there: Option<CopyWatch> = None;
    let mut can_tell = true;
    let mut again = AGAIN[0];
    loop {
        if let Some(here) = &mut here {
            here.mark().ok();
        }
        let (report, repository) = match make_all_same(app, pair, way, wish, show).await {
            Ok(same) => same,
            Err(failure) => {
                tell(Happened::Failed(failure));
                there = None;
                sleep(again).await;
                again = (again * 2).min(AGAIN[1]);
                continue;
            }
        };
        again = AGAIN[0];
        let folders = folders_of(&report);
        tell(Happened::Synced(Box::new((report, repository))));
        // What changed in a folder before it was watched is found by one more sync.
        let mut is_new = false;
        if let Some(side) = &mut here {
            match side.add(&folders) {
                Ok(added) => is_new |= added,
                Err(error) => {
                    tell(Happened::Blind(on_the_laptop(&error)));
                    here = None;
                }
            }
        }
        if can_tell {
            match watch_there(&mut there, pair, way, &folders).await {
                Ok(Watched::AsBefore) => {}
                Ok(Watched::New) => is_new = true,
                Ok(Watched::Refused(why)) => {
                    tell(Happened::Blind(format!("{}: {why}", pair.vm)));
                    can_tell = false;
                    there = None;
                }
                Err(failure) => {
                    tell(Happened::Failed(failure));
                    there = None;
                    is_new = true;
                    sleep(again).await;
                }
            }
        }
        if is_new {
            continue;
        }
        let rest = if here.is_some() && there.is_some() {
            SELDOM
        } else {
            OFTEN
        };
        if timeout(rest, changed(&mut here, &mut there)).await.is_ok() {
            settle(&mut here, &mut there).await;
        }
    }
}

/// Wait until a side tells of a change.
async fn changed(here: &mut Option<Here>, there: &mut Option<CopyWatch>) {
    let there_changed = async {
        match there {
            Some(side) => side.changed().await,
            None => std::future::pending().await,
        }
    };
    let here_changed = async {
        match here {
            Some(side) => side.changed().await,
            None => std::future::pending().await,
        }
    };
    let lost = tokio::select! {
        () = here_changed => false,
        told = there_changed => told.is_err(),
    };
    if lost {
        *there = None;
    }
}

/// Wait until it is quiet, within reason.
async fn settle(here: &mut Option<Here>, there: &mut Option<CopyWatch>) {
    let end = Instant::now() + RESTLESS;
    while Instant::now() < end {
        if let Some(side) = here.as_mut() {
            side.mark().ok();
        }
        let until = (Instant::now() + QUIET).min(end);
        if timeout_at(until, changed(here, there)).await.is_err() {
            return;
        }
    }
}

/// The folders in which something counts, the top first, and the repository's own.
fn folders_of(report: &Report) -> Vec<Option<EntryPath>> {
    let all = report.project.iter();
    let folders = all.filter(|(_, state)| *state == State::Folder);
    let folders = folders.map(|(path, _)| Some(path.clone()));
    [None, EntryPath::parse(b".git")]
        .into_iter()
        .chain(folders)
        .collect()
}

fn on_the_laptop(error: &io::Error) -> String {
    let limit = if is_limit(error) {
        format!("; the limit is {LIMIT}")
    } else {
        String::new()
    };
    format!("this machine: {error}{limit}")
}

/// The project's side.
struct Here {
    watch: Watch,
    /// Readable when the watch has something to tell.
    queue: AsyncFd<OwnedFd>,
    moment: Moment,
}

impl Here {
    fn open(pair: &Pair) -> io::Result<Self> {
        let mut watch = Watch::open(pair.map.project.as_std_path(), 0)?;
        let moment = watch.now()?;
        #[expect(
            deprecated,
            reason = "a descriptor of our own is all that `register` asks for, and it is unsafe"
        )]
        let queue = AsyncFd::new(watch.as_fd().try_clone_to_owned()?)?;
        Ok(Self {
            watch,
            queue,
            moment,
        })
    }

    /// Whether any of them wasn't watched before.
    fn add(&mut self, folders: &[Option<EntryPath>]) -> io::Result<bool> {
        let mut new = false;
        for folder in folders {
            new |= self.watch.folder(folder.as_ref())?;
        }
        Ok(new)
    }

    /// Only what changes from now on counts.
    fn mark(&mut self) -> io::Result<()> {
        self.moment = self.watch.now()?;
        Ok(())
    }

    async fn changed(&mut self) {
        loop {
            let Ok(mut ready) = self.queue.readable().await else {
                return std::future::pending().await;
            };
            match self.watch.has_news(self.moment) {
                Ok(false) => ready.clear_ready(),
                Ok(true) | Err(_) => return,
            }
        }
    }
}

/// Watch the copy's folders.
async fn watch_there(
    side: &mut Option<CopyWatch>,
    pair: &Pair,
    way: &Way,
    folders: &[Option<EntryPath>],
) -> Result<Watched, Failure> {
    let failed = |error| reach::failure(&pair.vm, error);
    if side.is_none() {
        let folder = pair.map.folder.as_str();
        let opened = CopyWatch::open(way, folder, &pair.marker).await;
        *side = opened.map_err(failed)?;
    }
    let Some(watch) = side else {
        // The next sync says what is wrong with the copy.
        return Ok(Watched::New);
    };
    let watched = watch.add(folders).await.map_err(failed)?;
    watch.arm().await.map_err(failed)?;
    Ok(watched)
}
