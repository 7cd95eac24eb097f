//! Syncs with the real helper, and what a kill in the middle leaves.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of a test: what can't be had fails it"
)]

use std::fs;
use std::io;
use std::path::Path;

use boxery_sync::talk::{Answer, Ask, DriveError, Job, Line, Report, drive};
use boxery_sync::{Direction, Protected, STAGE, ScanOptions};
use boxery_wire::{Blob, Reply, Request};
use camino::Utf8PathBuf;
use rstest::rstest;
use tempfile::TempDir;
use tokio::runtime::Handle;

use crate::support::{Helper, Home, Talk, eventually};

/// The line of a sync over a helper's stream; `stop` is called before each message.
struct Over {
    talk: Talk,
    runtime: Handle,
    stop: Box<dyn FnMut(&Ask) + Send>,
}

impl Line for Over {
    fn send(&mut self, ask: &Ask) -> io::Result<()> {
        (self.stop)(ask);
        let sent = self.runtime.block_on(self.talk.stream.send_message(ask));
        sent.map_err(io::Error::other)
    }

    fn receive(&mut self) -> io::Result<Answer> {
        let answer = self.runtime.block_on(self.talk.next());
        answer.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

struct Scene {
    home: Home,
    laptop: TempDir,
    state: TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = || tempfile::tempdir().unwrap();
        Self {
            home: Home::new(),
            laptop: folder(),
            state: folder(),
        }
    }

    /// One sync over `helper`.
    async fn sync(
        &self,
        helper: &Helper,
        stop: impl FnMut(&Ask) + Send + 'static,
    ) -> Result<Report, DriveError> {
        let copy = Blob::from("copy");
        let (reply, talk) = helper.ask(&Request::Sync { copy }).await;
        assert_eq!(reply, Reply::Started);
        let mut line = Over {
            talk,
            runtime: Handle::current(),
            stop: Box::new(stop),
        };
        let project = Utf8PathBuf::try_from(self.laptop.path().to_owned()).unwrap();
        let state = self.state.path().to_owned();
        let synced = tokio::task::spawn_blocking(move || {
            drive(
                &mut line,
                &mut Job {
                    project: &project,
                    scan: &ScanOptions::default(),
                    state: &state,
                    marker: "boxery copy 1 x",
                    create: true,
                    direction: Direction::TwoWay,
                    protected: &Protected::default(),
                    never_taken: &|_| false,
                    never_sent: &|_| false,
                    takes: &[],
                    allowed: 0,
                    patience: std::time::Duration::ZERO,
                    progress: &mut |_| {},
                },
            )
        });
        synced.await.unwrap()
    }

    fn here(&self, name: &str, content: &[u8]) {
        write(&self.laptop.path().join(name), content);
    }

    fn there(&self, name: &str, content: &[u8]) {
        write(&self.home.path().join("copy").join(name), content);
    }

    fn is_same(&self, names: &[&str]) -> bool {
        let copy = self.home.path().join("copy");
        let both = |name: &&str| {
            let here = fs::read(self.laptop.path().join(name)).unwrap();
            here == fs::read(copy.join(name)).unwrap()
        };
        names.iter().all(both)
    }
}

fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = fs::File::create(path).unwrap();
    io::Write::write_all(&mut file, content).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_comes_to_the_helper_and_its_work_comes_back() {
    let scene = Scene::new();
    let helper = scene.home.connect().await;
    scene.here("src/a.rs", b"1");
    scene.here("large", &vec![7; 5 << 20]);
    assert!(scene.sync(&helper, |_| {}).await.unwrap().is_same());
    scene.there("made/b", b"2");
    scene.there("src/a.rs", b"3");
    assert!(scene.sync(&helper, |_| {}).await.unwrap().is_same());
    assert!(scene.is_same(&["src/a.rs", "large", "made/b"]));
    let report = scene.sync(&helper, |_| {}).await.unwrap();
    assert!(report.plan.is_same(), "{report:?}");
}

/// The process of the copy's side is killed at a message of each kind.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_helper_leaves_what_the_next_sync_completes(
    #[values("List", "Stage", "Put", "Data", "Get", "Apply", "Publish", "Close")] at: &'static str,
) {
    let scene = Scene::new();
    let helper = scene.home.connect().await;
    scene.here("a", b"1");
    scene.here("gone", b"1");
    scene.sync(&helper, |_| {}).await.unwrap();
    scene.here("a", b"2");
    scene.here("large", &vec![7; 5 << 20]);
    fs::remove_file(scene.laptop.path().join("gone")).unwrap();
    scene.there("made", b"2");
    let home = scene.home.path().to_owned();
    let synced = scene
        .sync(&helper, move |ask| {
            if format!("{ask:?}").starts_with(at) {
                kill_copies(&home);
            }
        })
        .await;
    assert!(synced.is_err(), "{synced:?}");
    eventually("the copy's side is gone", || {
        copies(scene.home.path()).is_empty()
    })
    .await;
    let report = scene.sync(&helper, |_| {}).await.unwrap();
    assert!(report.is_same(), "{report:?}");
    assert!(scene.is_same(&["a", "large", "made"]));
    assert!(!scene.home.path().join("copy/gone").exists());
    assert!(!scene.home.path().join("copy").join(STAGE).exists());
}

/// The processes that copy for a helper of this home.
fn copies(home: &Path) -> Vec<i32> {
    let variable = [b"HOME=", home.as_os_str().as_encoded_bytes()].concat();
    let has = |path: &Path, what: &[u8]| {
        let bytes = fs::read(path).unwrap_or_default();
        bytes.split(|byte| *byte == 0).any(|word| word == what)
    };
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let number = name.to_str().and_then(|name| name.parse().ok());
        if let Some(number) = number
            && has(&path.join("cmdline"), b"copy")
            && has(&path.join("environ"), &variable)
        {
            found.push(number);
        }
    }
    found
}

fn kill_copies(home: &Path) {
    for process in copies(home) {
        let process = rustix::process::Pid::from_raw(process).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::KILL).ok();
    }
}
