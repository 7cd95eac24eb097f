//! What the sender of a copy does about files that change under its hands.

#![expect(clippy::unwrap_used, reason = "a test that can't talk fails")]

use std::fs::File;
use std::io::Write as _;
use std::os::unix::net::UnixStream;

use boxery_wire::copy::{Step, Talk, Trouble, send};
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
