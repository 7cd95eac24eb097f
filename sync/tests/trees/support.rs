//! A project on disk for the tests, and its copy.

#![expect(
    clippy::unwrap_used,
    reason = "test support: a failure here is the test's failure"
)]
#![expect(clippy::disallowed_methods, reason = "test trees need no crash safety")]

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use boxery_sync::talk::{Answer, Ask, DriveError, Job, Line, Report, drive, look, serve};
use boxery_sync::{Direction, EntryPath, Protected, Scan, ScanOptions};
use camino::Utf8Path;
use tempfile::TempDir;

/// A folder with files.
pub(crate) struct Tree {
    folder: TempDir,
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A git repository without any of the machine's own settings.
    pub(crate) fn git() -> Self {
        let tree = Self::new();
        tree.run("git", &["init", "-q", "-b", "main"]);
        tree.run("git", &["config", "core.excludesFile", "/nonexistent"]);
        tree
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn root(&self) -> &Utf8Path {
        Utf8Path::from_path(self.path()).unwrap()
    }

    pub(crate) fn at(&self, name: impl AsRef<[u8]>) -> PathBuf {
        self.path().join(OsStr::from_bytes(name.as_ref()))
    }

    pub(crate) fn write(&self, name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> &Self {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn link(&self, name: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> &Self {
        std::os::unix::fs::symlink(OsStr::from_bytes(target.as_ref()), self.at(name)).unwrap();
        self
    }

    pub(crate) fn folder(&self, name: impl AsRef<[u8]>) -> &Self {
        fs::create_dir_all(self.at(name)).unwrap();
        self
    }

    pub(crate) fn mode(&self, name: impl AsRef<[u8]>, mode: u32) -> &Self {
        fs::set_permissions(self.at(name), fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Vec<u8> {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(self.path())
            .env("HOME", "/nonexistent")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {stderr}");
        output.stdout
    }

    pub(crate) fn scan(&self) -> Scan {
        Scan::read(self.root(), &ScanOptions::default()).unwrap()
    }
}

/// The names in a scan, as they are shown.
pub(crate) fn names(scan: &Scan) -> Vec<String> {
    scan.snapshot
        .entries()
        .iter()
        .map(|entry| entry.path.to_string())
        .collect()
}

pub(crate) fn entry(name: impl AsRef<[u8]>) -> EntryPath {
    EntryPath::parse(name.as_ref()).unwrap()
}

/// A project, its copy, and what is known of their syncs.
pub(crate) struct Pair {
    pub(crate) project: Tree,
    pub(crate) copy: Tree,
    state: TempDir,
}

impl Pair {
    /// `project` with a copy that was just made.
    pub(crate) fn synced(project: Tree) -> Self {
        let pair = Self {
            project,
            copy: Tree::new(),
            state: tempfile::tempdir().unwrap(),
        };
        assert!(pair.sync().is_same());
        pair
    }

    pub(crate) fn sync(&self) -> Report {
        self.talk(|line, job| drive(line, job))
    }

    /// What differs: `>` is newer here, `<` there, `!` a conflict.
    pub(crate) fn drift(&self) -> Vec<String> {
        let report = self.talk(|line, job| look(line, job));
        let line = |sign: char, path: &EntryPath| format!("{sign} {path}");
        let plan = &report.plan;
        let here = plan.vm.iter().map(|change| line('>', &change.path));
        let there = plan.laptop.iter().map(|change| line('<', &change.path));
        let both = plan.conflicts.iter().map(|found| line('!', &found.path));
        here.chain(there).chain(both).collect()
    }

    fn talk(&self, talk: fn(&mut Inside, &mut Job<'_>) -> Result<Report, DriveError>) -> Report {
        let (asks, asked) = channel();
        let (says, answers) = channel();
        let mut line = Inside { asks, answers };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let next = || asked.recv().map_err(|_| ErrorKind::UnexpectedEof.into());
                let say = |answer: &Answer| {
                    says.send(answer.clone()).ok();
                    Ok(())
                };
                let wait = |_: Option<std::os::fd::BorrowedFd<'_>>| Ok(true);
                serve(self.copy.path(), "machine", next, say, wait).ok();
            });
            let report = talk(
                &mut line,
                &mut Job {
                    project: self.project.root(),
                    scan: &ScanOptions::default(),
                    state: self.state.path(),
                    marker: "boxery copy 1 x",
                    create: true,
                    direction: Direction::TwoWay,
                    protected: &Protected::default(),
                    never_taken: &|_| false,
                    never_sent: &|_| false,
                    takes: &[],
                    allowed: 0,
                    // A child of another test holds every open file for a moment.
                    patience: Duration::from_mins(1),
                    progress: &mut |_| {},
                },
            );
            drop(line);
            report.unwrap()
        })
    }
}

/// A line to a copy in this process.
struct Inside {
    asks: Sender<Ask>,
    answers: Receiver<Answer>,
}

impl Line for Inside {
    fn send(&mut self, ask: &Ask) -> io::Result<()> {
        let gone = |_| ErrorKind::BrokenPipe.into();
        self.asks.send(ask.clone()).map_err(gone)
    }

    fn receive(&mut self) -> io::Result<Answer> {
        let gone = |_| ErrorKind::UnexpectedEof.into();
        self.answers.recv().map_err(gone)
    }
}
