//! `.git` moves: commits, branches, HEAD and the index, both ways.

use rstest::rstest;

use crate::git_scene::{Repositories, STORY, Side};

/// What one side alone does, the other side gets, whichever it is.
#[rstest]
fn what_one_side_does_the_other_gets(
    #[values("native", "system")] pipe: &str,
    #[values(Side::Laptop, Side::Vm)] side: Side,
) {
    let both = Repositories::new(pipe, STORY);
    both.sync();
    both.same();
    // Each row begins where the one before it ended.
    for (what, script) in [
        ("commits", "echo x >> a; git commit -qam 'a commit'"),
        ("amends", "echo y >> a; git commit -qa --amend -m amended"),
        (
            "commits twice",
            "echo 1 > n; git add n; git commit -qm 1; echo 2 > n; git commit -qam 2",
        ),
        (
            "squashes",
            "git reset -q --soft HEAD~2; git commit -qm squashed",
        ),
        ("goes back", "git reset -q --hard HEAD~1"),
        ("stages", "echo s > s; git add s; echo t >> a; git add a"),
        ("stages more", "git rm -q --cached b"),
        ("unstages", "git reset -q"),
        ("commits what is left", "git add -A; git commit -qm rest"),
        ("makes a branch", "git branch topic/one"),
        ("renames a branch", "git branch -m topic/one topic/two"),
        (
            "puts a branch in the place of a folder",
            "git branch -D topic/two; git branch topic",
        ),
        (
            "puts a folder in the place of a branch",
            "git branch -m topic topic/deep/er",
        ),
        ("moves another branch", "git branch -f other main"),
        ("deletes a branch", "git branch -D topic/deep/er"),
        (
            "checks out another branch",
            "git checkout -q -f -B other v1",
        ),
        (
            "makes and checks out",
            "git checkout -q -b new; echo n > new; git add new; git commit -qm new",
        ),
        ("renames its own branch", "git branch -m new newer"),
        (
            "renames its own branch into a folder",
            "git branch -m newer newer/still",
        ),
        ("detaches", "git checkout -q --detach"),
        (
            "commits detached",
            "echo d > d; git add d; git commit -qm detached",
        ),
        ("comes back", "git checkout -q -f main"),
        ("merges", "git merge -q --no-ff -m merged newer/still"),
        ("rebases", "git checkout -q newer/still; git rebase -q main"),
        (
            "begins anew",
            "git checkout -q --orphan fresh; git rm -rfq .; echo f > f; git add f; git commit -qm fresh",
        ),
        ("tags", "git tag light; git tag -a -m annotated heavy"),
        (
            "moves a tag",
            "git tag -f light HEAD >/dev/null; git tag -f -a -m again heavy main >/dev/null",
        ),
        ("deletes a tag", "git tag -d light"),
        ("notes", "git notes add -m noted"),
        (
            "notes again",
            "git notes add -f -m 'noted again' 2>/dev/null",
        ),
        (
            "packs",
            "git gc -q --prune=now; echo p > p; git add p; git commit -qm packed",
        ),
        (
            "unborn",
            "git checkout -q --orphan unborn; git rm -rfq --cached .",
        ),
        ("stages unborn", "echo u > u; git add u"),
    ] {
        both.sh(side, script);
        let acted = both.standing(side);
        let said = both.sync();
        assert_eq!(both.standing(side), acted, "{side:?} {what}: {said}");
        assert_eq!(
            both.standing(side.other()),
            acted,
            "{side:?} {what}: {said}"
        );
        if pipe == "native" {
            let again = both.sync();
            assert!(!again.contains("git:"), "{side:?} {what}: {again}");
        }
    }
}

/// A repository of every form is the same on the VM after the first sync and after a
/// commit there.
#[rstest]
#[case::loose(STORY)]
#[case::packed(
    "git init -q .; echo 1 > a; git add a; git commit -qm 1; git branch x; git pack-refs --all; git gc -q"
)]
#[case::reftable(
    "git init -q --ref-format=reftable .; echo 1 > a; git add a; git commit -qm 1; git branch x"
)]
#[case::sha256("git init -q --object-format=sha256 .; echo 1 > a; git add a; git commit -qm 1")]
#[case::empty("git init -q .; echo 1 > a")]
#[case::staged_only("git init -q .; echo 1 > a; git add a")]
#[case::detached(
    "git init -q .; echo 1 > a; git add a; git commit -qm 1; git checkout -q --detach; git branch -D main"
)]
#[case::other_first_branch("git init -q -b trunk/one .; echo 1 > a; git add a; git commit -qm 1")]
#[case::split_index(
    "git init -q .; echo 1 > a; git add a; git commit -qm 1; git config core.splitIndex true; git update-index --split-index"
)]
#[case::executable_and_link(
    "git init -q .; echo 1 > a; chmod +x a; ln -s a l; git add .; git commit -qm 1"
)]
#[case::old_modes("git init -q .; echo 1 > a; mkdir d; echo 2 > d/b; git add .; git commit -qm 1
    sub=$(git rev-parse HEAD:d)
    tree=$( (printf '100644 a\\0'; git rev-parse HEAD:a | xxd -r -p; printf '040000 d\\0'; echo $sub | xxd -r -p) |
        git hash-object -t tree -w --literally --stdin)
    git update-ref refs/heads/main $(git commit-tree -p HEAD -m old $tree); git reset -q")]
fn repositories_of_every_form_are_the_same_on_the_vm(
    #[case] story: &str,
    #[values("native", "system")] pipe: &str,
) {
    let both = Repositories::new(pipe, story);
    both.sync();
    both.same();
    both.sh(Side::Vm, "echo 2 > more; git add more; git commit -qm more");
    let there = both.standing(Side::Vm);
    both.sync();
    assert_eq!(both.same(), there);
}

/// What moved on both sides stays on each, under a name on the laptop, however often
/// it is tried.
#[rstest]
#[case::commits(
    "echo l > l; git add l; git commit -qm l",
    "echo v > v; git add v; git commit -qm v",
    "refs/heads/main",
    "main moved here and on dev"
)]
#[case::amend_and_commit(
    "git commit -q --amend -m l",
    "echo v > v; git add v; git commit -qm v",
    "refs/heads/main",
    "main moved here and on dev"
)]
#[case::reset_and_commit(
    "git reset -q --hard HEAD~1",
    "echo v > v; git add v; git commit -qm v",
    "refs/heads/main",
    "main moved here and on dev"
)]
#[case::other_branch(
    "git branch -f other $(git commit-tree -m l -p other HEAD^{tree})",
    "git branch -f other $(git commit-tree -m v -p other HEAD^{tree})",
    "refs/heads/other",
    "other moved here and on dev"
)]
#[case::new_branch(
    "git branch n $(git commit-tree -m l HEAD^{tree})",
    "git branch n $(git commit-tree -m v HEAD^{tree})",
    "refs/heads/n",
    "n moved here and on dev"
)]
#[case::tag(
    "git tag t main",
    "git tag t other",
    "refs/tags/t",
    "tag t moved here and on dev"
)]
fn what_moved_on_both_sides_is_a_named_conflict(
    #[case] laptop: &str,
    #[case] vm: &str,
    #[case] name: &str,
    #[case] words: &str,
    #[values("native", "system")] pipe: &str,
) {
    let both = Repositories::new(pipe, STORY);
    both.sync();
    both.sh(Side::Laptop, laptop);
    both.sh(Side::Vm, vm);
    let (here, there) = (both.standing(Side::Laptop), both.standing(Side::Vm));
    let kept = name.replacen("refs/", "refs/boxery/dev/", 1);
    for _ in 0..2 {
        let said = both.sync_apart();
        assert!(
            said.starts_with("exit: 1") && said.contains(words),
            "{said}"
        );
        assert!(said.contains(&kept), "{said}");
        assert_eq!(both.standing(Side::Laptop).refs, here.refs);
        assert_eq!(both.standing(Side::Vm).refs, there.refs);
        assert_eq!(both.standing(Side::Laptop).index, here.index);
        assert_eq!(both.standing(Side::Vm).index, there.index);
        let theirs = both.sh(Side::Vm, &format!("git rev-parse {name}"));
        assert_eq!(both.kept(&kept), theirs.trim());
    }
}

/// A conflict ends when the laptop's branch holds what the VM's does.
#[rstest]
#[case::merged("git add -A; git stash -q; git merge -q -m merged refs/boxery/dev/heads/main")]
#[case::theirs("git add -A; git reset -q --hard refs/boxery/dev/heads/main")]
#[case::ours("git add -A; git stash -q; git merge -q -s ours -m ours refs/boxery/dev/heads/main")]
fn a_conflict_ends_with_a_merge_or_a_reset(
    #[case] script: &str,
    #[values("commit -q --amend -m v", "commit -q --allow-empty -m v")] there: &str,
) {
    let both = Repositories::new("native", STORY);
    both.sync();
    both.sh(Side::Laptop, "echo l > l; git add l; git commit -qm l");
    both.sh(Side::Vm, &format!("git {there}"));
    let said = both.sync_apart();
    assert!(said.contains("main moved here and on dev"), "{said}");
    // There may be nothing to stash.
    both.sh(Side::Laptop, script);
    let here = both.standing(Side::Laptop);
    both.sync();
    assert_eq!(both.same(), here);
    assert_eq!(both.kept("refs/boxery/dev/heads/main"), "");
}

/// HEAD and the index of both sides stay where each has something of its own.
#[rstest]
#[case::other_branches(
    "git checkout -q other",
    "git checkout -q -b new",
    "HEAD moved on both sides"
)]
#[case::switched_and_committed(
    "git checkout -q other",
    "git commit -q --allow-empty -m v",
    "HEAD moved on both sides"
)]
#[case::staged(
    "echo l > l; git add l",
    "echo v > v; git add v",
    "both have something else staged"
)]
#[case::staged_under_a_commit(
    "git commit -q --allow-empty -m l",
    "echo v > v; git add v",
    "something is staged on the VM"
)]
#[case::staged_over_a_commit(
    "echo l > l; git add l",
    "git commit -q --allow-empty -m v",
    "something is staged here"
)]
fn head_and_index_stay_where_both_have_their_own(
    #[case] laptop: &str,
    #[case] vm: &str,
    #[case] words: &str,
) {
    let both = Repositories::new("native", STORY);
    both.sync();
    both.sh(Side::Laptop, laptop);
    both.sh(Side::Vm, vm);
    let (here, there) = (both.standing(Side::Laptop), both.standing(Side::Vm));
    for _ in 0..2 {
        let said = both.sync_apart();
        assert!(
            said.starts_with("exit: 1") && said.contains(words),
            "{said}"
        );
        for (side, before) in [(Side::Laptop, &here), (Side::Vm, &there)] {
            let after = both.standing(side);
            assert_eq!((&after.head, &after.index), (&before.head, &before.index));
        }
    }
}

/// Both sides do something that has nothing to do with the other's.
#[test]
fn what_is_apart_moves_both_ways_at_once() {
    let both = Repositories::new("native", STORY);
    both.sync();
    both.sh(
        Side::Laptop,
        "git branch here; git tag mine; git branch -D other",
    );
    both.sh(
        Side::Vm,
        "git commit -q --allow-empty -m v; git branch there",
    );
    let said = both.sync();
    let refs = both.same().refs;
    for name in ["heads/here", "heads/there", "tags/mine"] {
        assert!(refs.contains(name), "{refs}");
    }
    assert!(!refs.contains("heads/other"), "{refs}");
    assert!(
        said.contains("git: there from dev: new") && said.contains("git: here to dev: new"),
        "{said}"
    );
}

/// What a deletion on the VM would lose keeps a name on the laptop.
#[test]
fn what_was_deleted_on_the_vm_is_found_again() {
    let both = Repositories::new("native", STORY);
    both.sh(
        Side::Laptop,
        "git branch lone $(git commit-tree -m lone HEAD^{tree}); git tag -a -m t t",
    );
    both.sync();
    let (lone, tag) = (both.kept("lone"), both.kept("t"));
    both.sh(
        Side::Vm,
        "git branch -D lone; git branch -D other; git tag -d t",
    );
    let said = both.sync();
    let was = |oid: &str, name: &str| format!("refs/boxery/dev/was/{}/{name}", &oid[..8]);
    assert_eq!(both.kept(&was(&lone, "heads/lone")), lone, "{said}");
    assert_eq!(both.kept(&was(&tag, "tags/t")), tag, "{said}");
    // `other` is in the history of `main`.
    let all = both.sh(
        Side::Laptop,
        "git for-each-ref --format='%(refname)' refs/boxery",
    );
    assert_eq!(all.lines().count(), 2, "{all}");
    assert!(said.contains(&was(&lone, "heads/lone")), "{said}");
}
