//! Objects from one repository to the other: `git push` and `git fetch` here, their
//! counterpart in a run on the VM, and the bytes between them over our own pipe.
//!
//! git's `fd` transport (git-remote-fd(1)) speaks over descriptors that it inherits, so
//! neither the user's configuration nor another program has a part in it.

use std::process::Stdio;

use boxery_pin::VmName;
use boxery_remote::{RunExit, RunIo, Way};
use camino::Utf8Path;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use super::look::{QUIET, request};
use crate::error::Failure;
use crate::reach;

/// References in one push, all of which move or none.
const BATCH: usize = 1000;

/// Old commits that many repositories hold and no git minds. What could lead out of a
/// repository or into a program stays an error.
const HARMLESS: &[&str] = &[
    "badTimezone",
    "badDate",
    "badEmail",
    "missingEmail",
    "missingNameBeforeEmail",
    "missingSpaceBeforeDate",
    "missingSpaceBeforeEmail",
    "missingTaggerEntry",
    "multipleAuthors",
    "zeroPaddedDate",
    "zeroPaddedFilemode",
];

/// Why nothing was carried.
#[derive(Debug, thiserror::Error)]
pub(super) enum CarryError {
    /// Something moved on the VM meanwhile.
    #[error("the VM's branches moved meanwhile")]
    Moved,
    /// Only some of it went through.
    #[error("the VM's git took only a part")]
    Partly,
    /// One of the two gits refuses.
    #[error("{0}")]
    Refused(String),
    /// The VM can't be reached.
    #[error("{}", .0.one_line())]
    Reach(Failure),
}

/// One reference of the VM's that gets a new value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Push {
    /// Its name there.
    pub(super) name: String,
    /// What it is there: nothing else is replaced. `None` replaces anything.
    pub(super) lease: Option<String>,
    /// What it shall be; empty deletes it.
    pub(super) new: String,
}

/// The two ends of a transfer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends<'a> {
    /// The project.
    pub(super) project: &'a Utf8Path,
    /// The way to the VM.
    pub(super) way: &'a Way,
    /// Its name.
    pub(super) vm: &'a VmName,
    /// The copy there.
    pub(super) copy: &'a str,
}

/// Push: in each batch all of them move or none.
pub(super) async fn push(ends: Ends<'_>, pushes: &[Push]) -> Result<(), CarryError> {
    let mut theirs = format!(
        "{QUIET}\ncd -- \"$1\" && quiet -c receive.denyCurrentBranch=ignore \
         -c receive.denyDeleteCurrent=ignore -c receive.denyDeletes=false \
         -c receive.denyNonFastForwards=false -c receive.shallowUpdate=true \
         -c receive.autogc=false -c receive.fsckObjects=true"
    );
    theirs.extend(
        HARMLESS
            .iter()
            .map(|what| format!(" -c receive.fsck.{what}=ignore")),
    );
    theirs.push_str(" receive-pack .");
    for batch in pushes.chunks(BATCH) {
        match push_batch(ends, batch, &theirs).await {
            // The first push from a shallow repository brings its boundary with the first
            // reference and fails the others (git 2.47); one by one they go through.
            Err(CarryError::Partly) => {
                for one in batch.chunks(1) {
                    push_batch(ends, one, &theirs).await?;
                }
            }
            ended => ended?,
        }
    }
    Ok(())
}

async fn push_batch(ends: Ends<'_>, batch: &[Push], theirs: &str) -> Result<(), CarryError> {
    let mut words: Vec<String> = [
        "push",
        "--porcelain",
        "--atomic",
        "--no-verify",
        "--no-signed",
        "--no-follow-tags",
        "--recurse-submodules=no",
        "--no-progress",
    ]
    .map(str::to_owned)
    .to_vec();
    for push in batch {
        if let Some(lease) = &push.lease {
            words.push(format!("--force-with-lease={}:{lease}", push.name));
        }
    }
    words.push("fd::3,4".to_owned());
    for push in batch {
        let force = if push.lease.is_none() { "+" } else { "" };
        words.push(format!("{force}{}:{}", push.new, push.name));
    }
    carry(ends, &words, theirs).await
}

/// Fetch: each a reference of the VM and where it is put here.
pub(super) async fn fetch(ends: Ends<'_>, wanted: &[(String, String)]) -> Result<(), CarryError> {
    let theirs = format!("{QUIET}\ncd -- \"$1\" && quiet upload-pack .");
    let mut words: Vec<String> = Vec::new();
    for what in HARMLESS {
        words.extend(["-c".to_owned(), format!("fetch.fsck.{what}=ignore")]);
    }
    let options = [
        "-c",
        "fetch.fsckObjects=true",
        "-c",
        "fetch.writeCommitGraph=false",
        "-c",
        "fetch.prune=false",
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-write-fetch-head",
        "--no-recurse-submodules",
        "--no-auto-gc",
        "--no-progress",
        "--refmap=",
        "fd::3,4",
    ];
    words.extend(options.map(str::to_owned));
    for batch in wanted.chunks(BATCH) {
        let mut words = words.clone();
        words.extend(batch.iter().map(|(from, to)| format!("+{from}:{to}")));
        carry(ends, &words, &theirs).await?;
    }
    Ok(())
}

/// Run git with `words` here and the script `theirs` there, joined to each other.
async fn carry(ends: Ends<'_>, words: &[String], theirs: &str) -> Result<(), CarryError> {
    let local = |error: std::io::Error| CarryError::Refused(error.to_string());
    // Git's own stdin and stdout are the pipes of its transport helper.
    let ours = format!("{QUIET}\ncd -- \"$1\" && shift && quiet \"$@\" 3<&0 4>&1 0</dev/null 1>&2");
    let mut git = Command::new("sh")
        .args(["-c", &ours, "sh", ends.project.as_str()])
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(local)?;
    let (Some(to_git), Some(from_git), Some(mut said_by_git)) =
        (git.stdin.take(), git.stdout.take(), git.stderr.take())
    else {
        return Err(CarryError::Refused("git has no pipes".to_owned()));
    };
    let (said_by_vm, mut vm_says) = tokio::io::duplex(1 << 16);
    let io = RunIo {
        stdin: Some(Box::pin(from_git)),
        stdout: Box::pin(to_git),
        stderr: Box::pin(said_by_vm),
    };
    let request = request(theirs, &[ends.copy]);
    let (mut here, mut there) = (Vec::new(), Vec::new());
    let (end, ended, _, _) = tokio::join!(
        boxery_remote::run(ends.way, &request, io, std::future::pending()),
        git.wait(),
        said_by_git.read_to_end(&mut here),
        vm_says.read_to_end(&mut there),
    );
    let end = end.map_err(|error| CarryError::Reach(reach::failure(ends.vm, error)))?;
    if ended.map_err(local)?.success() {
        return Ok(());
    }
    let (here, there) = (
        String::from_utf8_lossy(&here),
        String::from_utf8_lossy(&there),
    );
    let moved = [
        "(stale info)",
        "failed to update ref",
        "cannot lock ref",
        "fetch first",
    ];
    if moved.iter().any(|words| here.contains(words)) {
        return Err(CarryError::Moved);
    }
    if here.contains("(remote failed to report status)") {
        return Err(CarryError::Partly);
    }
    let line = telling(&here)
        .or_else(|| telling(&there))
        .unwrap_or("it gave no reason");
    let line = match end.exit {
        RunExit::Code(127) => format!("the VM's git: {}", telling(&there).unwrap_or(line)),
        RunExit::Code(_) | RunExit::TimedOut | RunExit::Cancelled(_) | RunExit::OutputClosed => {
            line.to_owned()
        }
    };
    Err(CarryError::Refused(line))
}

/// The line that says why: the VM's reason, else a refused reference, else the first
/// complaint.
fn telling(said: &str) -> Option<&str> {
    let find = |mark: &str| said.lines().find(|line| line.contains(mark));
    find("remote: error: ")
        .or_else(|| find("remote: fatal: "))
        .or_else(|| find("fatal: "))
        .or_else(|| find("!\t"))
        .or_else(|| find("error: "))
        .or_else(|| said.lines().find(|line| !line.trim().is_empty()))
        .map(str::trim)
}
