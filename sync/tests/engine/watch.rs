//! What the kernel tells of changes, against what a reading of the tree finds.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test panics, and its trees need no crash safety"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use boxery_sync::EntryPath;
use boxery_sync::watch::{Moment, Since, Watch};
use proptest::prelude::*;
use rstest::rstest;

/// One change by somebody who knows nothing of boxery.
#[derive(Debug, Clone)]
enum Edit {
    Write(String, u8),
    Patch(String),
    Chmod(String, bool),
    Link(String),
    Folder(String),
    Remove(String),
    Rename(String, String),
    Swap(String, String),
}

fn name() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec!["a", "b", "c", "a.b"]);
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.join("/"))
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        4 => (name(), any::<u8>()).prop_map(|(name, byte)| Edit::Write(name, byte)),
        2 => name().prop_map(Edit::Patch),
        1 => (name(), any::<bool>()).prop_map(|(name, on)| Edit::Chmod(name, on)),
        1 => name().prop_map(Edit::Link),
        3 => name().prop_map(Edit::Folder),
        3 => name().prop_map(Edit::Remove),
        3 => (name(), name()).prop_map(|(from, to)| Edit::Rename(from, to)),
        2 => (name(), name()).prop_map(|(one, other)| Edit::Swap(one, other)),
    ]
}

/// Do it where it can be done.
fn make(top: &Path, edit: &Edit) {
    let at = |name: &str| top.join(name);
    match edit {
        Edit::Write(name, byte) => drop(fs::write(at(name), [*byte; 3])),
        // The same size, and perhaps the same content.
        Edit::Patch(name) => {
            if let Ok(mut file) = fs::File::options().write(true).open(at(name)) {
                file.seek(std::io::SeekFrom::Start(1)).unwrap();
                file.write_all(b"x").unwrap();
            }
        }
        Edit::Chmod(name, on) => {
            if at(name).symlink_metadata().is_ok_and(|meta| meta.is_file()) {
                let mode = if *on { 0o755 } else { 0o644 };
                fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        Edit::Link(name) => drop(symlink("a", at(name))),
        Edit::Folder(name) => drop(fs::create_dir(at(name))),
        Edit::Remove(name) => {
            if fs::remove_dir_all(at(name)).is_err() {
                fs::remove_file(at(name)).ok();
            }
        }
        Edit::Rename(from, to) => drop(fs::rename(at(from), at(to))),
        Edit::Swap(one, other) => {
            let away = top.with_extension("away");
            if fs::rename(at(one), &away).is_ok() {
                fs::rename(at(other), at(one)).ok();
                if fs::rename(&away, at(other)).is_err() {
                    fs::remove_dir_all(&away).ok();
                    fs::remove_file(&away).ok();
                }
            }
        }
    }
}

/// What lies where: whether it can be executed, and its content.
type Found = BTreeMap<EntryPath, (bool, Option<Vec<u8>>)>;

/// Read the tree; each folder is watched before it is read.
fn read(top: &Path, watch: &mut Watch) -> Found {
    let mut found = Found::new();
    let mut waiting = vec![None];
    while let Some(folder) = waiting.pop() {
        let folder: Option<EntryPath> = folder;
        watch.folder(folder.as_ref()).unwrap();
        let full = folder
            .as_ref()
            .map_or_else(|| top.to_owned(), |f| top.join(f.as_path()));
        for item in fs::read_dir(full).unwrap() {
            let item = item.unwrap();
            let inside = item.path();
            let inside = inside.strip_prefix(top).unwrap();
            let path = EntryPath::parse(inside.as_os_str().as_encoded_bytes()).unwrap();
            let meta = item.metadata().unwrap();
            if meta.is_dir() {
                waiting.push(Some(path.clone()));
            }
            let content = match (meta.is_file(), meta.is_symlink()) {
                (true, _) => Some(fs::read(item.path()).unwrap()),
                (_, true) => Some(b"link".to_vec()),
                (false, false) => None,
            };
            let executable = meta.is_file() && meta.mode() & 0o100 != 0;
            found.insert(path, (executable, content));
        }
    }
    found
}

fn differing(before: &Found, after: &Found) -> Vec<EntryPath> {
    let paths = before.keys().chain(after.keys());
    let differs = paths.filter(|path| before.get(*path) != after.get(*path));
    differs.cloned().collect()
}

fn is_told(since: &Since, path: &EntryPath) -> bool {
    match since {
        Since::Anything => true,
        Since::Paths(paths) => paths.iter().any(|told| path.is_within(told)),
    }
}

proptest! {
    #[test]
    fn every_change_is_told(rounds in prop::collection::vec(prop::collection::vec(edit(), 0..8), 1..12)) {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("top");
        fs::create_dir(&top).unwrap();
        let mut watch = Watch::open(&top, 1).unwrap();
        let mut before = (watch.now().unwrap(), read(&top, &mut watch));
        for edits in rounds {
            for edit in &edits {
                make(&top, edit);
            }
            let since = watch.since(before.0).unwrap();
            let now = (watch.now().unwrap(), read(&top, &mut watch));
            for path in differing(&before.1, &now.1) {
                prop_assert!(is_told(&since, &path), "{path} after {edits:?}: {since:?}");
            }
            if edits.is_empty() {
                prop_assert_eq!(since, Since::Paths(Vec::new()));
            }
            before = now;
        }
    }
}

fn watched() -> (tempfile::TempDir, std::path::PathBuf, Watch, Moment) {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().join("top");
    fs::create_dir_all(top.join("in/deep")).unwrap();
    fs::write(top.join("file"), "1").unwrap();
    let mut watch = Watch::open(&top, 1).unwrap();
    let moment = watch.now().unwrap();
    read(&top, &mut watch);
    (folder, top, watch, moment)
}

#[test]
fn a_folder_that_is_not_watched_says_nothing() {
    let (_folder, top, mut watch, _) = watched();
    fs::create_dir(top.join("ignored")).unwrap();
    let moment = watch.now().unwrap();
    for number in 0..100 {
        fs::write(top.join(format!("ignored/{number}")), "x").unwrap();
    }
    assert_eq!(watch.since(moment).unwrap(), Since::Paths(Vec::new()));
}

#[test]
fn another_watch_and_a_queue_that_was_too_small_tell_nothing() {
    let (_folder, top, mut watch, moment) = watched();
    let mut other = Watch::open(&top, 2).unwrap();
    assert_eq!(other.since(moment).unwrap(), Since::Anything);
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    for number in 0..limit / 2 + 10 {
        // Made and written: two events at least.
        fs::write(top.join(format!("in/{number}")), "x").unwrap();
    }
    assert_eq!(watch.since(moment).unwrap(), Since::Anything);
    let later = watch.now().unwrap();
    fs::write(top.join("file"), "2").unwrap();
    let file = EntryPath::parse(b"file").unwrap();
    assert_eq!(watch.since(later).unwrap(), Since::Paths(vec![file]));
}

#[rstest]
#[case::moved(false)]
#[case::another_in_its_place(true)]
fn a_top_that_went_elsewhere_tells_nothing(#[case] another: bool) {
    let (folder, top, mut watch, moment) = watched();
    // Under a folder above it, of which the kernel says nothing.
    let (above, away) = (folder.path(), folder.path().with_extension("away"));
    fs::rename(above, &away).unwrap();
    if another {
        fs::create_dir_all(&top).unwrap();
    }
    assert_eq!(watch.since(moment).unwrap(), Since::Anything);
    fs::remove_dir_all(&away).unwrap();
}
