//! Whole syncs as conversations, cut at every message.

#![expect(
    clippy::unwrap_used,
    reason = "test support: a failure here is the test's failure"
)]
#![expect(clippy::disallowed_methods, reason = "test trees need no crash safety")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use boxery_sync::talk::{
    Answer, Ask, DriveError, Job, Line, Marked, Progress, RESUMED, Report, drive, look, serve,
};
use boxery_sync::{
    Change, Direction, EntryPath, KEPT, MARKER, Protected, STAGE, ScanOptions, Standing,
};
use camino::Utf8Path;
use rstest::rstest;
use tempfile::TempDir;

use super::pair::{entry, folder, tree_of};

/// A line to a copy's side that runs in a thread, and breaks after so many messages.
struct Cut {
    asks: Option<Sender<Ask>>,
    answers: Receiver<Answer>,
    far: Option<JoinHandle<()>>,
    left: usize,
    /// What was moved, by its bytes.
    moved: u64,
    /// How many files it asked to be hashed.
    hashed: usize,
    /// What the file `made` is called on the way, as by a VM that lies.
    lie: Option<&'static [u8]>,
}

impl Cut {
    fn to(copy: &Path, machine: &str, messages: usize) -> Self {
        let (asks, asked) = channel();
        let (says, answers) = channel();
        let (copy, machine) = (copy.to_owned(), machine.to_owned());
        let far = std::thread::spawn(move || {
            let next = || {
                asked
                    .recv()
                    .map_err(|_| io::ErrorKind::UnexpectedEof.into())
            };
            let say = |answer: &Answer| {
                let gone = |_| io::ErrorKind::BrokenPipe.into();
                says.send(answer.clone()).map_err(gone)
            };
            // Nobody waits for changes here.
            let wait = |_: Option<std::os::fd::BorrowedFd<'_>>| Ok(true);
            serve(&copy, &machine, next, say, wait).ok();
        });
        Self {
            asks: Some(asks),
            answers,
            far: Some(far),
            left: messages,
            moved: 0,
            hashed: 0,
            lie: None,
        }
    }

    fn count(&mut self) -> io::Result<()> {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => return Err(io::ErrorKind::BrokenPipe.into()),
        }
        Ok(())
    }
}

impl Line for Cut {
    fn send(&mut self, ask: &Ask) -> io::Result<()> {
        self.count()?;
        if let Ask::Data(bytes) = ask {
            self.moved += bytes.len() as u64;
        }
        if let Ask::Hash(paths) = ask {
            self.hashed += paths.len();
        }
        let gone = |_| io::ErrorKind::BrokenPipe.into();
        self.asks.as_ref().unwrap().send(ask.clone()).map_err(gone)
    }

    fn receive(&mut self) -> io::Result<Answer> {
        self.count()?;
        let gone = |_| io::ErrorKind::UnexpectedEof;
        let mut answer = self.answers.recv().map_err(gone)?;
        if let (Some(lie), Answer::Folder { entries, .. }) = (self.lie, &mut answer) {
            for entry in entries.iter_mut().flatten() {
                if entry.name == b"made" {
                    entry.name = lie.to_vec();
                }
            }
        }
        Ok(answer)
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        // The next sync finds nobody in the stage.
        self.asks = None;
        if let Some(far) = self.far.take() {
            far.join().unwrap();
        }
    }
}

pub(crate) struct Scene {
    pub(crate) laptop: TempDir,
    pub(crate) vm: TempDir,
    state: TempDir,
    machine: &'static str,
    /// Another project than `laptop`.
    pub(crate) project: Option<PathBuf>,
    /// Another copy than `vm`.
    pub(crate) copy: Option<PathBuf>,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self {
            laptop: folder(),
            vm: folder(),
            state: folder(),
            machine: "m",
            project: None,
            copy: None,
        }
    }

    /// One sync. A program that another test starts has our locks until it is executed,
    /// so that one is asked for again, as whoever syncs does.
    pub(crate) fn sync(&self) -> Result<Report, DriveError> {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            match self.sync_cut(usize::MAX).0 {
                Err(DriveError::Busy) if Instant::now() < end => std::thread::yield_now(),
                ended => return ended,
            }
        }
    }

    fn look(&self) -> Result<Report, DriveError> {
        let mut line = Cut::to(
            self.copy.as_deref().unwrap_or(self.vm.path()),
            self.machine,
            usize::MAX,
        );
        self.with_job(&mut |_| {}, |job| look(&mut line, job))
    }

    /// One sync over a line that breaks after so many messages, and the bytes of
    /// content that it sent.
    fn sync_cut(&self, messages: usize) -> (Result<Report, DriveError>, u64) {
        let mut line = Cut::to(
            self.copy.as_deref().unwrap_or(self.vm.path()),
            self.machine,
            messages,
        );
        let mut last = Progress::default();
        let report = self.with_job(&mut |progress| last = progress, |job| drive(&mut line, job));
        if report.is_ok() {
            assert_eq!(last.files, last.all_files, "{last:?}");
        }
        (report, line.moved)
    }

    fn with_job<T>(
        &self,
        progress: &mut dyn FnMut(Progress),
        with: impl FnOnce(&mut Job<'_>) -> T,
    ) -> T {
        with(&mut Job {
            project: Utf8Path::from_path(self.project.as_deref().unwrap_or(self.laptop.path()))
                .unwrap(),
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
            patience: Duration::ZERO,
            progress,
        })
    }

    fn is_same(&self) -> bool {
        tree_of(self.laptop.path()) == tree_of(self.vm.path())
    }
}

pub(crate) fn write(folder: &TempDir, path: &str, content: impl AsRef<[u8]>) {
    let path = folder.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn filled() -> Scene {
    let scene = Scene::new();
    write(&scene.laptop, ".gitignore", "target\n");
    write(&scene.laptop, "src/a.rs", "one");
    write(&scene.laptop, "src/deep/b.rs", "two");
    fs::create_dir(scene.laptop.path().join("empty")).unwrap();
    std::os::unix::fs::symlink("src/a.rs", scene.laptop.path().join("link")).unwrap();
    scene
}

#[test]
fn a_first_sync_makes_the_copy_and_a_second_one_does_nothing() {
    let scene = filled();
    let report = scene.sync().unwrap();
    assert_eq!(report.standing, Standing::New);
    assert!(report.is_same() && scene.is_same());
    assert!(scene.vm.path().join(MARKER).is_file());
    let report = scene.sync().unwrap();
    assert_eq!(report.standing, Standing::Known);
    assert!(report.plan.is_same());
}

#[test]
fn looking_tells_what_a_sync_would_do_and_changes_nothing() {
    let scene = filled();
    scene.sync().unwrap();
    write(&scene.laptop, "src/a.rs", "edited");
    write(&scene.vm, "made", "2");
    let before = (tree_of(scene.laptop.path()), tree_of(scene.vm.path()));
    let report = scene.look().unwrap();
    let paths = |changes: &[Change]| -> Vec<String> {
        changes
            .iter()
            .map(|change| change.path.to_string())
            .collect()
    };
    assert_eq!(paths(&report.plan.vm), ["src/a.rs"]);
    assert_eq!(paths(&report.plan.laptop), ["made"]);
    assert!(before == (tree_of(scene.laptop.path()), tree_of(scene.vm.path())));
    assert!(!scene.laptop.path().join(STAGE).exists() && !scene.vm.path().join(STAGE).exists());
}

#[test]
fn changes_go_both_ways_and_build_outputs_stay() {
    let scene = filled();
    scene.sync().unwrap();
    write(&scene.vm, "target/out", "built");
    write(&scene.vm, "made/by/vm", "new");
    write(&scene.laptop, "src/a.rs", "edited");
    fs::remove_dir_all(scene.vm.path().join("src/deep")).unwrap();
    let report = scene.sync().unwrap();
    assert!(report.is_same() && scene.is_same(), "{report:?}");
    assert!(scene.vm.path().join("target/out").exists());
    assert!(!scene.laptop.path().join("target").exists());
    assert!(!scene.laptop.path().join("src/deep").exists());
}

#[test]
fn a_line_that_breaks_at_any_message_leaves_nothing_that_the_next_sync_does_not_complete() {
    let mut messages = 0;
    let mut broken = 0;
    loop {
        let scene = filled();
        scene.sync().unwrap();
        write(&scene.laptop, "src/a.rs", "edited");
        write(&scene.laptop, "new/x", "1");
        write(&scene.vm, "made", "2");
        fs::remove_file(scene.laptop.path().join("src/deep/b.rs")).unwrap();
        fs::remove_file(scene.vm.path().join("link")).unwrap();
        write(&scene.vm, "link/now/folder", "3");
        let (cut, _) = scene.sync_cut(messages);
        let is_cut = cut.is_err();
        let report = scene.sync().unwrap();
        assert!(report.is_same(), "cut after {messages}: {report:?}");
        assert!(scene.is_same(), "cut after {messages}");
        let read = |path: &str| fs::read_to_string(scene.laptop.path().join(path)).unwrap();
        assert_eq!(
            [read("src/a.rs"), read("made"), read("link/now/folder")],
            ["edited", "2", "3"]
        );
        assert!(!scene.vm.path().join("src/deep/b.rs").exists());
        for folder in [&scene.laptop, &scene.vm] {
            assert!(!folder.path().join(STAGE).exists() && !folder.path().join(KEPT).exists());
        }
        if !is_cut {
            break;
        }
        (broken, messages) = (broken + 1, messages + 1);
    }
    assert!(broken > 20, "only {broken} messages");
}

#[test]
fn a_large_file_goes_on_where_it_broke_off() {
    let size = usize::try_from(RESUMED * 4).unwrap();
    let content: Vec<u8> = (0..size).map(|n| u8::try_from(n % 251).unwrap()).collect();
    // Each in a scene of its own: what an earlier cut left would be gone on with.
    let (scene, whole, most) = (0..100)
        .map(|n| {
            let scene = filled();
            scene.sync().unwrap();
            write(&scene.laptop, "large", &content);
            let (whole, moved) = scene.sync_cut(20 + n);
            (scene, whole, moved)
        })
        .find(|(_, _, moved)| *moved > RESUMED)
        .unwrap();
    assert!(whole.is_err());
    let (report, rest) = scene.sync_cut(usize::MAX);
    assert!(report.unwrap().is_same() && scene.is_same());
    assert!(
        rest + most <= RESUMED * 4 + 1024 * 1024,
        "{most} and then {rest}"
    );
}

#[rstest]
#[case::not_empty(None, Marked::NoCopy)]
#[case::anothers(Some("boxery copy 1 y"), Marked::Other)]
#[case::unfinished(Some("boxery copy 1 x unfinished"), Marked::Unfinished)]
fn a_folder_that_is_no_copy_of_this_project_is_left_alone(
    #[case] marker: Option<&str>,
    #[case] want: Marked,
) {
    let scene = filled();
    write(&scene.vm, "theirs", "1");
    if let Some(marker) = marker {
        write(&scene.vm, MARKER, format!("{marker}\n"));
    }
    let before = fs::read_dir(scene.vm.path()).unwrap().count();
    match scene.sync() {
        Err(DriveError::Copy { marked }) => assert_eq!(marked, want),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_dir(scene.vm.path()).unwrap().count(), before);
}

#[test]
fn a_new_machine_under_the_old_name_is_refused() {
    let mut scene = filled();
    scene.sync().unwrap();
    scene.machine = "another";
    fs::remove_file(scene.vm.path().join("src/a.rs")).unwrap();
    assert!(matches!(scene.sync(), Err(DriveError::Foreign)));
    assert!(scene.laptop.path().join("src/a.rs").exists());
}

/// What a rebuilt VM with the same id looks like: the copy is gone.
#[test]
fn a_copy_that_is_gone_is_made_again_and_deletes_nothing() {
    let scene = filled();
    scene.sync().unwrap();
    for entry in fs::read_dir(scene.vm.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
    let report = scene.sync().unwrap();
    assert_eq!(report.standing, Standing::Moved);
    assert!(report.is_same() && scene.is_same());
    assert!(scene.laptop.path().join("src/a.rs").exists());
}

#[test]
fn a_copy_whose_making_was_killed_is_made_by_the_next_sync() {
    let scene = filled();
    write(&scene.vm, ".boxery-new", "boxery cop");
    assert!(scene.sync().unwrap().is_same() && scene.is_same());
}

/// Files that were written long enough ago are hashed once, also if nothing changes.
#[test]
fn a_sync_without_work_hashes_nothing_twice() {
    let scene = filled();
    scene.sync().unwrap();
    let asked = |line: &mut Cut| {
        scene
            .with_job(&mut |_| {}, |job| look(line, job))
            .map(|_| line.hashed)
    };
    let look = || asked(&mut Cut::to(scene.vm.path(), scene.machine, usize::MAX)).unwrap();
    let mut counts = Vec::new();
    // The change time is the disk's own: it has to grow old by itself.
    while counts.last() != Some(&0) && counts.len() < 20_000 {
        counts.push(look());
    }
    assert_eq!((counts.first(), counts.last()), (Some(&3), Some(&0)));
}

#[rstest]
#[case::up(b"../made")]
#[case::far_up(b"../../../made")]
#[case::up_alone(b"..")]
#[case::absolute(b"/made")]
#[case::below(b"src/made")]
#[case::nothing(b"")]
fn a_vm_that_lies_about_names_writes_nowhere(#[case] lie: &'static [u8]) {
    let scene = filled();
    scene.sync().unwrap();
    write(&scene.vm, "made", "1");
    let before = tree_of(scene.laptop.path());
    let mut line = Cut::to(scene.vm.path(), scene.machine, usize::MAX);
    line.lie = Some(lie);
    let synced = scene.with_job(&mut |_| {}, |job| drive(&mut line, job));
    assert!(matches!(synced, Err(DriveError::Protocol)), "{synced:?}");
    assert!(before == tree_of(scene.laptop.path()));
    assert!(!scene.laptop.path().with_file_name("made").exists());
}

#[test]
fn a_tracked_file_in_an_ignored_folder_is_synced_both_ways() {
    let scene = filled();
    let git = |arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(arguments).current_dir(scene.laptop.path());
        assert!(git.output().unwrap().status.success());
    };
    write(&scene.laptop, "target/keep.log", "1");
    write(&scene.laptop, "target/other", "1");
    git(&["init", "-q"]);
    git(&["add", "-f", "target/keep.log"]);
    scene.sync().unwrap();
    let there = scene.vm.path().join("target/keep.log");
    assert!(there.exists() && !scene.vm.path().join("target/other").exists());
    fs::write(there, "2").unwrap();
    scene.sync().unwrap();
    let here = scene.laptop.path().join("target/keep.log");
    assert_eq!(fs::read_to_string(here).unwrap(), "2");
}

#[test]
fn a_sync_beside_another_one_is_told_to_wait() {
    let scene = filled();
    let lock = fs::File::create(scene.state.path().join("lock")).unwrap();
    lock.lock().unwrap();
    assert!(matches!(
        scene.sync_cut(usize::MAX).0,
        Err(DriveError::Busy)
    ));
}

#[test]
fn two_thousand_paths_of_one_folder_come_in_pieces() {
    let scene = Scene::new();
    for number in 0..2500 {
        write(&scene.laptop, &format!("d/{number}"), number.to_string());
    }
    let report = scene.sync().unwrap();
    assert!(report.is_same() && scene.is_same());
    let path: EntryPath = entry("d/2499");
    assert!(report.vm.done.contains(&path));
    assert!(scene.sync().unwrap().plan.is_same());
}
