//! Files from and to a real server, over both pipes.

#![expect(
    clippy::unwrap_used,
    reason = "a scene that can't be set up should fail at once"
)]

#[path = "support/mod.rs"]
mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use boxery_remote::copy::{Copied, Journey, Progress, copy};
use boxery_remote::{Cancel, PipeChoice, RemoteError, Way};
use rstest::rstest;
use support::Sshd;
use tempfile::TempDir;
use tokio::sync::Notify;

/// Up or down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Up,
    Down,
}

impl Turn {
    fn journey(self, from: &Path, to: &Path) -> Journey {
        let (from, to) = (from.to_owned(), to.to_owned());
        match self {
            Self::Up => Journey::Up {
                from,
                to: to.into(),
            },
            Self::Down => Journey::Down {
                from: from.into(),
                to,
            },
        }
    }
}

/// A folder that the server's user may write to and read from.
fn folder() -> TempDir {
    let folder = TempDir::new_in("/var/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

fn write(path: &Path, bytes: &[u8], mode: u32) {
    let mut file = fs::File::create(path).unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
    file.set_permissions(fs::Permissions::from_mode(mode))
        .unwrap();
}

fn numbered(length: u32) -> Vec<u8> {
    (0..length / 4).flat_map(u32::to_le_bytes).collect()
}

async fn go(way: &Way, journey: &Journey) -> Result<Copied, RemoteError> {
    let nobody = std::future::pending::<Cancel>();
    copy(way, journey, Arc::new(|_| None), |_| {}, nobody)
        .await
        .map(|ended| ended.unwrap())
}

/// Path, kind and permissions, content or link of everything below a folder.
fn listing(root: &Path) -> Vec<(Vec<u8>, u32, Vec<u8>)> {
    let (mut open, mut found) = (vec![root.to_owned()], Vec::new());
    while let Some(path) = open.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let content = if metadata.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            open.extend(entries.map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if metadata.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            target.as_os_str().as_bytes().to_vec()
        } else if metadata.len() > 1 << 29 {
            // Its end stands for it.
            let mut end = [0; 3];
            let file = fs::File::open(&path).unwrap();
            file.read_exact_at(&mut end, metadata.len() - 3).unwrap();
            [&metadata.len().to_le_bytes()[..], &end].concat()
        } else {
            fs::read(&path).unwrap()
        };
        let name = path.strip_prefix(root).unwrap();
        let name = name.as_os_str().as_bytes().to_vec();
        found.push((name, metadata.mode(), content));
    }
    found.sort();
    found
}

/// Everything that a tree can hold, readable by all.
fn tree(root: &Path) {
    fs::create_dir_all(root.join("deep/er")).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    write(&root.join("script"), b"#!/bin/sh\n", 0o755);
    write(&root.join("nothing"), b"", 0o604);
    let odd = root.join("deep").join(OsStr::from_bytes(b"\xff \n'"));
    write(&odd, b"odd", 0o644);
    write(&root.join("deep/er/big"), &numbered(3_000_000), 0o644);
    symlink("../outside/nowhere", root.join("link")).unwrap();
    symlink("/etc", root.join("deep/etc")).unwrap();
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.write_all_at(b"end", (1 << 30) - 3).unwrap();
    for (name, mode) in [("deep", 0o775), ("empty", 0o555), ("", 0o755)] {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
}

#[rstest]
#[tokio::test]
async fn a_tree_arrives_as_it_is(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[values(Turn::Up, Turn::Down)] turn: Turn,
) {
    let sshd = Sshd::start();
    let way = sshd.open(pipe).await;
    let (there, from) = (folder(), folder().keep());
    tree(&from);
    let to = there.path().join("to");
    let done = go(&way, &turn.journey(&from, &to)).await.unwrap();
    assert_eq!(done.target, to);
    assert!(listing(&from) == listing(&to), "{turn:?}");
    assert!(fs::metadata(to.join("sparse")).unwrap().blocks() < 1000);
    let progress = done.progress;
    assert_eq!((progress.files, progress.total_files), (5, Some(5)));
    assert_eq!(Some(progress.bytes), progress.total_bytes);
    assert!(progress.travelled < 4_000_000, "{progress:?}");
    assert_eq!((progress.left, progress.changed), (vec![], vec![]));
    let modified = |root: &Path| fs::metadata(root.join("script")).unwrap().modified();
    assert_eq!(modified(&from).unwrap(), modified(&to).unwrap());

    // Into a folder that is there it goes under its own name; its content does not.
    let own = to.join(from.file_name().unwrap());
    let done = go(&way, &turn.journey(&from, &to)).await.unwrap();
    assert_eq!(done.target, own);
    assert!(listing(&from) == listing(&own));
    let done = go(&way, &turn.journey(&from.join("."), &own))
        .await
        .unwrap();
    assert_eq!(done.target, own);
    assert!(listing(&from) == listing(&own));
    fs::remove_dir_all(from).unwrap();
}

#[rstest]
#[tokio::test]
async fn a_copy_goes_on_where_its_link_broke(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[values(Turn::Up, Turn::Down)] turn: Turn,
) {
    let sshd = Sshd::start();
    let (link, route) = sshd.behind_a_link(pipe);
    let way = Way::open(route, None, None).await.unwrap();
    let (there, from) = (folder(), folder().keep());
    // Whoever copies into the folder has to open it, and to close it in the end.
    fs::create_dir(from.join("b")).unwrap();
    for (name, length) in [("a", 5_000_000), ("b/b", 50_000_000), ("c", 5_000_000)] {
        write(&from.join(name), &numbered(length), 0o644);
    }
    fs::set_permissions(from.join("b"), fs::Permissions::from_mode(0o555)).unwrap();
    let to = there.path().join("to");
    link.cut_after(45_000_000);
    let done = go(&way, &turn.journey(&from, &to)).await.unwrap();
    assert!(listing(&from) == listing(&to));
    let progress = done.progress;
    assert_eq!(progress.reconnected, 1);
    assert_eq!((progress.files, progress.bytes), (3, 60_000_000));
    // What was under way in buffers goes again, and nothing else.
    let again = progress.travelled - 60_000_000;
    assert!(again < 20_000_000, "{again} bytes went twice");
    fs::remove_dir_all(from).unwrap();
}

#[rstest]
#[tokio::test]
async fn a_copy_that_is_ended_leaves_no_half_file_and_goes_on_the_next_time(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[values(Turn::Up, Turn::Down)] turn: Turn,
) {
    let sshd = Sshd::start();
    let (link, route) = sshd.behind_a_link(pipe);
    let way = Way::open(route, None, None).await.unwrap();
    let (there, from) = (folder(), folder().keep());
    let bytes = numbered(60_000_000);
    write(&from.join("file"), &bytes, 0o644);
    let to = there.path().join("file");
    let journey = turn.journey(&from.join("file"), &to);
    // The link goes, and doesn't come back.
    link.set_down(true);
    link.cut_after(30_000_000);
    let broke = Arc::new(Notify::new());
    let breaks = Arc::clone(&broke);
    let show = move |progress: &Progress| {
        if progress.reconnected > 0 {
            breaks.notify_one();
        }
    };
    let cancel = async {
        broke.notified().await;
        Cancel::Interrupt
    };
    let ended = copy(&way, &journey, Arc::new(|_| None), show, cancel).await;
    assert_eq!(ended.unwrap(), Err(Cancel::Interrupt));
    assert!(!to.exists());
    link.set_down(false);
    let done = go(&way, &journey).await.unwrap();
    assert!(fs::read(&to).unwrap() == bytes);
    let travelled = done.progress.travelled;
    assert!(travelled < 50_000_000, "{travelled} bytes went again");
    assert_eq!(fs::read_dir(there.path()).unwrap().count(), 1);
    fs::remove_dir_all(from).unwrap();
}

#[rstest]
#[case::unwritable_there(Turn::Up, "/etc/boxery-copy", "Permission denied")]
#[case::unwritable_here(Turn::Down, "/sys/boxery-copy", "Permission denied")]
#[case::no_parent_there(Turn::Up, "/var/tmp/no/such", "isn't there")]
#[case::no_parent_here(Turn::Down, "/var/tmp/no/such", "isn't there")]
#[tokio::test]
async fn a_target_that_cannot_be_written_is_named(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[case] turn: Turn,
    #[case] to: &str,
    #[case] want: &str,
) {
    let sshd = Sshd::start();
    let way = sshd.open(pipe).await;
    let from = folder();
    write(&from.path().join("file"), b"text", 0o644);
    let journey = turn.journey(&from.path().join("file"), Path::new(to));
    let error = go(&way, &journey).await.unwrap_err();
    assert!(error.to_string().contains(want), "{error}");
    assert!(error.hint("dev").is_some());
    assert!(!Path::new(to).exists());
}

#[rstest]
#[tokio::test]
async fn what_must_not_be_written_is_left_out_and_named(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let sshd = Sshd::start();
    let way = sshd.open(pipe).await;
    let (there, here) = (folder(), folder());
    let from = there.path().join("from");
    fs::create_dir_all(from.join(".claude")).unwrap();
    write(&from.join(".claude/settings.json"), b"{}", 0o644);
    write(&from.join(".claude/large"), &numbered(2_000_000), 0o644);
    write(&from.join("main.c"), b"", 0o644);
    let to: PathBuf = here.path().join("to");
    let journey = Turn::Down.journey(&from, &to);
    let refuse = |path: &Path| {
        let parts = path.iter().any(|part| part == ".claude");
        parts.then(|| "no".to_owned())
    };
    let nobody = std::future::pending::<Cancel>();
    let done = copy(&way, &journey, Arc::new(refuse), |_| {}, nobody).await;
    let progress = done.unwrap().unwrap().progress;
    let left: Vec<_> = progress.left.iter().map(|(path, _)| &path[..]).collect();
    // The folder itself would only have been made for them.
    let want: [&[u8]; 2] = [b".claude/large", b".claude/settings.json"];
    assert_eq!(left, want);
    assert_eq!(progress.travelled, 2);
    assert_eq!(listing(&to).len(), 2);
}
