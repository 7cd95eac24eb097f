//! What the sender of a copy does about files that change under its hands.

#![expect(clippy::unwrap_used, reason = "a test that can't talk fails")]

use std::fs::File;
use std::io::Write as _;
use std::os::unix::net::{UnixListener, UnixStream};

use boxery_wire::copy::{Step, Talk, Trouble, send, take};
use boxery_wire::{Item, Taken};
use rstest::rstest;

/// More than a socket holds.
const LENGTH: usize = 16 << 20;
const SIZE: u64 = LENGTH as u64;

#[rstest]
#[case::grows(SIZE + 7, true)]
#[case::shrinks(100, false)]
#[case::stays(SIZE, true)]
fn a_file_that_changes_while_it_is_read_is_told(#[case] becomes: u64, #[case] whole: bool) {
    let mut source = tempfile();
    source.write_all(&vec![7; LENGTH]).unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&source));
    let path = std::fs::read_link(path).unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let sender = std::thread::spawn(move || {
        let (mut changed, mut left) = (false, false);
        let mut watch = |step: Step<'_>| match step {
            Step::Changed(_) => changed = true,
            Step::Left { .. } => left = true,
            _ => {}
        };
        send(&mut Talk::new(theirs, &[]), &path, None, &mut watch).unwrap();
        (changed, left)
    });
    let mut talk = Talk::new(ours, &[]);
    let (mut bytes, mut changed, mut left) = (0, false, false);
    loop {
        match talk.hear::<Item>().unwrap() {
            Item::File { size, .. } => {
                assert_eq!(size, SIZE);
                talk.say(&Taken::Have(0)).unwrap();
            }
            Item::Data(data) => {
                if bytes == 0 && becomes != SIZE {
                    source.set_len(becomes).unwrap();
                }
                bytes += data.len() as u64;
            }
            Item::Changed { .. } => changed = true,
            Item::Left { .. } => left = true,
            Item::End => break,
            _ => {}
        }
    }
    talk.say(&Taken::Done).unwrap();
    assert_eq!(sender.join().unwrap(), (changed, left));
    assert_eq!((bytes == SIZE, left), (whole, !whole));
    assert_eq!(changed, whole && becomes != SIZE);
}

#[test]
fn a_sender_stops_when_the_other_end_can_not_go_on() {
    let mut source = tempfile();
    source.write_all(&vec![7; LENGTH]).unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&source));
    let path = std::fs::read_link(path).unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let sender =
        std::thread::spawn(move || send(&mut Talk::new(theirs, &[]), &path, None, &mut |_| {}));
    let mut talk = Talk::new(ours, &[]);
    loop {
        match talk.hear::<Item>().unwrap() {
            Item::File { .. } => talk.say(&Taken::Have(0)).unwrap(),
            Item::Data(_) => break,
            _ => {}
        }
    }
    talk.say(&Taken::Failed {
        path: "x".into(),
        why: "the disk is full".to_owned(),
    })
    .unwrap();
    talk.let_go();
    let trouble = sender.join().unwrap().unwrap_err();
    assert!(matches!(trouble, Trouble::There { .. }), "{trouble:?}");
}

#[test]
fn a_file_before_one_that_can_not_be_read_is_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    std::fs::create_dir(&source).unwrap();
    let mut file = File::create(source.join("a")).unwrap();
    file.write_all(b"whole").unwrap();
    // Neither a file, a folder nor a link.
    let _socket = UnixListener::bind(source.join("b")).unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let sender =
        std::thread::spawn(move || send(&mut Talk::new(theirs, &[]), &source, None, &mut |_| {}));
    let mut left = Vec::new();
    let mut watch = |step: Step<'_>| {
        if let Step::Left { path, .. } = step {
            left.push(path.to_vec());
        }
    };
    take(&mut Talk::new(ours, &[]), &target, &|_| None, &mut watch).unwrap();
    sender.join().unwrap().unwrap();
    assert_eq!(left, [b"b"]);
    assert_eq!(std::fs::read_to_string(target.join("a")).unwrap(), "whole");
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 1);
}

/// A file of this test's.
fn tempfile() -> File {
    File::create(
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!(
            "copy-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        )),
    )
    .unwrap()
}
