//! The first copy: the project, sent once as a tar stream.

use std::io::PipeWriter;
use std::sync::Arc;

use boxery_pin::{PathMap, VmName};
use boxery_remote::{RunExit, RunIo, RunRequest, Way};
use boxery_sync::{Scan, SeedReport, SyncError, write_seed};

use super::known;
use super::rules::{marker, scan_options};
use super::state::sync_failure;
use super::streams::{self, Said};
use crate::app::App;
use crate::env;
use crate::error::Failure;
use crate::reach;
use crate::ui::Ui;

/// Why the project can't be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SeedError {
    /// The folder is the copy of something else.
    #[error("`{folder}` on {vm} is the copy of another project")]
    AnotherCopy {
        /// The VM.
        vm: VmName,
        /// The folder.
        folder: String,
    },
    /// The folder has files in it that boxery didn't send.
    #[error("`{folder}` on {vm} is not empty and not a copy that boxery made")]
    NotEmpty {
        /// The VM.
        vm: VmName,
        /// The folder.
        folder: String,
    },
    /// The copy is there already.
    #[error("this project has a copy on {vm} already")]
    Exists {
        /// The VM.
        vm: VmName,
    },
    /// The copy lies where it was seen before the configuration changed.
    #[error(
        "the copy of this project on {vm} lies in `{other}`, and its `paths` now want it in `{folder}`"
    )]
    Elsewhere {
        /// The VM.
        vm: VmName,
        /// Where it lies.
        other: String,
        /// Where it belongs.
        folder: String,
    },
    /// There is nothing to be moved.
    #[error("`{other}` on {vm} is no copy of this project")]
    NothingThere {
        /// The VM.
        vm: VmName,
        /// Where it was looked for.
        other: String,
    },
    /// The folder is a link.
    #[error("`{folder}` on {vm} is a symbolic link")]
    Link {
        /// The VM.
        vm: VmName,
        /// The folder.
        folder: String,
    },
    /// The folder can't be made or written.
    #[error("{vm} cannot make `{folder}`: {problem}")]
    Folder {
        /// The VM.
        vm: VmName,
        /// The folder.
        folder: String,
        /// What it said.
        problem: String,
    },
    /// The VM's disk is full.
    #[error("{vm} has no space left for the copy")]
    NoSpace {
        /// The VM.
        vm: VmName,
    },
    /// The VM's tar gave up.
    #[error("{vm} cannot unpack the project: {problem}")]
    Unpack {
        /// The VM.
        vm: VmName,
        /// What it said.
        problem: String,
    },
}

impl SeedError {
    fn hint(&self, map: &PathMap) -> Option<String> {
        match self {
            Self::AnotherCopy { .. } | Self::NotEmpty { .. } | Self::Link { .. } => {
                let other = if map.copy.as_str() == map.project.as_str() {
                    "set the VM's `paths = \"mapped\"` in the configuration"
                } else {
                    "give the VM another `--dir`"
                };
                Some(format!("move that folder away on the VM, or {other}"))
            }
            Self::Exists { vm } => Some(format!(
                "`boxery drift {vm}` tells what differs; `boxery vm seed {vm} --over` sends the project over it"
            )),
            Self::Elsewhere { vm, .. } => Some(format!(
                "`boxery vm seed {vm} --move` moves it there, with all that is in it"
            )),
            Self::NothingThere { vm, .. } => {
                Some(format!("send the project: `boxery vm seed {vm}`"))
            }
            Self::NoSpace { vm } => Some(format!(
                "free some there; then `boxery vm seed {vm}` goes on from the start in `{}`",
                map.folder
            )),
            Self::Folder { .. } | Self::Unpack { .. } => None,
        }
    }
}

/// What the user said of a copy that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeedOptions {
    /// Refuse it.
    Once,
    /// Send the project over it.
    Over,
    /// Send nothing: take what lies where the copy was seen before.
    Move,
}

/// What was sent, and what wasn't.
#[derive(Debug)]
pub(crate) struct Seeded {
    /// What was sent.
    pub(crate) report: SeedReport,
    /// Sockets, FIFOs and devices, which stay here.
    pub(crate) skipped: Vec<String>,
}

/// Send the project to its folder on the VM at the end of `way`. `other` is where its
/// copy would lie under other `paths`, empty if that is the same folder.
pub(crate) async fn seed(
    app: &App,
    vm: &VmName,
    way: &Way,
    map: &PathMap,
    other: &str,
    options: SeedOptions,
) -> Result<Seeded, Failure> {
    let (project, rules) = (map.project.clone(), scan_options(app));
    let scan = tokio::task::spawn_blocking(move || Scan::read(&project, &rules));
    let scan = Arc::new(scan.await?.map_err(sync_failure)?);
    let over = match options {
        SeedOptions::Once => "once",
        SeedOptions::Over => "over",
        SeedOptions::Move => "move",
    };
    let words = [
        "sh",
        "-c",
        include_str!("seed.sh"),
        "sh",
        map.folder.as_str(),
        &marker(app, map)?,
        over,
        other,
    ];
    let request = RunRequest {
        argv: words.iter().map(|word| word.as_bytes().to_vec()).collect(),
        ..RunRequest::default()
    };
    let (stdin, tree) = streams::stdin()?;
    let (stdout, silence) = streams::stdout()?;
    let (stderr, said) = streams::stdout()?;
    let io = RunIo {
        stdin: Some(stdin),
        stdout,
        stderr,
    };
    let (sending, ui) = (Arc::clone(&scan), app.ui);
    let (end, sent, said, _) = tokio::join!(
        boxery_remote::run(way, &request, io, std::future::pending()),
        tokio::task::spawn_blocking(move || match options {
            SeedOptions::Once | SeedOptions::Over => send(&sending, tree, ui),
            SeedOptions::Move => Ok(SeedReport::default()),
        }),
        tokio::task::spawn_blocking(move || Said::read(said)),
        tokio::task::spawn_blocking(move || Said::read(silence)),
    );
    app.ui.progress(None);
    let (end, sent, said) = (
        end.map_err(|error| reach::failure(vm, error))?,
        sent?,
        said?,
    );
    let (vm, folder) = (vm.clone(), map.folder.to_string());
    let error = match end.exit {
        RunExit::Code(0) => {
            known::note(app, &vm, map)?;
            let skipped = scan.skipped.iter().map(ToString::to_string).collect();
            return Ok(Seeded {
                report: sent.map_err(sync_failure)?,
                skipped,
            });
        }
        RunExit::Code(80) => SeedError::NothingThere {
            vm,
            other: other.to_owned(),
        },
        RunExit::Code(88) => SeedError::Elsewhere {
            vm,
            other: other.to_owned(),
            folder,
        },
        RunExit::Code(81) => SeedError::AnotherCopy { vm, folder },
        RunExit::Code(82) => SeedError::NotEmpty { vm, folder },
        RunExit::Code(84) => SeedError::Exists { vm },
        RunExit::Code(87) => SeedError::Link { vm, folder },
        RunExit::Code(_) if said.names_full_disk() => SeedError::NoSpace { vm },
        RunExit::Code(83 | 85) => SeedError::Folder {
            vm,
            folder,
            problem: said.line(),
        },
        // A file here that can't be read ends the stream early, and is the reason.
        RunExit::Code(_) if matches!(sent, Err(SyncError::Read { .. })) => {
            return Err(sent
                .err()
                .map_or_else(|| Failure::from(said.line()), sync_failure));
        }
        RunExit::Code(_) | RunExit::TimedOut | RunExit::Cancelled(_) | RunExit::OutputClosed => {
            SeedError::Unpack {
                vm,
                problem: said.line(),
            }
        }
    };
    let hint = error.hint(map);
    Err(Failure::from(error).hint_if(hint))
}

fn send(scan: &Scan, to: PipeWriter, ui: Ui) -> Result<SeedReport, SyncError> {
    let total = scan.snapshot.bytes().max(1);
    let mut shown = None;
    write_seed(scan, env::now(), to, |bytes| {
        let percent = bytes * 100 / total;
        if shown != Some(percent) {
            shown = Some(percent);
            ui.progress(Some(&bar(bytes, total)));
        }
    })
}

/// `[#####.....]  50 %  1.2 of 2.4 MB`.
fn bar(bytes: u64, total: u64) -> String {
    let filled = usize::try_from(bytes * 30 / total).unwrap_or(30).min(30);
    format!(
        "[{}{}] {:3} %  {} of {}",
        "#".repeat(filled),
        ".".repeat(30 - filled),
        (bytes * 100 / total).min(100),
        size(bytes),
        size(total)
    )
}

/// Bytes in words: `17 B`, `4.2 kB`, `1.3 GB`.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["kB", "MB", "GB", "TB"];
    let (mut whole, mut tenth, mut unit) = (bytes, 0, None);
    for name in units {
        if whole < 1000 {
            break;
        }
        (whole, tenth, unit) = (whole / 1000, whole % 1000 / 100, Some(name));
    }
    match unit {
        None => format!("{whole} B"),
        Some(unit) => format!("{whole}.{tenth} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, "0 B")]
    #[case(999, "999 B")]
    #[case(1000, "1.0 kB")]
    #[case(1_999_999, "1.9 MB")]
    #[case(2_345_000_000, "2.3 GB")]
    fn sizes_are_told_in_words(#[case] bytes: u64, #[case] want: &str) {
        assert_eq!(size(bytes), want);
    }

    #[test]
    fn the_bar_fills_up() {
        assert_eq!(
            bar(50, 100),
            "[###############...............]  50 %  50 B of 100 B"
        );
        assert_eq!(
            bar(100, 100),
            format!("[{}] 100 %  100 B of 100 B", "#".repeat(30))
        );
    }
}
