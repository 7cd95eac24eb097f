//! What only git knows: which files are tracked, and the user's own excludes.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use camino::Utf8Path;

use crate::{EntryPath, SyncError};

/// Variables that would make git look at another repository than the folder's.
const MISLEADING: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_LITERAL_PATHSPECS",
];

/// What git says about one project.
#[derive(Debug, Default)]
pub(crate) struct GitFacts {
    /// The files in the index, submodules' included.
    pub(crate) tracked: HashSet<EntryPath>,
    /// `info/exclude` of the repository.
    pub(crate) exclude: Option<PathBuf>,
    /// `core.excludesFile`, when it is set.
    pub(crate) user_excludes: Option<PathBuf>,
    /// `core.ignoreCase`.
    pub(crate) ignore_case: bool,
}

/// Ask git about the repository that `root` lies in.
pub(crate) fn read_facts(root: &Utf8Path) -> Result<GitFacts, SyncError> {
    let listed = git(
        root,
        &["ls-files", "-z", "--cached", "--recurse-submodules"],
    )?;
    let tracked = listed
        .split(|b| *b == 0)
        .filter_map(EntryPath::parse)
        .collect::<HashSet<EntryPath>>();
    let exclude = git(root, &["rev-parse", "--git-path", "info/exclude"])?;
    let exclude = OsStr::from_bytes(exclude.strip_suffix(b"\n").unwrap_or(&exclude));
    let mut facts = GitFacts {
        tracked,
        exclude: Some(root.as_std_path().join(exclude)),
        user_excludes: None,
        ignore_case: false,
    };
    for setting in settings(root)?.split(|b| *b == 0) {
        let mut halves = setting.splitn(2, |b| *b == b'\n');
        match (halves.next(), halves.next()) {
            (Some(b"core.excludesfile"), Some(path)) => {
                facts.user_excludes = Some(PathBuf::from(OsStr::from_bytes(path)));
            }
            (Some(b"core.ignorecase"), value) => {
                facts.ignore_case = value.is_none_or(|v| v.eq_ignore_ascii_case(b"true"));
            }
            _ => {}
        }
    }
    Ok(facts)
}

/// The two settings that change what is ignored; none set is exit status 1.
fn settings(root: &Utf8Path) -> Result<Vec<u8>, SyncError> {
    let output = start(
        root,
        &[
            "config",
            "-z",
            "--type=path",
            "--get-regexp",
            "^core\\.(excludesfile|ignorecase)$",
        ],
    )?;
    match output.status.code() {
        Some(0 | 1) => Ok(output.stdout),
        _ => Err(refused(root, &output)),
    }
}

fn git(root: &Utf8Path, arguments: &[&str]) -> Result<Vec<u8>, SyncError> {
    let output = start(root, arguments)?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(refused(root, &output))
    }
}

pub(crate) fn start(root: &Utf8Path, arguments: &[&str]) -> Result<Output, SyncError> {
    let mut command = Command::new("git");
    for name in MISLEADING {
        command.env_remove(name);
    }
    command
        .args(["-c", "core.fsmonitor=false", "-c", "core.quotePath=false"])
        .args(arguments)
        .current_dir(root)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|source| SyncError::GitMissing {
            root: root.to_owned(),
            source,
        })
}

pub(crate) fn refused(root: &Utf8Path, output: &Output) -> SyncError {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let problem = stderr
        .lines()
        .next()
        .unwrap_or("it gave no reason")
        .to_owned();
    SyncError::Git {
        root: root.to_owned(),
        problem,
    }
}
