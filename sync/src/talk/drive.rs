//! The laptop's side of a sync: it reads both trees, decides, and has it done.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use camino::Utf8Path;

use super::content::{contents, send_all, take_all};
use super::listing::{Copy, read_copy};
use super::{Answer, Ask, BATCH, Line, Marked};
use crate::apply::{Applied, Applying, apply, settle};
use crate::base::{Base, Greeting, Identity, Standing};
use crate::guard::{Guard, check};
use crate::index::StatIndex;
use crate::plan::{Change, Plan, Side};
use crate::reconcile::{Direction, Take, Terms, Trees, reconcile};
use crate::root::Root;
use crate::spelling::Folding;
use crate::stage::Stage;
use crate::{Digest, Disk, EntryPath, Left, Protected, STAGE, Scan, ScanOptions, SyncError, Tree};

/// What is to be done.
pub struct Job<'a> {
    /// The project's top.
    pub project: &'a Utf8Path,
    /// How it is read.
    pub scan: &'a ScanOptions,
    /// A folder of this project and this copy alone, for the state of their syncs.
    pub state: &'a Path,
    /// What the marker of this project's copies says.
    pub marker: &'a str,
    /// Make the copy if there is none.
    pub create: bool,
    /// Which way changes go.
    pub direction: Direction,
    /// What never comes back from the VM by itself.
    pub protected: &'a Protected,
    /// What else never comes back.
    pub never_taken: &'a dyn Fn(&EntryPath) -> bool,
    /// What is never sent.
    pub never_sent: &'a dyn Fn(&EntryPath) -> bool,
    /// What a person decided.
    pub takes: &'a [Take],
    /// How many deletions a person allowed.
    pub allowed: usize,
    /// For how long another sync of this project is waited for.
    pub patience: Duration,
    /// Told what has been done so far.
    pub progress: &'a mut dyn FnMut(Progress),
}

/// How far a sync is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Files whose content was moved.
    pub files: usize,
    /// Of how many.
    pub all_files: usize,
    /// Bytes of content that were moved.
    pub bytes: u64,
    /// Of how many.
    pub all_bytes: u64,
}

/// What came of it.
#[derive(Debug)]
pub struct Report {
    /// What was to be done.
    pub plan: Plan,
    /// How the copy stood to the last common state.
    pub standing: Standing,
    /// What was done in the project.
    pub laptop: Applied,
    /// What was done in the copy.
    pub vm: Applied,
    /// Files of the project that changed while they were read.
    pub unsettled: Vec<EntryPath>,
    /// Sockets, FIFOs and devices of the project, which are never copied.
    pub skipped: Vec<EntryPath>,
    /// Files that an interrupted sync left and nobody knows, where they lie now.
    pub kept: Vec<(Side, String)>,
    /// The project as it was read.
    pub project: Tree,
    /// What would hold a sync back.
    pub guard: Option<Guard>,
}

impl Report {
    /// Whether both sides are the same now, as far as they count.
    pub fn is_same(&self) -> bool {
        let left = self.laptop.left.is_empty() && self.vm.left.is_empty();
        left && self.plan.conflicts.is_empty() && self.plan.kept.is_empty()
    }
}

/// Why project and copy weren't made the same. Nothing that a person wrote is lost.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The project can't be read.
    #[error(transparent)]
    Project(#[from] SyncError),
    /// The state of syncs or the project can't be written.
    #[error("cannot write the project or the state of its syncs")]
    Laptop(#[source] io::Error),
    /// Another sync of this project is at work.
    #[error("another sync of this project is at work")]
    Busy,
    /// The line broke.
    #[error("the connection broke off during the sync")]
    Line(#[source] io::Error),
    /// The copy's side answered something else than it was asked.
    #[error("the VM answered out of turn")]
    Protocol,
    /// The copy's side can't go on.
    #[error("the VM cannot go on: {what}")]
    Far {
        /// What it said.
        what: String,
        /// The system's error number there, 0 for none.
        errno: i32,
    },
    /// There is no copy, or it can't be used.
    #[error("{}", copy_problem(*.marked))]
    Copy {
        /// What its marker says.
        marked: Marked,
    },
    /// The VM isn't the one of last time.
    #[error("this is not the VM that the project was last synced with")]
    Foreign,
    /// A person has to be asked.
    #[error(transparent)]
    Guard(#[from] Guard),
}

fn copy_problem(marked: Marked) -> &'static str {
    match marked {
        Marked::Ours => "the copy is there",
        Marked::Unfinished => "the copy is not complete: sending it broke off",
        Marked::Other => "the folder on the VM is the copy of another project",
        Marked::Nothing => "this project has no copy on the VM",
        Marked::NoCopy => "the folder on the VM is not empty and not a copy that boxery made",
    }
}

impl DriveError {
    /// What to do next, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Project(error) => error.hint().map(str::to_owned),
            Self::Guard(guard) => Some(guard.hint()),
            Self::Line(_) => Some("run the same again: it goes on where it was".to_owned()),
            Self::Laptop(_)
            | Self::Busy
            | Self::Protocol
            | Self::Far { .. }
            | Self::Copy { .. }
            | Self::Foreign => None,
        }
    }
}

/// Both trees as they are, and the plan that would make them the same.
struct Looked {
    base: Base,
    greeting: Greeting,
    standing: Standing,
    scan: Scan,
    laptop: Tree,
    vm: Tree,
    plan: Plan,
    index: StatIndex,
    /// Whether a sync that was broken off left something to clear up.
    has_stage: bool,
    /// The project's.
    disk: Disk,
}

/// What would be done; nothing is changed on either side.
pub fn look(line: &mut dyn Line, job: &Job<'_>) -> Result<Report, DriveError> {
    // Where nothing is known yet there is nothing that another one could change.
    let lock = if job.state.is_dir() {
        Some(lock(job.state, job.patience)?)
    } else {
        None
    };
    let looked = read(line, job, false)?;
    let guard = looked.check(job.allowed).err();
    ask(line, &Ask::Close)?;
    drop(lock);
    let mut report = looked.report(Applied::default(), Applied::default(), Vec::new());
    report.guard = guard;
    Ok(report)
}

/// Make project and copy the same.
pub fn drive(line: &mut dyn Line, job: &mut Job<'_>) -> Result<Report, DriveError> {
    let lock = lock(job.state, job.patience)?;
    let mut looked = read(line, job, job.create)?;
    looked.check(job.allowed)?;
    let moves = looked.plan.moves_base()
        || !looked.base.is_settled()
        || looked.standing != Standing::Known
        || looked.has_stage;
    if !moves {
        ask(line, &Ask::Close)?;
        return Ok(looked.report(Applied::default(), Applied::default(), Vec::new()));
    }
    let known = looked.known();
    if looked.plan.has_changes() {
        let plan = &looked.plan;
        looked
            .base
            .intend(&looked.greeting, plan)
            .map_err(DriveError::Laptop)?;
    }
    let root = Root::open(job.project.as_std_path()).map_err(DriveError::Laptop)?;
    let mut stage = Stage::open(&root).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => DriveError::Busy,
        _ => DriveError::Laptop(error),
    })?;
    let mut kept = sweep(line, &root, &stage, &known, false)?;
    let mut progress = Progress::default();
    for changes in [&looked.plan.vm, &looked.plan.laptop] {
        for (_, _, _, size) in contents(changes) {
            progress.all_files += 1;
            progress.all_bytes += size;
        }
    }
    send_all(line, &root, &looked.plan.vm, &mut progress, job.progress)?;
    take_all(
        line,
        &stage,
        &looked.plan.laptop,
        &mut progress,
        job.progress,
    )?;
    let vm = apply_far(line, &looked.plan.vm)?;
    let laptop = {
        let index = &looked.index;
        let mut applying = Applying {
            known: &|path| index.stamp(path),
            modes: looked.disk.modes,
            probe: &mut |_| Ok(()),
        };
        apply(&root, &mut stage, &looked.plan.laptop, &mut applying).map_err(DriveError::Laptop)?
    };
    settle(&root, &looked.plan.laptop).map_err(DriveError::Laptop)?;
    let epoch = looked.base.next_epoch(&looked.greeting, &looked.plan);
    if epoch != looked.greeting.epoch {
        expect_done(&ask(line, &Ask::Publish(epoch)).and_then(|()| receive(line))?)?;
    }
    let identity = looked.greeting.identity.clone();
    looked
        .base
        .commit(identity, epoch, &looked.plan, &laptop, &vm)
        .map_err(DriveError::Laptop)?;
    // Complete: what follows only clears up, and the next sync would do it too.
    kept.extend(sweep(line, &root, &stage, &known, true)?);
    stage.close(&root).map_err(DriveError::Laptop)?;
    expect_done(&ask(line, &Ask::Close).and_then(|()| receive(line))?)?;
    drop(lock);
    Ok(looked.report(laptop, vm, kept))
}

impl Looked {
    /// The guard that holds the plan back, if any.
    fn check(&self, allowed: usize) -> Result<(), Guard> {
        let base = self.base.tree();
        check(&self.plan, base, &self.laptop, &self.vm, allowed)
    }

    /// The content that no person could miss.
    fn known(&self) -> HashSet<Digest> {
        let mut known = self.base.contents();
        for tree in [&self.laptop, &self.vm] {
            let contents = tree.iter().filter_map(|(_, state)| state.content());
            known.extend(contents.map(|(digest, _)| digest));
        }
        known
    }

    fn report(self, laptop: Applied, vm: Applied, kept: Vec<(Side, String)>) -> Report {
        Report {
            plan: self.plan,
            standing: self.standing,
            laptop,
            vm,
            project: self.laptop,
            guard: None,
            unsettled: self.scan.unsettled,
            skipped: self.scan.skipped,
            kept,
        }
    }
}

/// No two syncs of one project and copy at once.
fn lock(state: &Path, patience: Duration) -> Result<File, DriveError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut folder = fs::DirBuilder::new();
    let made = folder.recursive(true).mode(0o700).create(state);
    made.map_err(DriveError::Laptop)?;
    let file = File::create(state.join("lock")).map_err(DriveError::Laptop)?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(fs::TryLockError::WouldBlock) if patience.is_zero() => return Err(DriveError::Busy),
        Err(fs::TryLockError::WouldBlock) => {}
        Err(fs::TryLockError::Error(error)) => return Err(DriveError::Laptop(error)),
    }
    // A lock can't be waited for with an end; who gets it too late lets it go.
    let (locked, waiting) = channel();
    thread::spawn(move || locked.send(file.lock().map(|()| file)).ok());
    match waiting.recv_timeout(patience) {
        Ok(locked) => locked.map_err(DriveError::Laptop),
        Err(_) => Err(DriveError::Busy),
    }
}

fn read(line: &mut dyn Line, job: &Job<'_>, create: bool) -> Result<Looked, DriveError> {
    ask(
        line,
        &Ask::Greet {
            marker: job.marker.to_owned(),
            create,
        },
    )?;
    let index_file: PathBuf = job.state.join("index");
    let index = StatIndex::read(&index_file);
    let before = index;
    let (scan, index) = Scan::read_indexed(job.project, job.scan, &before)?;
    if job.state.is_dir() && index != before {
        index.write(&index_file).map_err(DriveError::Laptop)?;
    }
    let Answer::Greeting {
        marked,
        machine,
        epoch,
        folds_case,
        folds_unicode,
    } = receive(line)?
    else {
        return Err(DriveError::Protocol);
    };
    if marked != Marked::Ours {
        return Err(DriveError::Copy { marked });
    }
    let marker = job.marker.to_owned();
    let greeting = Greeting {
        identity: Identity { marker, machine },
        epoch,
    };
    let mut base = Base::read(job.state).map_err(DriveError::Laptop)?;
    let standing = base.standing(&greeting);
    match standing {
        Standing::Known | Standing::New => {}
        Standing::Moved => base.forget(),
        Standing::Foreign => return Err(DriveError::Foreign),
    }
    let Copy {
        tree: vm,
        folders,
        has_stage,
    } = read_copy(line, &scan)?;
    let vm = vm.with_folders(&folders, base.tree());
    let has_stage = has_stage || job.project.join(STAGE).as_std_path().exists();
    let folders: Vec<EntryPath> = scan.snapshot.folders().cloned().collect();
    let laptop = Tree::of(&scan.snapshot).with_folders(&folders, base.tree());
    let disk = Disk::of(job.project.as_std_path(), &laptop);
    let laptop = disk.told(laptop, base.tree(), &vm);
    base.recover(&laptop, &vm);
    let folds = Folding {
        case: folds_case,
        unicode: folds_unicode,
    };
    let plan = reconcile(
        Trees {
            base: base.tree(),
            laptop: &laptop,
            vm: &vm,
        },
        &Terms {
            direction: job.direction,
            has_base: standing == Standing::Known,
            protected: job.protected,
            never_taken: job.never_taken,
            never_sent: job.never_sent,
            takes: job.takes,
            laptop_folds: disk.folds,
            vm_folds: folds,
        },
    );
    Ok(Looked {
        base,
        greeting,
        standing,
        scan,
        laptop,
        vm,
        plan,
        index,
        has_stage,
        disk,
    })
}

/// Clear up both stages.
fn sweep(
    line: &mut dyn Line,
    root: &Root,
    stage: &Stage,
    known: &HashSet<Digest>,
    all: bool,
) -> Result<Vec<(Side, String)>, DriveError> {
    let mut leftovers = Vec::new();
    if !all {
        ask(line, &Ask::Stage)?;
        match receive(line)? {
            Answer::Leftovers(found) => leftovers = found,
            _ => return Err(DriveError::Protocol),
        }
        leftovers.retain(|digest| known.contains(digest));
    }
    let known_there = leftovers;
    ask(
        line,
        &Ask::Sweep {
            known: known_there,
            all,
        },
    )?;
    let Answer::Kept(there) = receive(line)? else {
        return Err(DriveError::Protocol);
    };
    let here = stage
        .sweep(root, all, |digest| known.contains(digest))
        .map_err(DriveError::Laptop)?;
    let there = there.iter().map(|name| (Side::Vm, on_one_line(name)));
    let here = here.into_iter().map(|name| (Side::Laptop, name));
    Ok(there.chain(here).collect())
}

fn apply_far(line: &mut dyn Line, changes: &[Change]) -> Result<Applied, DriveError> {
    if changes.is_empty() {
        return Ok(Applied::default());
    }
    for changes in changes.chunks(BATCH) {
        ask(line, &Ask::Changes(changes.to_vec()))?;
    }
    ask(line, &Ask::Apply)?;
    let Answer::Applied { left, occupied } = receive(line)? else {
        return Err(DriveError::Protocol);
    };
    let not_done: HashSet<&EntryPath> = left.iter().map(|(path, _)| path).collect();
    let done = changes.iter().map(|change| &change.path);
    let done = done.filter(|path| !not_done.contains(path)).cloned();
    Ok(Applied {
        done: done.collect(),
        left,
        occupied,
    })
}

/// What the VM says must not move a terminal's cursor.
fn on_one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

pub(super) fn ask(line: &mut dyn Line, message: &Ask) -> Result<(), DriveError> {
    match line.send(message) {
        Ok(()) => Ok(()),
        Err(error) => {
            // It may have said why before it went.
            while let Ok(answer) = line.receive() {
                trouble(answer)?;
            }
            Err(DriveError::Line(error))
        }
    }
}

pub(super) fn receive(line: &mut dyn Line) -> Result<Answer, DriveError> {
    line.receive().map_err(DriveError::Line).and_then(trouble)
}

fn trouble(answer: Answer) -> Result<Answer, DriveError> {
    match answer {
        Answer::Trouble { errno, .. } if errno == rustix::io::Errno::AGAIN.raw_os_error() => {
            Err(DriveError::Busy)
        }
        Answer::Trouble { what, errno } => Err(DriveError::Far {
            what: on_one_line(&what),
            errno,
        }),
        answer => Ok(answer),
    }
}

fn expect_done(answer: &Answer) -> Result<(), DriveError> {
    match answer {
        Answer::Done => Ok(()),
        _ => Err(DriveError::Protocol),
    }
}

impl Report {
    /// What wasn't made on one side, with the reason.
    pub fn left(&self, side: Side) -> &[(EntryPath, Left)] {
        match side {
            Side::Laptop => &self.laptop.left,
            Side::Vm => &self.vm.left,
        }
    }
}
