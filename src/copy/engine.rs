//! The sync engine at work over a VM's connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use boxery_remote::{Way, sync};
use boxery_sync::SyncError;
use boxery_sync::talk::{DriveError, Job, Marked, Progress, Report, drive, look};
use rustix::io::Errno;

use super::known;
use super::make::{Making, make};
use super::pair::{Creation, Pair, Wish};
use super::show::size;
use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;
use crate::reach;

/// For how long another sync of the same project is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// How often whoever holds a stage is asked after.
const PAUSE: Duration = Duration::from_millis(50);

/// What a sync is told while it goes on.
pub(crate) type Tell = Box<dyn FnMut(Progress) + Send>;

type Talk = fn(&mut sync::SyncLine, &mut Job<'_>) -> Result<Report, DriveError>;

/// What a sync would do now.
pub(crate) async fn look_at(
    app: &App,
    pair: &Arc<Pair>,
    way: &Way,
    wish: &Wish,
) -> Result<Report, Failure> {
    pair.make_state()?;
    let talk: Talk = |line, job| look(line, job);
    let found = talk_to(pair, way, wish, talk, Box::new(|_| {})).await?;
    let found = found.map_err(|error| failure(pair, error))?;
    // A copy that can't be noted is only not listed as this laptop's.
    known::note(app, &pair.vm, &pair.map).ok();
    Ok(found)
}

/// Make project and copy the same, `.git` apart: what moves that goes before this for the
/// copy, and after it for the project.
pub(crate) async fn synchronise(
    app: &App,
    pair: &Arc<Pair>,
    way: &Way,
    wish: &Wish,
    tell: Tell,
) -> Result<Report, Failure> {
    let talk: Talk = |line, job| drive(line, job);
    let tell = Shared::new(tell);
    let mut ended = talk_to(pair, way, wish, talk, tell.tell()).await?;
    let is_absent = |error: &DriveError| match error {
        DriveError::Copy { marked } => matches!(marked, Marked::Nothing | Marked::Unfinished),
        _ => false,
    };
    if wish.making != Creation::Refused && ended.as_ref().is_err_and(is_absent) {
        may_be_made(pair, wish.making).await?;
        make(pair, way, Making::Over).await?;
        ended = talk_to(pair, way, wish, talk, tell.tell()).await?;
    }
    let report = ended.map_err(|error| failure(pair, error))?;
    known::note(app, &pair.vm, &pair.map)?;
    Ok(report)
}

/// Refuse to send a project by itself that is too large for that.
async fn may_be_made(pair: &Arc<Pair>, creation: Creation) -> Result<(), Failure> {
    let Creation::UpTo(most) = creation else {
        return Ok(());
    };
    let this = Arc::clone(pair);
    let scan = tokio::task::spawn_blocking(move || this.scan()).await?;
    let bytes = scan.map_err(sync_failure)?.snapshot.bytes();
    if bytes <= most {
        return Ok(());
    }
    let vm = &pair.vm;
    Err(Failure::from(format!(
        "this project has no copy on {vm} yet, and is {} large",
        size(bytes)
    ))
    .hint(format!("send it: `boxery sync {vm}`")))
}

/// One [`Tell`] for several conversations.
struct Shared(Arc<std::sync::Mutex<Tell>>);

impl Shared {
    fn new(tell: Tell) -> Self {
        Self(Arc::new(std::sync::Mutex::new(tell)))
    }

    fn tell(&self) -> Tell {
        let shared = Arc::clone(&self.0);
        Box::new(move |progress| {
            if let Ok(mut tell) = shared.lock() {
                tell(progress);
            }
        })
    }
}

/// Hold one conversation, or more while somebody else is at work.
async fn talk_to(
    pair: &Arc<Pair>,
    way: &Way,
    wish: &Wish,
    talk: Talk,
    tell: Tell,
) -> Result<Result<Report, DriveError>, Failure> {
    let until = Instant::now() + PATIENCE;
    let tell = Shared::new(tell);
    loop {
        let line = sync::open(way, pair.map.folder.as_str()).await;
        let mut line = line.map_err(|error| reach::failure(&pair.vm, error))?;
        let (this, wish, mut tell) = (Arc::clone(pair), wish.clone(), tell.tell());
        let work = move || this.with_job(&wish, &mut *tell, |job| talk(&mut line, job));
        match tokio::task::spawn_blocking(work).await? {
            // Another project's sync with this copy, or one whose end isn't noticed yet.
            Err(DriveError::Busy) if Instant::now() < until => tokio::time::sleep(PAUSE).await,
            ended => return Ok(ended),
        }
    }
}

/// An error of the `sync` crate with its hint.
pub(crate) fn sync_failure(error: SyncError) -> Failure {
    let hint = error.hint();
    Failure::from(error).hint_if(hint)
}

/// Why project and copy weren't compared or made the same, with what to do about it.
fn failure(pair: &Pair, error: DriveError) -> Failure {
    let (vm, folder) = (&pair.vm, &pair.map.folder);
    let full = Errno::NOSPC.raw_os_error();
    let quota = Errno::DQUOT.raw_os_error();
    match error {
        DriveError::Copy { marked } => unusable(pair, marked),
        DriveError::Foreign => Failure::from(format!(
            "VM {vm} isn't the machine that this project was last synced with"
        ))
        .hint(format!(
            "if it was rebuilt, say so in a terminal: `boxery vm renew {vm}`; nothing was changed"
        )),
        DriveError::Guard(guard) => {
            let needs = guard.needs();
            Failure::from(guard)
                .hint(format!(
                    "nothing was changed; if that is meant, the user can say so in a terminal: `boxery sync {vm} --allow-deletes {needs}`"
                ))
                .exit(Exit::No)
        }
        DriveError::Far { errno, .. } if errno == full || errno == quota => {
            Failure::from(format!("{vm} has no space left for the copy")).hint(format!(
                "free some there; then `boxery sync {vm}` goes on where it was"
            ))
        }
        DriveError::Far { what, .. } => Failure::from(format!(
            "{vm} cannot read or write the copy `{folder}`: {what}"
        )),
        DriveError::Busy => Failure::from(format!(
            "another sync of this project with {vm} is at work, for longer than a minute"
        ))
        .hint("wait for its end, and run the same again"),
        error @ (DriveError::Project(_)
        | DriveError::Laptop(_)
        | DriveError::Line(_)
        | DriveError::Protocol) => {
            let hint = error.hint();
            Failure::from(error).hint_if(hint)
        }
    }
}

fn unusable(pair: &Pair, marked: Marked) -> Failure {
    let (vm, folder) = (&pair.vm, &pair.map.folder);
    match marked {
        Marked::Nothing => Failure::from(format!("this project has no copy on {vm}"))
            .hint(format!("send the project: `boxery sync {vm}`")),
        Marked::Unfinished => Failure::from(format!(
            "the copy on {vm} is not complete: moving it broke off"
        ))
        .hint(format!("complete it: `boxery sync {vm}`")),
        Marked::Other => {
            Failure::from(format!("`{folder}` on {vm} is the copy of another project"))
                .hint(elsewhere(pair))
        }
        Marked::NoCopy | Marked::Ours => {
            Failure::from(format!("`{folder}` on {vm} is not a copy that boxery made"))
                .hint(elsewhere(pair))
        }
    }
}

/// What helps where a folder on the VM is somebody else's.
pub(super) fn elsewhere(pair: &Pair) -> String {
    let map = &pair.map;
    let other = if map.copy.as_str() == map.project.as_str() {
        "set the VM's `paths = \"mapped\"` in the configuration"
    } else {
        "give the VM another `--dir`"
    };
    format!("move that folder away on the VM, or {other}")
}
