//! Files from and to a VM, one way at a time.
//!
//! Start at [`copy`]. What a tree becomes on the wire, and how it is written, is
//! [`boxery_wire::copy`]'s; here a copy is brought over the connection, and goes on
//! when that breaks.

use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use boxery_wire::copy::{Step, Talk, Trouble, find_target, send, take};
use boxery_wire::{Blob, Failure, Kind, Misplaced, Reply, Request};
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use crate::carry::carry;
use crate::link::Stream;
use crate::run::begin;
use crate::{Cancel, RemoteError, RunRequest, Way};

/// For how long a connection that broke is sought again.
const SEEKING: Duration = Duration::from_mins(1);
/// How often it may break without a byte in between.
const BREAKS: u32 = 8;
/// Longest and shortest pause between two tries to connect.
const PAUSE: Duration = Duration::from_secs(5);
const SHORTEST: Duration = Duration::from_millis(100);
/// How often whoever watches is told.
const LOOK: Duration = Duration::from_millis(100);
/// How long this end may take to let go of its files.
const PARTING: Duration = Duration::from_secs(2);

/// What to copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Journey {
    /// From the laptop to the VM.
    Up {
        /// What, on the laptop.
        from: PathBuf,
        /// Where to, from the home of the VM's user.
        to: OsString,
    },
    /// From the VM to the laptop.
    Down {
        /// What, from the home of the VM's user.
        from: OsString,
        /// Where to, on the laptop.
        to: PathBuf,
    },
}

/// Why something must not be written at a path of the laptop, if so.
pub type Refuse = Arc<dyn Fn(&Path) -> Option<String> + Send + Sync>;

/// How far a copy is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Files in all, where they were counted.
    pub total_files: Option<u64>,
    /// Their bytes.
    pub total_bytes: Option<u64>,
    /// Files that began.
    pub files: u64,
    /// Bytes that are there, zeros and those of an earlier time included.
    pub bytes: u64,
    /// Bytes that went over the wire, those that went twice included.
    pub travelled: u64,
    /// The last file.
    pub path: Vec<u8>,
    /// What wasn't copied, and why not.
    pub left: Vec<(Vec<u8>, String)>,
    /// What was changed while it was read.
    pub changed: Vec<Vec<u8>>,
    /// How often the connection broke and was found again.
    pub reconnected: u32,
}

/// A copy that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Where it lies now, absolute on the VM.
    pub target: PathBuf,
    /// What went.
    pub progress: Progress,
}

/// What of [`Progress`] holds after a break.
#[derive(Default)]
struct Watched {
    progress: Progress,
    /// Everything up to this path is in place.
    placed: Option<Vec<u8>>,
    /// Files and bytes at that point.
    sure: (u64, u64),
    /// The size of the file that is on its way.
    coming: u64,
}

impl Watched {
    fn step(&mut self, step: Step<'_>) {
        let progress = &mut self.progress;
        match step {
            Step::Total { files, bytes } => {
                progress.total_files = Some(files);
                progress.total_bytes = Some(bytes);
            }
            Step::File { path, size, have } => {
                progress.files += 1;
                progress.bytes += have;
                path.clone_into(&mut progress.path);
                self.coming = size;
            }
            Step::Data(length) => {
                progress.bytes += length;
                progress.travelled += length;
            }
            Step::Hole(length) => progress.bytes += length,
            // A folder that is only named again doesn't lead back.
            Step::Placed(path) if !is_before(path, self.placed.as_deref()) => {
                self.placed = Some(path.to_vec());
                self.sure = (progress.files, progress.bytes);
            }
            Step::Placed(_) => {}
            Step::Left { path, why } => {
                if progress.left.iter().all(|(known, _)| known != path) {
                    progress.left.push((path.to_vec(), why.to_owned()));
                }
            }
            Step::Changed(path) => {
                if progress.changed.iter().all(|known| known != path) {
                    progress.changed.push(path.to_vec());
                }
            }
        }
    }

    /// Back to what is sure.
    fn broke(&mut self) {
        (self.progress.files, self.progress.bytes) = self.sure;
        self.progress.reconnected += 1;
    }
}

/// Whether `path` comes before `placed` in the order of the walk.
fn is_before(path: &[u8], placed: Option<&[u8]>) -> bool {
    let path_of = |bytes| Path::new(OsStr::from_bytes(bytes));
    placed.is_some_and(|placed| path_of(path) < path_of(placed))
}

/// Copy, and when the connection breaks go on where it broke. `show` is told how far
/// it is. `refuse` is asked about each path of the laptop that would be written.
/// The inner error is why `cancel` ended it.
pub async fn copy(
    way: &Way,
    journey: &Journey,
    refuse: Refuse,
    mut show: impl FnMut(&Progress),
    cancel: impl Future<Output = Cancel>,
) -> Result<Result<Copied, Cancel>, RemoteError> {
    let watched = Arc::new(Mutex::new(Watched::default()));
    // Held by whoever works on files.
    let (working, mut idle) = mpsc::channel::<()>(1);
    let mut cancel = pin!(cancel);
    let mut looks = tokio::time::interval(LOOK);
    let mut target: Option<PathBuf> = None;
    let (mut broken_at, mut breaks, mut pause) = (None::<Instant>, 0, Duration::ZERO);
    loop {
        let before = lock(&watched).progress.travelled;
        let ended = {
            let mut attempt = pin!(async {
                sleep(pause).await;
                attempt(way, journey, &refuse, &watched, &mut target, &working).await
            });
            loop {
                tokio::select! {
                    ended = &mut attempt => break Ok(ended),
                    why = cancel.as_mut() => break Err(why),
                    _ = looks.tick() => show(&lock(&watched).progress),
                }
            }
        };
        let ended = match ended {
            Ok(ended) => ended,
            Err(why) => {
                drop(working);
                drop(timeout(PARTING, idle.recv()).await);
                return Ok(Err(why));
            }
        };
        match ended {
            Ok(()) => {
                let progress = std::mem::take(&mut lock(&watched).progress);
                show(&progress);
                let target = target.unwrap_or_default();
                return Ok(Ok(Copied { target, progress }));
            }
            Err(Ended::For(error)) => return Err(error),
            Err(Ended::Unreachable(error)) => match broken_at {
                None => return Err(error),
                Some(at) if at.elapsed() > SEEKING => return Err(RemoteError::CopyLost),
                Some(_) => pause = (pause * 2).clamp(SHORTEST, PAUSE),
            },
            Err(Ended::Broken) => {
                let moved = lock(&watched).progress.travelled > before;
                breaks = if moved { 0 } else { breaks + 1 };
                if breaks > BREAKS {
                    return Err(RemoteError::CopyLost);
                }
                lock(&watched).broke();
                broken_at = Some(Instant::now());
                pause = SHORTEST * breaks;
            }
        }
    }
}

fn lock(watched: &Mutex<Watched>) -> std::sync::MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a try ended.
enum Ended {
    /// There is no connection.
    Unreachable(RemoteError),
    /// It broke.
    Broken,
    /// Another try would end the same way.
    For(RemoteError),
}

async fn attempt(
    way: &Way,
    journey: &Journey,
    refuse: &Refuse,
    watched: &Arc<Mutex<Watched>>,
    target: &mut Option<PathBuf>,
    working: &mpsc::Sender<()>,
) -> Result<(), Ended> {
    let placed = lock(watched).placed.clone();
    let request = match journey {
        Journey::Up { from, to } => put(from, to, target.as_deref())?,
        Journey::Down { from, .. } => Request::Get {
            path: Blob::from(from.as_bytes()),
            after: placed.clone().map(Blob),
        },
    };
    let stream = way.stream().await.map_err(Ended::Unreachable)?;
    let (reply, rest) = begin(&stream, &request)
        .await
        .map_err(|error| match error {
            RemoteError::Lost => Ended::Broken,
            error => Ended::For(error),
        })?;
    let watch = Arc::clone(watched);
    let (ours, theirs) = UnixStream::pair().map_err(|error| system(&error))?;
    let talk = Talk::new(ours, &rest.into_rest());
    let work: Box<dyn FnOnce(Talk) -> Result<(), Trouble> + Send> = match (journey, reply) {
        (Journey::Up { from, .. }, Reply::Target(found)) => {
            *target = Some(PathBuf::from(OsStr::from_bytes(&found)));
            let from = from.clone();
            Box::new(move |mut talk| {
                let mut step = |step: Step<'_>| lock(&watch).step(step);
                send(&mut talk, &from, placed.as_deref(), &mut step)
            })
        }
        (Journey::Down { from, to }, Reply::Source(kind)) => {
            let found = match target.clone() {
                Some(found) => found,
                None => find_target(to, name(Path::new(from)), kind)
                    .map_err(|why| Ended::For(misplaced(&to.to_string_lossy(), why)))?,
            };
            *target = Some(found.clone());
            let refuse = Arc::clone(refuse);
            Box::new(move |mut talk| {
                let mut step = |step: Step<'_>| lock(&watch).step(step);
                let refuse = |path: &[u8]| {
                    if path.is_empty() {
                        refuse(&found)
                    } else {
                        refuse(&found.join(OsStr::from_bytes(path)))
                    }
                };
                take(&mut talk, &found, &refuse, &mut step)
            })
        }
        (Journey::Up { .. } | Journey::Down { .. }, Reply::Failed(Failure::Misplaced(why))) => {
            let path = match journey {
                Journey::Up { to, .. } => to,
                Journey::Down { from, .. } => from,
            };
            return Err(Ended::For(misplaced(&path.to_string_lossy(), why)));
        }
        (
            Journey::Up { .. } | Journey::Down { .. },
            reply @ (Reply::Started
            | Reply::Attached { .. }
            | Reply::Hello(_)
            | Reply::Jobs(_)
            | Reply::Ended(_)
            | Reply::Ports(_)
            | Reply::SetUp(_)
            | Reply::Left(_)
            | Reply::Target(_)
            | Reply::Source(_)
            | Reply::Failed(_)),
        ) => return Err(Ended::For(unfit(reply))),
    };
    let working = working.clone();
    let work = move || {
        let _working = working;
        work(talk)
    };
    match converse(&stream, theirs, work).await? {
        Ok(()) => Ok(()),
        Err(Trouble::Broken(error)) => {
            tracing::debug!(%error, "copy broke off");
            Err(Ended::Broken)
        }
        Err(Trouble::Here { path, source }) => Err(Ended::For(stopped(
            "this laptop",
            &path,
            source.to_string(),
        ))),
        Err(Trouble::There { path, why }) => Err(Ended::For(stopped("the VM", &path, why))),
    }
}

/// The request that sends what lies at `from`. Once it is known where it goes, that
/// is the place, also when there is a folder by now.
fn put(from: &Path, to: &OsStr, known: Option<&Path>) -> Result<Request, Ended> {
    let kind = match from.symlink_metadata() {
        Ok(found) if found.is_dir() => Kind::Folder,
        Ok(_) => Kind::Other,
        Err(error) => {
            let why = match error.kind() {
                std::io::ErrorKind::NotFound => Misplaced::Absent,
                _ => Misplaced::System(error.raw_os_error().unwrap_or(0)),
            };
            return Err(Ended::For(misplaced(&from.to_string_lossy(), why)));
        }
    };
    let blob = |text: &OsStr| Blob::from(text.as_bytes());
    Ok(match known {
        Some(known) => Request::Put {
            path: blob(known.as_os_str()),
            name: None,
            kind,
        },
        None => Request::Put {
            path: blob(to),
            name: name(from).map(blob),
            kind,
        },
    })
}

/// The name under which something goes into a folder; `.` and `/` are what is in them.
fn name(path: &Path) -> Option<&OsStr> {
    let bytes = path.as_os_str().as_bytes();
    let ends_in_dot = bytes == b"." || bytes.ends_with(b"/.");
    path.file_name().filter(|_| !ends_in_dot)
}

fn misplaced(path: &str, why: Misplaced) -> RemoteError {
    let path = path.to_owned();
    RemoteError::Misplaced { path, why }
}

fn stopped(side: &str, path: &[u8], why: String) -> RemoteError {
    let path = if path.is_empty() {
        format!("its top, on {side}")
    } else {
        format!("`{}` on {side}", String::from_utf8_lossy(path))
    };
    RemoteError::Copy { path, why }
}

fn system(error: &std::io::Error) -> Ended {
    Ended::For(RemoteError::BadRequest {
        what: error.to_string(),
    })
}

fn unfit(reply: Reply) -> RemoteError {
    match reply {
        Reply::Failed(failure) => crate::run::refused(failure, false, &RunRequest::default()),
        Reply::Started
        | Reply::Attached { .. }
        | Reply::Hello(_)
        | Reply::Jobs(_)
        | Reply::Ended(_)
        | Reply::Ports(_)
        | Reply::SetUp(_)
        | Reply::Left(_)
        | Reply::Target(_)
        | Reply::Source(_) => RemoteError::Helper {
            detail: "it gave an answer to another question".to_owned(),
        },
    }
}

/// Do the blocking `work` with the other end of `theirs` connected to the stream.
async fn converse(
    stream: &Stream,
    theirs: UnixStream,
    work: impl FnOnce() -> Result<(), Trouble> + Send + 'static,
) -> Result<Result<(), Trouble>, Ended> {
    theirs
        .set_nonblocking(true)
        .map_err(|error| system(&error))?;
    let theirs = tokio::net::UnixStream::from_std(theirs).map_err(|error| system(&error))?;
    let (from, to) = theirs.into_split();
    let worked = async { tokio::task::spawn_blocking(work).await };
    let mut done = pin!(worked);
    let ended = {
        let mut pumps = pin!(carry(stream, from, to, Bytes::new()));
        tokio::select! {
            ended = &mut done => {
                // What it said last is on its way.
                drop(timeout(PARTING, &mut pumps).await);
                ended
            }
            () = &mut pumps => match timeout(PARTING, &mut done).await {
                Ok(ended) => ended,
                Err(_) => return Err(Ended::Broken),
            },
        }
    };
    ended.map_err(|error| system(&std::io::Error::other(error)))
}
