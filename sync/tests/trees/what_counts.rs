//! Which files of a real tree count.

use crate::support::{Tree, names};
use boxery_sync::{ScanOptions, SyncError};
use rstest::rstest;

#[test]
fn in_a_repository_tracked_and_unignored_files_count() {
    let tree = Tree::git();
    tree.write(".gitignore", "*.log\ntarget/\n!kept.log\n")
        .write("src/main.rs", "fn main() {}")
        .write("new.txt", "untracked")
        .write("noise.log", "ignored")
        .write("kept.log", "back in")
        .write("target/debug/out", "built");
    tree.run("git", &["add", "src"]);
    assert_eq!(
        names(&tree.scan()),
        [".gitignore", "kept.log", "new.txt", "src", "src/main.rs"]
    );
}

#[test]
fn a_tracked_file_counts_though_it_is_ignored() {
    let tree = Tree::git();
    tree.write(".gitignore", "*.log\nbuild/\n")
        .write("keep.log", "tracked")
        .write("build/keep/deep.txt", "tracked in an ignored folder")
        .write("build/other.txt", "ignored");
    tree.run("git", &["add", "-f", "keep.log", "build/keep/deep.txt"]);
    assert_eq!(
        names(&tree.scan()),
        [".gitignore", "build/keep/deep.txt", "keep.log"]
    );
}

#[test]
fn a_tracked_file_that_is_deleted_does_not_count() {
    let tree = Tree::git();
    tree.write("gone.txt", "").write("here.txt", "");
    tree.run("git", &["add", "."]);
    std::fs::remove_file(tree.at("gone.txt")).unwrap();
    assert_eq!(names(&tree.scan()), ["here.txt"]);
}

#[test]
fn a_tracked_file_behind_a_link_is_never_read() {
    let (tree, outside) = (Tree::git(), Tree::new());
    outside.write("secret", "not the project's");
    tree.write(".gitignore", "data\n")
        .write("data/secret", "the project's");
    tree.run("git", &["add", "-f", "data/secret"]);
    std::fs::remove_dir_all(tree.at("data")).unwrap();
    tree.link("data", outside.path().to_str().unwrap());
    assert_eq!(names(&tree.scan()), [".gitignore"]);
}

#[test]
fn outside_a_repository_everything_but_the_ignored_counts() {
    let tree = Tree::new();
    tree.write(".gitignore", "*.o\n")
        .write(".boxeryignore", "private/\n!main.o\n")
        .write("a.o", "")
        .write("main.o", "")
        .write("private/key", "")
        .write(".hidden", "")
        .write(".ignore", "code.c\n")
        .write("code.c", "");
    assert_eq!(
        names(&tree.scan()),
        [
            ".boxeryignore",
            ".gitignore",
            ".hidden",
            ".ignore",
            "code.c",
            "main.o"
        ]
    );
}

#[test]
fn dot_git_never_counts_at_any_level() {
    let tree = Tree::git();
    tree.write("vendor/lib/.git/config", "x")
        .write("vendor/lib/a.c", "")
        .write("w/.git", "gitdir: x");
    assert_eq!(
        names(&tree.scan()),
        ["vendor", "vendor/lib", "vendor/lib/a.c", "w"]
    );
}

#[test]
fn a_part_of_a_repository_obeys_the_rules_above_it() {
    let tree = Tree::git();
    tree.write(".gitignore", "/app/dist/\n*.tmp\n")
        .write("app/dist/x", "")
        .write("app/a.tmp", "")
        .write("app/main.c", "")
        .write("other.c", "");
    tree.run("git", &["add", "-f", "app/a.tmp"]);
    let scan = boxery_sync::Scan::read(&tree.root().join("app"), &ScanOptions::default()).unwrap();
    assert_eq!(names(&scan), ["a.tmp", "main.c"]);
}

#[test]
fn the_repositorys_and_the_users_own_excludes_hold() {
    let tree = Tree::git();
    tree.write(".git/info/exclude", "/scratch\n")
        .write("scratch", "")
        .write("a~", "")
        .write("a", "");
    tree.write(".git/excludes", "*~\n");
    let excludes = tree.root().join(".git/excludes");
    let options = ScanOptions {
        user_excludes: Some(excludes.clone()),
    };
    // The repository's own setting comes first.
    assert_eq!(
        names(&boxery_sync::Scan::read(tree.root(), &options).unwrap()),
        ["a", "a~"]
    );
    tree.run("git", &["config", "core.excludesFile", excludes.as_str()]);
    assert_eq!(names(&tree.scan()), ["a"]);
}

#[test]
fn a_worktree_is_a_repository_too() {
    let tree = Tree::git();
    tree.write("main/.gitignore", "*.log\n").write("main/a", "");
    tree.run(
        "git",
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ],
    );
    tree.run("git", &["worktree", "add", "-q", "--detach", "side"]);
    tree.write("side/.gitignore", "*.log\n")
        .write("side/a", "")
        .write("side/b.log", "");
    tree.run("git", &["-C", "side", "add", "-f", "b.log"]);
    let scan = boxery_sync::Scan::read(&tree.root().join("side"), &ScanOptions::default()).unwrap();
    assert_eq!(names(&scan), [".gitignore", "a", "b.log"]);
}

#[test]
fn sockets_and_fifos_are_skipped_and_named() {
    let tree = Tree::new();
    tree.write("a", "");
    let _socket = std::os::unix::net::UnixListener::bind(tree.at("socket")).unwrap();
    tree.run("mkfifo", &["fifo"]);
    let scan = tree.scan();
    assert_eq!(names(&scan), ["a"]);
    let mut skipped: Vec<String> = scan.skipped.iter().map(ToString::to_string).collect();
    skipped.sort();
    assert_eq!(skipped, ["fifo", "socket"]);
}

#[test]
fn a_marker_counts_only_below_the_top() {
    let tree = Tree::new();
    tree.write(".boxery-copy", "").write("sub/.boxery-copy", "");
    assert_eq!(names(&tree.scan()), ["sub", "sub/.boxery-copy"]);
}

#[test]
fn a_broken_pattern_and_a_byte_order_mark_do_no_harm() {
    let tree = Tree::new();
    tree.write(".gitignore", b"\xef\xbb\xbf*.a\n[\n\xff\xfe\n*.b\r\n")
        .write("x.a", "")
        .write("x.b", "")
        .write("x.c", "");
    assert_eq!(names(&tree.scan()), [".gitignore", "x.c"]);
}

#[rstest]
#[case::missing("nowhere")]
#[case::a_file("file")]
fn what_is_no_folder_is_an_error_and_not_an_empty_project(#[case] name: &str) {
    let tree = Tree::new();
    tree.write("file", "");
    let error = boxery_sync::Scan::read(&tree.root().join(name), &ScanOptions::default());
    assert!(matches!(error, Err(SyncError::Root { .. })), "{error:?}");
}

#[test]
fn a_repository_that_git_refuses_is_an_error_and_not_an_empty_project() {
    let tree = Tree::new();
    tree.write(".git", "gitdir: /nonexistent/worktree\n")
        .write("a", "");
    let error = boxery_sync::Scan::read(tree.root(), &ScanOptions::default());
    assert!(matches!(error, Err(SyncError::Git { .. })), "{error:?}");
}

/// Every name in a random tree counts exactly when git lists it.
#[test]
fn git_itself_agrees_about_awkward_patterns() {
    let tree = Tree::git();
    tree.write(
        ".gitignore",
        "# a comment\n\\#hash\n*.log\n!important.log\n/top\nfolder/\n**/deep/*.x\na/**/z\n\\!bang\ntrail \nq?.t\n[ab].s\nfoo/*\n!foo/bar\n",
    );
    tree.write("sub/.gitignore", "!*.log\n/only\n");
    for name in [
        "#hash",
        "!bang",
        "x.log",
        "important.log",
        "top",
        "sub/top",
        "sub/y.log",
        "sub/only",
        "sub/n/only",
        "folder/inside",
        "sub/folder/inside",
        "c/deep/1.x",
        "c/deep/1.y",
        "a/z",
        "a/b/z",
        "a/b/c/z",
        "trail",
        "q1.t",
        "q12.t",
        "a.s",
        "c.s",
        "foo/one",
        "foo/bar/two",
        "foo/baz/three",
        "with space/x.log",
        "ü.log",
        "plain",
    ] {
        tree.write(name, "");
    }
    let listed = tree.run(
        "git",
        &[
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ],
    );
    let mut want: Vec<String> = listed
        .split(|b| *b == 0)
        .filter(|n| !n.is_empty())
        .map(|n| String::from_utf8(n.into()).unwrap())
        .collect();
    want.sort();
    let scan = tree.scan();
    let files = scan
        .snapshot
        .entries()
        .iter()
        .filter(|e| matches!(e.kind, boxery_sync::EntryKind::File { .. }));
    let got: Vec<String> = files.map(|e| e.path.to_string()).collect();
    assert_eq!(got, want);
}
