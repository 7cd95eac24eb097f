//! Project and copy, compared through the real `tar`.

use crate::support::{Tree, drift, entry, seed, seeded};
use boxery_sync::DriftClass::{Differs, OnlyLaptop, OnlyVm};
use boxery_sync::{Drift, DriftClass, EntryKind, SyncError, read_tar};
use proptest::prelude::*;
use rstest::rstest;

fn told(rows: &[(&str, DriftClass)]) -> Vec<(String, DriftClass)> {
    rows.iter()
        .map(|(name, class)| ((*name).to_owned(), *class))
        .collect()
}

/// A project with every kind of name and file.
fn awkward() -> Tree {
    let tree = Tree::git();
    tree.write(".gitignore", "*.log\n/target/\n")
        .write("plain.txt", "text\n")
        .write("empty", "")
        .write(b"new\nline", "a name of two lines")
        .write(b"caf\xe9", "a name in Latin-1")
        .write("-rf", "a name like an option")
        .write("back\\nslash", "not a newline")
        .write("tab\there ", "blank at the end")
        .write("*?[", "a name like a pattern")
        .write("run.sh", "#!/bin/sh\n")
        .write("zeros", vec![0; 4096])
        .write("keep.log", "tracked though ignored")
        .write("big", vec![7; 3_000_000])
        .mode("run.sh", 0o755)
        .folder("hollow/inner")
        .link("dangling", "no/such//file/")
        .link("absolute", "/etc/passwd")
        .link("loop", "loop")
        .link("out", "../..")
        .link("folder link", "hollow")
        .link(b"link\n\xff", b"target\n\xfe")
        .link("long link", format!("{}/x", "y".repeat(200)));
    let deep = format!(
        "{}/{}",
        ["d".repeat(90), "e".repeat(90), "f".repeat(90)].join("/"),
        "n".repeat(255)
    );
    tree.write(deep, "a long name")
        .write("n".repeat(100), "exactly a header's name");
    tree.run("git", &["add", "-f", "keep.log"]);
    tree
}

#[test]
fn a_seeded_copy_is_the_same() {
    let project = awkward();
    let copy = seeded(&project);
    assert_eq!(drift(&project, &copy), []);
    let (scan, tree) = (
        project.scan(),
        copy.read_as_copy_of(&project.scan()).unwrap(),
    );
    assert_eq!(scan.snapshot, tree.snapshot);
}

#[test]
fn what_arrives_has_the_arrivals_time_and_no_other_permissions() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let project = Tree::new();
    project
        .write("a", "")
        .write("secret", "")
        .write("tool", "")
        .mode("secret", 0o600)
        .mode("tool", 0o700);
    let copy = Tree::new();
    let mut stream = Vec::new();
    boxery_sync::write_seed(&project.scan(), 1_234_567_890, &mut stream, |_| {}).unwrap();
    let listing = Tree::new();
    listing.write("s.tar", &stream);
    listing.run("tar", &["-xf", "s.tar"]);
    assert_eq!(listing.at("a").metadata().unwrap().mtime(), 1_234_567_890);
    copy.unpack(&stream);
    assert!(copy.at("a").metadata().unwrap().mtime() > 1_234_567_890);
    let executable = |name| copy.at(name).metadata().unwrap().permissions().mode() & 0o111 != 0;
    assert!(!executable("secret") && executable("tool"));
}

#[rstest]
#[case::edited("printf 'text!' >plain.txt", "", &[("plain.txt", Differs)])]
#[case::same_size("printf 'tExt\\n' >plain.txt", "", &[("plain.txt", Differs)])]
#[case::edited_there("", "echo other >plain.txt", &[("plain.txt", Differs)])]
#[case::new_here("mkdir sub; : >sub/new", "", &[("sub/new", OnlyLaptop)])]
#[case::new_there("", "mkdir sub; : >sub/new", &[("sub/new", OnlyVm)])]
#[case::gone_here("rm empty", "", &[("empty", OnlyVm)])]
#[case::gone_there("", "rm empty", &[("empty", OnlyLaptop)])]
#[case::executable("chmod 755 plain.txt", "", &[("plain.txt", Differs)])]
#[case::other_permissions("chmod 600 plain.txt", "", &[])]
#[case::link_moved("", "ln -sfn elsewhere dangling", &[("dangling", Differs)])]
#[case::file_became_link("", "ln -sf empty plain.txt", &[("plain.txt", Differs)])]
#[case::file_became_folder("", "rm empty; mkdir empty", &[("empty", Differs)])]
#[case::file_became_full_folder("rm empty; mkdir empty; : >empty/now", "", &[("empty", Differs), ("empty/now", OnlyLaptop)])]
#[case::empty_folder_here("mkdir void", "", &[("void", OnlyLaptop)])]
#[case::empty_folder_there("", "mkdir void", &[("void", OnlyVm)])]
#[case::build_output("", "mkdir -p target/debug; echo x | tee target/debug/app hollow/inner/a.log", &[])]
#[case::folder_with_ignored_files_only("", "mkdir cache; : >cache/a.log", &[])]
#[case::tracked_though_ignored("echo new >keep.log", "", &[("keep.log", Differs)])]
#[case::git_folder_there("", "mkdir .git hollow/.git; : >.git/HEAD; : >hollow/.git/HEAD", &[])]
#[case::marker("", "echo mine >.boxery-copy", &[])]
#[case::ignore_file_there_changes_nothing("", "mkdir sub; echo '*' >sub/.gitignore; : >sub/x", &[("sub/.gitignore", OnlyVm), ("sub/x", OnlyVm)])]
#[case::hard_link("", "ln plain.txt second", &[("second", OnlyVm)])]
fn each_edit_is_told_exactly(
    #[case] here: &str,
    #[case] there: &str,
    #[case] want: &[(&str, DriftClass)],
) {
    let project = awkward();
    let copy = seeded(&project);
    project.run("sh", &["-ec", here]);
    copy.run("sh", &["-ec", there]);
    assert_eq!(drift(&project, &copy), told(want));
}

#[test]
fn the_summary_is_one_line_with_five_names_and_the_counts() {
    let (project, copy) = (Tree::new(), Tree::new());
    for name in ["a", "b\nc", "d", "e"] {
        project.write(name, "here");
        copy.write(name, "there");
    }
    project.write("f", "").write("g", "");
    copy.write("0", "");
    let scan = project.scan();
    let drift = Drift::between(
        &scan.snapshot,
        &copy.read_as_copy_of(&scan).unwrap().snapshot,
    );
    assert_eq!(
        drift.summary("dev"),
        "the copy on dev isn't the same as the project: a, b\\nc, d, e, f and 2 more \
         (4 differ, 2 only on the laptop, 1 only on dev)"
    );
}

#[test]
fn a_stream_cut_anywhere_is_an_error_and_never_a_shorter_tree() {
    let project = Tree::new();
    project
        .write("a", "one")
        .write("b", vec![0; 2048])
        .write("c/d", "three")
        .link("l", "a");
    let stream = seed(&project);
    let scan = project.scan();
    // The end mark is 1024 zero bytes; its first half ends the archive.
    for end in 0..stream.len() - 1024 {
        let read = read_tar(&stream[..end], &scan.rules);
        assert!(
            matches!(read, Err(SyncError::Truncated | SyncError::Stream(_))),
            "cut at {end} of {}: {read:?}",
            stream.len()
        );
    }
    assert_eq!(
        read_tar(&stream[..], &scan.rules).unwrap().snapshot,
        scan.snapshot
    );
}

#[rstest]
#[case::absolute("/etc/passwd")]
#[case::parent("../up")]
#[case::inner_parent("a/../../up")]
fn a_name_that_leads_out_is_an_error(#[case] name: &str) {
    let tree = Tree::new();
    let mut header = tar::Header::new_gnu();
    header.set_size(0);
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_cksum();
    let mut builder = tar::Builder::new(Vec::new());
    builder.append(&header, std::io::empty()).unwrap();
    let read = read_tar(&builder.into_inner().unwrap()[..], &tree.scan().rules);
    assert!(matches!(read, Err(SyncError::Outside { .. })), "{read:?}");
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_named() {
    let project = Tree::new();
    project
        .write("first", vec![1; 300_000])
        .write("second", "quiet");
    let scan = project.scan();
    let mut stream = Vec::new();
    let mut grown = false;
    let report = boxery_sync::write_seed(&scan, 0, &mut stream, |_| {
        if !std::mem::replace(&mut grown, true) {
            project.write("first", vec![2; 1000]);
        }
    });
    assert_eq!(report.unwrap().unsettled, [entry("first")]);
    // The stream is whole all the same.
    let tree = read_tar(&stream[..], &scan.rules).unwrap();
    assert_eq!(tree.snapshot.get(&entry("first")).unwrap().size, 300_000);
    assert_eq!(
        tree.snapshot.get(&entry("second")),
        scan.snapshot.get(&entry("second"))
    );
}

#[test]
fn a_file_that_is_gone_when_it_is_sent_is_named() {
    let project = Tree::new();
    project.write("a", "").write("b", "").link("c", "a");
    let scan = project.scan();
    std::fs::remove_file(project.at("a")).unwrap();
    std::fs::remove_file(project.at("c")).unwrap();
    let report = boxery_sync::write_seed(&scan, 0, Vec::new(), |_| {}).unwrap();
    assert_eq!(
        (report.gone, report.files),
        (vec![entry("a"), entry("c")], 1)
    );
}

#[test]
fn pax_streams_are_read_too() {
    let project = awkward();
    let (scan, copy) = (project.scan(), seeded(&project));
    let stream = copy.run("tar", &["--format=posix", "-cf", "-", "."]);
    assert_eq!(
        read_tar(&stream[..], &scan.rules).unwrap().snapshot,
        scan.snapshot
    );
}

#[test]
fn folders_know_whether_they_are_empty() {
    let project = Tree::new();
    project
        .folder("void")
        .write("full/a", "")
        .write(".gitignore", "*.o\n")
        .write("ignored/a.o", "");
    let scan = project.scan();
    let empty = |name| match scan.snapshot.get(&entry(name)).unwrap().kind {
        EntryKind::Folder { empty } => empty,
        other => panic!("{name} is {other:?}"),
    };
    assert_eq!(["void", "full", "ignored"].map(empty), [true, false, false]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Any tree of any names and contents arrives as it was.
    #[test]
    fn any_tree_arrives_as_it_was(
        files in prop::collection::btree_map(
            prop::collection::vec(prop::collection::vec(1u8..=255, 1..40), 1..4),
            prop::collection::vec(any::<u8>(), 0..2000),
            0..12,
        ),
    ) {
        let project = Tree::new();
        for (components, content) in files {
            let parts: Vec<Vec<u8>> = components
                .into_iter()
                .map(|part| part.into_iter().filter(|b| *b != b'/').collect::<Vec<u8>>())
                .filter(|part| !matches!(&part[..], b"" | b"." | b".." | b".git" | b".gitignore" | b".boxeryignore"))
                .collect();
            let name = parts.join(&b'/');
            // A file may stand where another name needs a folder, and the other way round.
            let path = project.at(&name);
            if name.is_empty() || path.is_dir() || path.ancestors().skip(1).any(std::path::Path::is_file) {
                continue;
            }
            project.write(&name, content);
        }
        let (scan, copy) = (project.scan(), seeded(&project));
        prop_assert_eq!(copy.read_as_copy_of(&scan).unwrap().snapshot, scan.snapshot);
    }
}
