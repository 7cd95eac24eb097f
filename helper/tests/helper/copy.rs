//! Copies both ways: what one helper sends, another takes.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of a test: what can't be had fails it"
)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use boxery_wire::{Blob, Failure, Item, Kind, Misplaced, RESUMED, Reply, Request, Taken};
use rstest::rstest;

use crate::support::{Helper, Home, Talk};

fn blob(path: &Path) -> Blob {
    Blob::from(path.as_os_str().as_bytes())
}

async fn begin(helper: &Helper, request: &Request) -> Talk {
    let (reply, talk) = helper.ask(request).await;
    assert!(
        matches!(reply, Reply::Source(_) | Reply::Target(_)),
        "{reply:?}"
    );
    talk
}

async fn put(helper: &Helper, path: &Path, kind: Kind) -> Talk {
    let (path, name) = (blob(path), Some("copy".into()));
    begin(helper, &Request::Put { path, name, kind }).await
}

/// Copy `from` to `to`, at most `limit` bytes of data; what was said of it, how much
/// data went, and what couldn't be copied.
async fn copy(
    helper: &Helper,
    from: &Path,
    to: &Path,
    limit: usize,
) -> (Option<Taken>, usize, Vec<String>) {
    let kind = if from.is_dir() {
        Kind::Folder
    } else {
        Kind::Other
    };
    let request = Request::Get {
        path: blob(from),
        after: None,
    };
    let mut source = begin(helper, &request).await;
    let mut target = put(helper, to, kind).await;
    let (mut sent, mut left) = (0, Vec::new());
    loop {
        let item: Item = source.next().await.unwrap();
        target.stream.send_message(&item).await.unwrap();
        match &item {
            Item::File { size, .. } if *size >= RESUMED => {
                let have: Taken = target.next().await.unwrap();
                source.stream.send_message(&have).await.unwrap();
            }
            Item::Data(bytes) => {
                sent += bytes.len();
                if sent >= limit {
                    return (None, sent, left);
                }
            }
            Item::Left { path, .. } => left.push(String::from_utf8_lossy(path).into_owned()),
            Item::End => break,
            _ => {}
        }
    }
    let taken: Taken = target.next().await.unwrap();
    source.stream.send_message(&taken).await.unwrap();
    (Some(taken), sent, left)
}

fn write(path: &Path, bytes: &[u8], mode: u32) {
    let mut file = fs::File::create(path).unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
    file.set_permissions(fs::Permissions::from_mode(mode))
        .unwrap();
}

/// Path, mode, content or link of everything below a folder.
fn listing(root: &Path) -> Vec<(Vec<u8>, u32, Vec<u8>)> {
    let (mut open, mut found) = (vec![root.to_owned()], Vec::new());
    while let Some(path) = open.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let content = if metadata.is_dir() {
            open.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            Vec::new()
        } else if metadata.is_symlink() {
            fs::read_link(&path)
                .unwrap()
                .as_os_str()
                .as_bytes()
                .to_vec()
        } else {
            fs::read(&path).unwrap()
        };
        let name = path
            .strip_prefix(root)
            .unwrap()
            .as_os_str()
            .as_bytes()
            .to_vec();
        found.push((name, metadata.mode(), content));
    }
    found.sort();
    found
}

fn numbered(length: u32) -> Vec<u8> {
    (0..length / 4).flat_map(u32::to_le_bytes).collect()
}

#[tokio::test]
async fn a_tree_arrives_as_it_is() {
    let home = Home::new();
    let (from, to) = (home.path().join("from"), home.path().join("to"));
    fs::create_dir_all(from.join("deep/er")).unwrap();
    fs::create_dir(from.join("empty")).unwrap();
    write(&from.join("script"), b"#!/bin/sh\n", 0o755);
    write(&from.join("deep/er/nothing"), b"", 0o600);
    write(
        &from.join("deep").join(OsStr::from_bytes(b"\xff \n'")),
        b"odd",
        0o644,
    );
    write(&from.join("big"), &numbered(3_000_000), 0o640);
    symlink("../outside/nowhere", from.join("link")).unwrap();
    symlink("/etc", from.join("deep/etc")).unwrap();
    let sparse = fs::File::create(from.join("sparse")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"end", 64 << 20).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, from.join("fifo"), 0o600.into()).unwrap();
    let helper = home.connect().await;
    let (taken, _, left) = copy(&helper, &from, &to, usize::MAX).await;
    assert_eq!((taken, left), (Some(Taken::Done), vec!["fifo".to_owned()]));
    fs::remove_file(from.join("fifo")).unwrap();
    assert!(listing(&from) == listing(&to));
    assert!(fs::metadata(to.join("sparse")).unwrap().blocks() < 2000);
    let modified = |root: &Path| {
        fs::metadata(root.join("script"))
            .unwrap()
            .modified()
            .unwrap()
    };
    assert_eq!(modified(&from), modified(&to));
    // Into a folder that is there it goes under its own name; again, over itself.
    for _ in 0..2 {
        fs::create_dir_all(home.path().join("into")).unwrap();
        let (taken, _, _) = copy(&helper, &from, &home.path().join("into"), usize::MAX).await;
        assert_eq!(taken, Some(Taken::Done));
        assert!(listing(&from) == listing(&home.path().join("into/copy")));
    }
}

#[tokio::test]
async fn a_file_goes_on_where_its_link_broke() {
    let home = Home::new();
    let (from, to) = (home.path().join("from"), home.path().join("to"));
    let bytes = numbered(20_000_000);
    write(&from, &bytes, 0o644);
    let helper = home.connect().await;
    let (taken, _, _) = copy(&helper, &from, &to, 8_000_000).await;
    assert_eq!(taken, None);
    helper.connection.ping().await.unwrap();
    helper.cut().await;
    assert!(!to.exists());
    let helper = home.connect().await;
    let (taken, sent, _) = copy(&helper, &from, &to, usize::MAX).await;
    assert_eq!(taken, Some(Taken::Done));
    assert!(sent < 20_000_000, "{sent}");
    assert!(fs::read(&to).unwrap() == bytes);
    // Another file of the same name starts anew.
    write(&from, &bytes[4..], 0o644);
    let (_, sent, _) = copy(&helper, &from, &to, usize::MAX).await;
    assert_eq!(sent, bytes.len() - 4);
    assert!(fs::read(&to).unwrap() == bytes[4..]);
}

#[rstest]
#[case::file_into_what_is_not_there("nothing/", Kind::Other, Misplaced::Absent)]
#[case::parent_gone("nothing/deep", Kind::Folder, Misplaced::ParentGone)]
#[case::below_a_file("file/deep", Kind::Other, Misplaced::ParentGone)]
#[case::no_folder("file/", Kind::Other, Misplaced::NoFolder)]
#[case::folder_over_a_file("file", Kind::Folder, Misplaced::FileThere)]
#[case::file_over_a_folder("into", Kind::Other, Misplaced::FolderThere)]
#[tokio::test]
async fn a_copy_without_a_place_is_refused_at_once(
    #[case] path: &str,
    #[case] kind: Kind,
    #[case] want: Misplaced,
) {
    let home = Home::new();
    write(&home.path().join("file"), b"", 0o644);
    fs::create_dir_all(home.path().join("into/copy")).unwrap();
    let helper = home.connect().await;
    let path = blob(&home.path().join(path));
    let name = Some("copy".into());
    let (reply, _) = helper.ask(&Request::Put { path, name, kind }).await;
    assert_eq!(reply, Reply::Failed(Failure::Misplaced(want)));
}

#[rstest]
#[case::up("../outside/file")]
#[case::through_a_link("link/file")]
#[case::absolute("/tmp/file")]
#[case::empty_part("a//b")]
#[tokio::test]
async fn nothing_is_written_outside_of_the_target(#[case] path: &str) {
    let home = Home::new();
    let (outside, to) = (home.path().join("outside"), home.path().join("to"));
    fs::create_dir(&outside).unwrap();
    fs::create_dir(&to).unwrap();
    symlink(&outside, to.join("link")).unwrap();
    let helper = home.connect().await;
    let mut target = begin(
        &helper,
        &Request::Put {
            path: blob(home.path()),
            name: Some("to".into()),
            kind: Kind::Folder,
        },
    )
    .await;
    let file = Item::File {
        path: path.into(),
        mode: 0o644,
        size: 4,
        modified: 0,
    };
    for item in [file, Item::Data("evil".into()), Item::End] {
        target.stream.send_message(&item).await.unwrap();
    }
    let taken: Taken = target.next().await.unwrap();
    assert!(matches!(taken, Taken::Failed { .. }), "{taken:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

/// A file of a copy, as it is announced.
fn file(path: &str, size: u64) -> Item {
    Item::File {
        path: path.into(),
        mode: 0o644,
        size,
        modified: 7,
    }
}

#[rstest]
#[case::small(4000)]
#[case::one_that_is_taken_up(RESUMED + 4000)]
#[tokio::test]
async fn two_copies_of_one_file_at_once_share_nothing(#[case] size: u64) {
    let home = Home::new();
    let helper = home.connect().await;
    let to = home.path().join("to");
    let bytes = numbered(u32::try_from(size).unwrap());
    let (head, rest) = bytes.split_at(3000);
    let mut talks = Vec::new();
    for _ in 0..2 {
        let mut talk = put(&helper, &to, Kind::Other).await;
        talk.stream.send_message(&file("", size)).await.unwrap();
        let mut have = 0;
        if size >= RESUMED {
            let Taken::Have(there) = talk.next().await.unwrap() else {
                panic!("it says how much it has");
            };
            have = usize::try_from(there).unwrap();
        }
        // The second one goes on from what the first one has.
        let goes_on = size >= RESUMED && !talks.is_empty();
        assert_eq!(have, if goes_on { head.len() } else { 0 });
        let begun = Item::Data(head[have.min(head.len())..].into());
        talk.stream.send_message(&begun).await.unwrap();
        helper.connection.ping().await.unwrap();
        crate::support::eventually("what was sent is written", || {
            let entries = fs::read_dir(home.path()).unwrap().flatten();
            let halves = entries.filter(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                name.starts_with(".to.boxery") && entry.metadata().unwrap().len() == 3000
            });
            halves.count() == talks.len() + 1
        })
        .await;
        talks.push(talk);
    }
    for mut talk in talks {
        for item in [Item::Data(rest.into()), Item::End] {
            talk.stream.send_message(&item).await.unwrap();
        }
        assert_eq!(talk.next::<Taken>().await.unwrap(), Taken::Done);
        assert!(fs::read(&to).unwrap() == bytes);
    }
    let entries = fs::read_dir(home.path()).unwrap().flatten();
    let mut left = entries.filter(|entry| entry.file_name().to_string_lossy().contains("boxery-"));
    assert!(left.next().is_none());
}

#[rstest]
#[case::top("", 0o555)]
#[case::inner("inner", 0o500)]
#[tokio::test]
async fn a_folder_that_a_broken_copy_had_opened_is_closed_again(
    #[case] path: &str,
    #[case] mode: u32,
) {
    let home = Home::new();
    let to = home.path().join("to");
    let within = to.join(path);
    let mode_of = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    let below = |name: &str| Path::new(path).join(name).to_str().unwrap().to_owned();
    for round in 0..3 {
        let helper = home.connect().await;
        // As whoever goes on with a copy asks for it.
        let (path_of_all, name, kind) = (blob(&to), None, Kind::Folder);
        let request = Request::Put {
            path: path_of_all,
            name,
            kind,
        };
        let talk = begin(&helper, &request).await;
        let mut items = vec![Item::Folder {
            path: "".into(),
            mode: if path.is_empty() { mode } else { 0o755 },
        }];
        if !path.is_empty() {
            let path = path.into();
            items.push(Item::Folder { path, mode });
        }
        items.extend([file(&below("a"), 1), Item::Data("x".into())]);
        items.push(file(&below("b"), 2));
        if round < 2 {
            // It breaks off in the middle of a file, before the end that closes folders.
            items.push(Item::Data("y".into()));
        } else {
            items.extend([Item::Data("yz".into()), Item::End]);
        }
        for item in items {
            talk.stream.send_message(&item).await.unwrap();
        }
        if round < 2 {
            crate::support::eventually("the first file", || within.join("a").exists()).await;
            helper.cut().await;
            crate::support::eventually("the folder is closed", || mode_of(&within) == mode).await;
            continue;
        }
        let mut talk = talk;
        assert_eq!(talk.next::<Taken>().await.unwrap(), Taken::Done);
        assert_eq!(mode_of(&within), mode);
        assert_eq!(fs::read(within.join("b")).unwrap(), b"yz");
    }
}
