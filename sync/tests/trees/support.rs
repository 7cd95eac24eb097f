//! A project on disk for the tests, and a copy made by the real `tar`.

#![expect(
    clippy::unwrap_used,
    reason = "test support: a failure here is the test's failure"
)]
#![expect(clippy::disallowed_methods, reason = "test trees need no crash safety")]

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use boxery_sync::{CopyTree, Drift, DriftClass, EntryPath, Scan, ScanOptions, SyncError, read_tar};
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

    /// This tree as the copy of `project`, packed by the real `tar`.
    pub(crate) fn read_as_copy_of(&self, project: &Scan) -> Result<CopyTree, SyncError> {
        read_tar(&self.run("tar", &["-cf", "-", "."])[..], &project.rules)
    }

    /// Unpack `stream` here with the real `tar`.
    pub(crate) fn unpack(&self, stream: &[u8]) -> &Self {
        let mut tar = Command::new("tar")
            .args(["-xmof", "-"])
            .current_dir(self.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        tar.stdin.take().unwrap().write_all(stream).unwrap();
        assert!(tar.wait().unwrap().success());
        self
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

/// What differs between a project and its copy, shown.
pub(crate) fn drift(project: &Tree, copy: &Tree) -> Vec<(String, DriftClass)> {
    let scan = project.scan();
    let tree = copy.read_as_copy_of(&scan).unwrap();
    let drift = Drift::between(&scan.snapshot, &tree.snapshot);
    drift
        .paths
        .iter()
        .map(|(path, class)| (path.to_string(), *class))
        .collect()
}

pub(crate) fn entry(name: impl AsRef<[u8]>) -> EntryPath {
    EntryPath::parse(name.as_ref()).unwrap()
}

/// The project as a tar stream.
pub(crate) fn seed(project: &Tree) -> Vec<u8> {
    let mut stream = Vec::new();
    boxery_sync::write_seed(&project.scan(), 1_000_000_000, &mut stream, |_| {}).unwrap();
    stream
}

/// A copy of `project`, made as `vm seed` makes it.
pub(crate) fn seeded(project: &Tree) -> Tree {
    let copy = Tree::new();
    copy.unpack(&seed(project));
    copy
}
