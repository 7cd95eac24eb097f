//! The copy as it is, compared with the project.

use std::io::{self, BufRead as _, BufReader, PipeReader, PipeWriter, Write as _};
use std::sync::Arc;

use boxery_pin::{PathMap, VmName};
use boxery_remote::{RunExit, RunIo, RunRequest, Way};
use boxery_sync::{CopyTree, Drift, EntryPath, Rules, Scan, Sieve, SyncError, read_tar};

use super::known;
use super::rules::{marker, scan_options};
use super::streams::{self, Said};
use crate::app::App;
use crate::error::Failure;
use crate::reach;

/// Why project and copy can't be compared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyError {
    /// There is no such folder.
    #[error("this project has no copy on {vm}")]
    Absent {
        /// The VM.
        vm: VmName,
    },
    /// The folder is there and isn't a copy.
    #[error("`{folder}` on {vm} is not a copy that boxery made")]
    NotACopy {
        /// The VM.
        vm: VmName,
        /// The folder.
        folder: String,
    },
    /// The folder is the copy of something else.
    #[error("`{folder}` on {vm} is the copy of another project")]
    AnotherCopy {
        /// The VM.
        vm: VmName,
        /// The folder.
        folder: String,
    },
    /// Sending it broke off.
    #[error("the copy on {vm} is not complete: sending it broke off")]
    Unfinished {
        /// The VM.
        vm: VmName,
    },
    /// The VM can't list or pack it.
    #[error("{vm} cannot read the copy: {problem}")]
    Remote {
        /// The VM.
        vm: VmName,
        /// What it said.
        problem: String,
    },
}

impl CopyError {
    /// What to do next.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Absent { vm } | Self::Unfinished { vm } => {
                Some(format!("send the project: `boxery vm seed {vm}`"))
            }
            Self::NotACopy { .. } | Self::AnotherCopy { .. } => {
                Some("move that folder away on the VM, or give the VM another `--dir`".to_owned())
            }
            Self::Remote { .. } => None,
        }
    }
}

/// Project and copy, compared.
#[derive(Debug)]
pub(crate) struct Comparison {
    /// What differs.
    pub(crate) drift: Drift,
    /// Files of the project that changed while they were read, and what the VM said
    /// of its own.
    pub(crate) unsettled: Vec<String>,
    /// How many files and links the project has.
    pub(crate) files: usize,
}

/// How often a copy is read in which files come and go meanwhile.
const ATTEMPTS: usize = 2;

/// Compare the project with its copy on the VM at the end of `way`.
pub(crate) async fn compare(
    app: &App,
    vm: &VmName,
    way: &Way,
    map: &PathMap,
) -> Result<Comparison, Failure> {
    let (project, options) = (map.project.clone(), scan_options(app));
    let scan = tokio::task::spawn_blocking(move || Scan::read(&project, &options));
    let scan = Arc::new(scan.await?.map_err(sync_failure)?);
    let marker = marker(app, map)?;
    let mut last = read_copy(way, vm, map, &marker, &scan).await?;
    for _ in 1..ATTEMPTS {
        if matches!(last, Err(CopyError::Remote { .. })) {
            last = read_copy(way, vm, map, &marker, &scan).await?;
        }
    }
    let (copy, complaint) = last.map_err(|error| {
        let hint = error.hint();
        Failure::from(error).hint_if(hint)
    })?;
    // A copy that can't be noted is only not listed as this laptop's.
    known::note(app, vm, map).ok();
    let mut unsettled: Vec<String> = scan.unsettled.iter().map(ToString::to_string).collect();
    unsettled.extend(complaint);
    Ok(Comparison {
        drift: Drift::between(&scan.snapshot, &copy.snapshot),
        unsettled,
        files: scan.snapshot.files(),
    })
}

/// An error of the `sync` crate with its hint.
pub(crate) fn sync_failure(error: SyncError) -> Failure {
    let hint = error.hint();
    Failure::from(error).hint_if(hint)
}

/// What stands before a run's output when project and copy aren't the same, or when
/// that can't be told; one line, without `boxery: `.
pub(crate) async fn drift_warning(
    app: &App,
    vm: &VmName,
    way: &Way,
    map: &PathMap,
) -> Option<String> {
    match compare(app, vm, way, map).await {
        Ok(found) => {
            let changing = (!found.unsettled.is_empty()).then(|| {
                format!(
                    "changed while it was compared: {}",
                    found.unsettled.join(", ")
                )
            });
            match (found.drift.is_empty(), changing) {
                (true, None) => None,
                (true, Some(changing)) => Some(changing),
                (false, None) => Some(found.drift.summary(vm.as_str())),
                (false, Some(changing)) => {
                    Some(format!("{}; {changing}", found.drift.summary(vm.as_str())))
                }
            }
        }
        Err(failure) => {
            let lines = failure.render();
            let mut parts = lines
                .lines()
                .filter_map(|line| line.split_once(": "))
                .map(|(_, text)| text);
            let what = parts.next().unwrap_or_default();
            let rest: Vec<&str> = parts.collect();
            let more = if rest.is_empty() {
                String::new()
            } else {
                format!(" ({})", rest.join("; "))
            };
            Some(format!(
                "can't tell whether the copy on {vm} is the project as it is now: {what}{more}"
            ))
        }
    }
}

/// The copy, and what the VM said of files that changed under its hands.
type Reading = (CopyTree, Option<String>);

/// Read the copy under the project's rules. The outer error is the connection's or
/// the laptop's own.
async fn read_copy(
    way: &Way,
    vm: &VmName,
    map: &PathMap,
    marker: &str,
    scan: &Arc<Scan>,
) -> Result<Result<Reading, CopyError>, Failure> {
    let words = [
        "sh",
        "-c",
        include_str!("list.sh"),
        "sh",
        map.folder.as_str(),
        marker,
    ];
    let request = RunRequest {
        argv: words.iter().map(|word| word.as_bytes().to_vec()).collect(),
        ..RunRequest::default()
    };
    let (stdin, names) = streams::stdin()?;
    let (stdout, tree) = streams::stdout()?;
    let (stderr, said) = streams::stdout()?;
    let io = RunIo {
        stdin: Some(stdin),
        stdout,
        stderr,
    };
    let scan = Arc::clone(scan);
    let (end, tree, said) = tokio::join!(
        boxery_remote::run(way, &request, io, std::future::pending()),
        tokio::task::spawn_blocking(move || read_tree(tree, names, &scan.rules)),
        tokio::task::spawn_blocking(move || Said::read(said)),
    );
    let (end, tree, said) = (
        end.map_err(|error| reach::failure(vm, error))?,
        tree?,
        said?.line(),
    );
    let folder = || map.folder.to_string();
    let problem = |problem: String| CopyError::Remote {
        vm: vm.clone(),
        problem,
    };
    Ok(match end.exit {
        RunExit::Code(80) => Err(CopyError::Absent { vm: vm.clone() }),
        RunExit::Code(81) => Err(CopyError::NotACopy {
            vm: vm.clone(),
            folder: folder(),
        }),
        RunExit::Code(82) => Err(CopyError::AnotherCopy {
            vm: vm.clone(),
            folder: folder(),
        }),
        RunExit::Code(83) => Err(CopyError::Unfinished { vm: vm.clone() }),
        // GNU tar: 1 is "some files differ", which is that they changed meanwhile.
        RunExit::Code(code @ (0 | 1)) => match tree {
            Ok(tree) => Ok((tree, (code == 1).then_some(said))),
            Err(error) if said.is_empty() => Err(problem(error.to_string())),
            Err(error) => Err(problem(format!("{error}: {said}"))),
        },
        RunExit::Code(code) => Err(problem(format!("{said} (exit status {code})"))),
        RunExit::TimedOut | RunExit::Cancelled(_) | RunExit::OutputClosed => {
            Err(problem(match tree {
                Ok(_) => "it was ended".to_owned(),
                Err(error) => error.to_string(),
            }))
        }
    })
}

/// The copy's names come first; those that may count go back, and then the tree of
/// them comes.
fn read_tree(
    stdout: PipeReader,
    mut names: PipeWriter,
    rules: &Rules,
) -> Result<CopyTree, SyncError> {
    let mut stdout = BufReader::with_capacity(128 * 1024, stdout);
    let mut sieve = Sieve::new(rules);
    let mut wanted = Vec::new();
    let mut name = Vec::new();
    loop {
        name.clear();
        stdout.read_until(0, &mut name).map_err(SyncError::Stream)?;
        if name.pop() != Some(0) {
            return Err(SyncError::Truncated);
        }
        if name.is_empty() {
            break;
        }
        let inner = name.strip_prefix(b"./").and_then(EntryPath::parse);
        if inner.is_some_and(|path| sieve.may_count(&path)) {
            wanted.extend_from_slice(&name);
            wanted.push(0);
        }
    }
    std::thread::scope(|scope| {
        // While tar still reads names it may already write.
        let feeding = scope.spawn(move || names.write_all(&wanted));
        let tree = read_tar(stdout, rules);
        match feeding.join() {
            // A tar that reads no list closes its end, and its stream tells all.
            Ok(Ok(())) => tree,
            Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => tree,
            Ok(Err(error)) => Err(SyncError::Stream(error)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
