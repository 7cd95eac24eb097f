//! A project and its copy, made and compared by the engine.

use crate::support::{Pair, Tree, entry};
use boxery_sync::EntryKind;
use proptest::prelude::*;
use rstest::rstest;

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
fn a_first_copy_is_the_same() {
    let pair = Pair::synced(awkward());
    assert_eq!(pair.drift(), [""; 0]);
    // What git alone knows of is in it too.
    assert!(pair.copy.at("keep.log").is_file() && !pair.copy.at(".git").exists());
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
    project.run("touch", &["-d", "2001-02-03", "a"]);
    let before = project.at("a").metadata().unwrap().mtime();
    let pair = Pair::synced(project);
    assert!(pair.copy.at("a").metadata().unwrap().mtime() > before + 1_000_000);
    let executable = |name| {
        let found = pair.copy.at(name).metadata().unwrap();
        found.permissions().mode() & 0o111 != 0
    };
    assert!(!executable("secret") && executable("tool"));
}

#[rstest]
#[case::edited("printf 'text!' >plain.txt", "", &["> plain.txt"])]
#[case::same_size("printf 'tExt\\n' >plain.txt", "", &["> plain.txt"])]
#[case::edited_there("", "echo other >plain.txt", &["< plain.txt"])]
#[case::edited_on_both("echo here >plain.txt", "echo there >plain.txt", &["! plain.txt"])]
#[case::the_same_edit_on_both("echo x >plain.txt", "echo x >plain.txt", &[])]
#[case::new_here("mkdir sub; : >sub/new", "", &["> sub", "> sub/new"])]
#[case::new_there("", "mkdir sub; : >sub/new", &["< sub", "< sub/new"])]
#[case::gone_here("rm empty", "", &["> empty"])]
#[case::gone_there("", "rm empty", &["< empty"])]
#[case::executable("chmod 755 plain.txt", "", &["> plain.txt"])]
#[case::other_permissions("chmod 600 plain.txt", "", &[])]
#[case::link_moved("", "ln -sfn elsewhere dangling", &["< dangling"])]
#[case::file_became_link("", "ln -sf empty plain.txt", &["< plain.txt"])]
#[case::file_became_folder("", "rm empty; mkdir empty", &["< empty"])]
#[case::file_became_full_folder("rm empty; mkdir empty; : >empty/now", "", &["> empty", "> empty/now"])]
#[case::empty_folder_here("mkdir void", "", &["> void"])]
#[case::empty_folder_there("", "mkdir void", &["< void"])]
#[case::build_output("", "mkdir -p target/debug; echo x | tee target/debug/app hollow/inner/a.log", &[])]
#[case::folder_with_ignored_files_only("", "mkdir cache; : >cache/a.log", &[])]
#[case::tracked_though_ignored("echo new >keep.log", "", &["> keep.log"])]
#[case::git_folder_there("", "mkdir .git hollow/.git; : >.git/HEAD; : >hollow/.git/HEAD", &[])]
#[case::ignore_file_there_changes_nothing("", "mkdir sub; echo '*' >sub/.gitignore; : >sub/x", &["< sub", "< sub/.gitignore", "< sub/x"])]
#[case::hard_link("", "ln plain.txt second", &["< second"])]
fn each_edit_is_told_exactly_and_synced(
    #[case] here: &str,
    #[case] there: &str,
    #[case] want: &[&str],
) {
    let pair = Pair::synced(awkward());
    pair.project.run("sh", &["-ec", here]);
    pair.copy.run("sh", &["-ec", there]);
    assert_eq!(pair.drift(), want);
    pair.sync();
    let mut left = want.to_vec();
    left.retain(|line| line.starts_with('!'));
    assert_eq!(pair.drift(), left);
}

#[test]
fn what_git_runs_or_reads_settings_from_is_found() {
    let project = Tree::git();
    project
        .write("team/gitconfig", "")
        .write("hooks/pre-commit", "");
    for (name, value) in [
        ("core.hooksPath", "hooks"),
        ("core.fsmonitor", "true"),
        ("include.path", "../team/gitconfig"),
        ("includeIf.gitdir:/nowhere.path", "/elsewhere"),
    ] {
        project.run("git", &["config", "--add", name, value]);
    }
    let root = project.root().canonicalize_utf8().unwrap();
    let found = boxery_sync::run_by_git(&root).unwrap();
    assert!(found.contains(&entry("hooks")), "{found:?}");
    assert!(found.contains(&entry("team/gitconfig")), "{found:?}");
    assert!(!found.contains(&entry("true")), "{found:?}");
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
        let pair = Pair::synced(project);
        prop_assert_eq!(pair.drift(), Vec::<String>::new());
    }
}
