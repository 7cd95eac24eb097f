//! `.git` moves, or says why it doesn't: worktrees, submodules, locks, what is going on,
//! clones that aren't whole, VMs without git, and repositories that would run something.

#![expect(
    clippy::disallowed_methods,
    reason = "a test's files need no crash safety"
)]

use std::fs;
use std::process::Stdio;

use rstest::rstest;

use crate::git_scene::{Repositories, STORY, Side};
use crate::sshd::Vm;
use crate::support::Sandbox;

/// A linked worktree has a copy of its own, which is a repository of its own; the other
/// worktrees' branches stay where they are.
#[rstest]
fn a_linked_worktree_is_a_repository_of_its_own_there(#[values("native", "system")] pipe: &str) {
    let mut both = Repositories::new(pipe, STORY);
    both.sh(Side::Laptop, "git worktree add -q ../linked -b linked");
    let main = both.project.clone();
    both.project = main.parent().unwrap().join("linked");
    both.sync();
    both.same();
    assert!(both.vm.copy().join(".git").is_dir());
    both.sh(Side::Vm, "echo v > v; git add v; git commit -qm v");
    both.sync();
    both.same();
    assert_eq!(both.sh_in(&main, "git status --porcelain"), "");
    // `main` is checked out beside it.
    let before = both.kept("main");
    both.sh(Side::Vm, "git branch -f main HEAD");
    let said = both.sync_apart();
    assert!(
        said.contains("main stays here as it is: another worktree"),
        "{said}"
    );
    assert_eq!(both.kept("main"), before);
    let there = both.head(Side::Vm);
    assert_eq!(
        both.kept("refs/boxery/dev/worktrees/linked/heads/main"),
        there
    );
    assert_eq!(both.sh_in(&main, "git status --porcelain"), "");
}

/// A submodule is data: its files and the commit that the project names move, its own
/// repository doesn't.
#[test]
fn a_submodule_is_never_lost() {
    let both = Repositories::new(
        "native",
        "git init -q ../inner; (cd ../inner; echo i > i; git add i; git commit -qm i)
        git init -q .; echo a > a; git add a; git submodule --quiet add ../inner sub; git commit -qm 1",
    );
    both.sync();
    let gitlink = both.sh(Side::Laptop, "git ls-files -s sub");
    assert!(gitlink.starts_with("160000 "), "{gitlink}");
    assert_eq!(both.sh(Side::Vm, "git ls-files -s sub"), gitlink);
    assert_eq!(
        both.sh(Side::Vm, "cat sub/i; git status --porcelain"),
        "i\n"
    );
    both.sh(
        Side::Vm,
        "echo b >> a; git commit -qam 2; echo c > c; git add -A; git commit -qm 3",
    );
    both.sync();
    both.same();
    assert_eq!(both.sh(Side::Laptop, "git ls-files -s sub"), gitlink);
    assert_eq!(
        both.sh(
            Side::Laptop,
            "git -C sub status --porcelain; git -C sub fsck --no-dangling 2>&1"
        ),
        ""
    );
    // The laptop's own moves on.
    both.sh(
        Side::Laptop,
        "(cd sub; echo j > j; git add j; git commit -qm j); git commit -qam 4",
    );
    both.sync();
    both.same();
}

/// What another git holds is waited for and then left alone; a lock that a crash of ours
/// left isn't in anybody's way.
#[rstest]
fn a_held_index_is_left_alone(#[values(Side::Laptop, Side::Vm)] side: Side) {
    let both = Repositories::new("native", STORY);
    both.sync();
    both.sh(side.other(), "echo x >> a; git commit -qam x");
    let before = both.standing(side);
    both.sh(side, "touch .git/index.lock");
    let said = both.sync_apart();
    assert!(said.contains("another git holds `index.lock`"), "{said}");
    let after = both.standing(side);
    assert_eq!((after.refs, after.index), (before.refs, before.index));
    assert_eq!(both.sh(side, "cat .git/index.lock"), "");
    both.sh(side, "rm .git/index.lock; echo boxery > .git/index.lock; touch -d '5 minutes ago' .git/index.lock");
    both.sync();
    both.same();
}

/// Whatever goes on stays as it is on its side, and moves on once it is over.
#[rstest]
#[case::merge(
    "git merge -q --no-commit --no-ff -s ours clash",
    "a merge is going on",
    "git merge --abort"
)]
#[case::conflict("git merge -q clash || :", "a merge is going on", "git merge --abort")]
#[case::rebase(
    "git rebase -q clash || :",
    "a rebase is going on",
    "git rebase --abort"
)]
#[case::cherry_pick(
    "git cherry-pick clash >/dev/null 2>&1 || :",
    "a cherry-pick is going on",
    "git cherry-pick --abort"
)]
#[case::revert(
    "git revert --no-commit HEAD",
    "a revert is going on",
    "git revert --abort"
)]
#[case::bisect(
    "git bisect start -q HEAD v1 >/dev/null",
    "a bisection is going on",
    "git bisect reset >/dev/null 2>&1"
)]
fn what_is_going_on_is_not_disturbed(
    #[case] begin: &str,
    #[case] words: &str,
    #[case] end: &str,
    #[values(Side::Laptop, Side::Vm)] side: Side,
) {
    let both = Repositories::new("native", STORY);
    both.sh(
        Side::Laptop,
        "git checkout -q -b clash v1; echo clash >> a; git commit -qam clash; git checkout -q main",
    );
    both.sync();
    both.sh(side, &format!("{{ {begin}; }} 2>/dev/null"));
    let state = "git symbolic-ref -q HEAD || git rev-parse HEAD; git ls-files -s; \
                 cat .git/MERGE_HEAD .git/rebase-merge/onto .git/CHERRY_PICK_HEAD 2>/dev/null || :";
    let before = both.sh(side, state);
    both.sh(
        side.other(),
        "echo other > o; git add o; git commit -qm o; git branch aside",
    );
    let acted = both.standing(side.other());
    let said = both.sync_apart();
    assert!(said.contains(words), "{said}");
    assert_eq!(both.sh(side, state), before);
    assert_eq!(both.standing(side.other()).index, acted.index);
    assert!(both.sh(side, "git branch").contains("aside"), "{said}");
    both.sh(side, &format!("git clean -fdq; {end}"));
    both.sync_apart();
    both.sync();
    let same = both.same();
    assert_eq!(
        (same.head, same.refs, same.index),
        (acted.head, acted.refs, acted.index)
    );
}

/// A shallow clone is as shallow on the VM, and its commits move.
#[rstest]
fn a_shallow_clone_moves(#[values("native", "system")] pipe: &str) {
    let both = Repositories::new(
        pipe,
        "git init -q ../origin; (cd ../origin; for n in 1 2 3 4; do echo $n > n; git add n; git commit -qm $n; done)
        git clone -q --depth 2 file://$PWD/../origin .",
    );
    both.sync();
    both.same();
    assert_eq!(both.sh(Side::Vm, "git log --format=%s"), "4\n3\n");
    assert_eq!(
        both.sh(Side::Vm, "git log --format=%s origin/main"),
        "4\n3\n"
    );
    both.sh(Side::Vm, "echo 5 > n; git commit -qam 5");
    both.sync();
    both.same();
    both.sh(
        Side::Laptop,
        "echo 6 > n; git commit -qam 6; git fetch -q --unshallow; git fetch -q",
    );
    both.sync();
    both.same();
}

/// From a partial clone files move, and nothing is fetched for it.
#[test]
fn a_partial_clone_moves_its_files_only() {
    let both = Repositories::new(
        "native",
        "git init -q ../origin; (cd ../origin; git config uploadpack.allowFilter true
            for n in 1 2 3; do echo $n > n; git add n; git commit -qm $n; done)
        git clone -q --filter=blob:none file://$PWD/../origin .; mv ../origin ../gone",
    );
    let said = both.sync_quiet();
    assert!(
        said.contains("only files move: this is a partial clone"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(both.vm.copy().join("n")).unwrap(), "3\n");
    assert!(!both.vm.copy().join(".git").exists());
}

/// On a VM without git files move, which is said once.
#[test]
fn without_git_on_the_vm_files_move() {
    let both = Repositories::behind("native", STORY, Sandbox::new(), |sandbox, _, pipe| {
        let user = "root";
        Vm::start_as(
            sandbox,
            pipe,
            user,
            "for git in $(which -a git); do mount --bind /dev/null $git; done",
            "",
        )
    });
    both.run(&["pin", "dev", "--drift", "sync"]);
    let first = both.run(&["run", "dev", "--", "cat", "a"]);
    assert!(first.contains("one\nmore\n"), "{first}");
    assert!(
        first.contains("only files move: git is not installed on dev"),
        "{first}"
    );
    let second = both.run(&["run", "dev", "--", "cat", "a"]);
    assert!(!second.contains("git"), "{second}");
    assert!(!both.vm.copy().join(".git").exists());
}

/// Nothing that lies in either repository runs for a sync, on either side, and none of
/// it moves.
#[rstest]
fn nothing_in_a_repository_runs(#[values("native", "system")] pipe: &str) {
    let both = Repositories::new(pipe, STORY);
    both.sync();
    let trap = |side: Side| {
        let proof = both.sandbox.home().join(format!("ran-{side:?}"));
        let script = format!(
            "printf '#!/bin/sh\\ndate >> {0}\\n' > .git/trap; chmod +x .git/trap
            mkdir -p .git/hooks
            for hook in reference-transaction post-index-change pre-push pre-receive update \
                post-receive post-update post-checkout post-merge post-rewrite pre-auto-gc \
                proc-receive push-to-checkout post-commit; do cp .git/trap .git/hooks/$hook; done
            git config core.fsmonitor .git/trap; git config core.pager \"$PWD/.git/trap\"
            git config uploadpack.packObjectsHook \"$PWD/.git/trap\"
            git config core.sshCommand \"$PWD/.git/trap\"; git config diff.external \"$PWD/.git/trap\"
            git config filter.evil.clean \"$PWD/.git/trap\"; git config filter.evil.smudge \"$PWD/.git/trap\"
            git config filter.evil.required true; git config alias.push \"!$PWD/.git/trap\"
            git config remote.pushDefault evil; git config remote.evil.url ext::$PWD/.git/trap
            git config push.gpgSign true; git config gpg.program \"$PWD/.git/trap\"
            git config push.followTags true",
            proof.display()
        );
        (proof, script)
    };
    let (here, script) = trap(Side::Laptop);
    both.sh(Side::Laptop, &script);
    let (there, script) = trap(Side::Vm);
    both.sh(Side::Vm, &script);
    let quiet = "-c core.hooksPath=/dev/null -c core.fsmonitor=false";
    both.sh(
        Side::Vm,
        &format!("echo v >> a; git {quiet} commit -qam v; echo w >> b; git {quiet} add b"),
    );
    both.sh(Side::Laptop, &format!("git {quiet} branch l"));
    let said = both.run(&["sync", "dev"]);
    assert!(
        said.contains("git: main from dev") && said.contains("git: l to dev"),
        "{said}"
    );
    both.sh(
        Side::Laptop,
        &format!("git {quiet} commit -qm w; git {quiet} checkout -q other"),
    );
    let said = both.run(&["sync", "dev"]);
    assert!(said.contains("git: HEAD to dev: main to other"), "{said}");
    for proof in [&here, &there] {
        let ran = fs::read_to_string(proof).unwrap_or_default();
        assert_eq!(ran, "", "{}", proof.display());
    }
    // The hooks would have run.
    both.sh(Side::Laptop, "git -c core.fsmonitor=false branch seen");
    assert!(here.exists());
    let config = both.sh(Side::Laptop, "cat .git/config");
    assert!(!config.contains("ran-Vm"));
}

/// A commit that changes what would run on the laptop is a commit; the file stays.
#[test]
fn a_commit_of_what_would_run_here_leaves_the_file_alone() {
    let both = Repositories::new(
        "native",
        "git init -q .; mkdir .claude; echo '{}' > .claude/settings.json; echo '* text' > .gitattributes
        git add .; git commit -qm 1",
    );
    both.sync();
    both.sh(
        Side::Vm,
        "echo '{\"disableAllHooks\":true}' > .claude/settings.json; echo '* filter=evil' > .gitattributes
        git commit -qam evil; git branch evil; git reset -q --hard HEAD~1; git checkout -q evil",
    );
    let there = both.head(Side::Vm);
    both.sync_apart();
    assert_eq!(both.head(Side::Laptop), there);
    assert_eq!(
        both.sh(Side::Laptop, "cat .claude/settings.json .gitattributes"),
        "{}\n* text\n"
    );
}

/// A VM that went back to an earlier day takes nothing back here.
#[test]
fn a_vm_from_a_backup_takes_no_commit_back() {
    let both = Repositories::new("native", STORY);
    both.sync();
    both.sh(Side::Vm, "cp -a .git \"$HOME/backup\"");
    for n in 1..4 {
        both.sh(Side::Laptop, &format!("echo {n} >> a; git commit -qam {n}"));
        both.sync();
    }
    let here = both.standing(Side::Laptop);
    both.sh(Side::Vm, "rm -rf .git; mv \"$HOME/backup\" .git");
    both.sync();
    assert_eq!(both.same(), here);
}

/// A copy whose repository is gone gets it again.
#[test]
fn a_repository_that_is_gone_is_made_again() {
    let both = Repositories::new("native", STORY);
    both.sync();
    let here = both.standing(Side::Laptop);
    both.sh(Side::Vm, "rm -rf .git");
    both.sync();
    assert_eq!(both.same(), here);
    // One that somebody else made there is taken as it is.
    both.sh(
        Side::Vm,
        "rm -rf .git; git init -q .; git checkout -q -b own; git commit -q --allow-empty -m own",
    );
    both.sync();
    let same = both.same();
    assert_eq!((same.head, same.index), (here.head, here.index));
    assert!(same.refs.contains("refs/heads/own"), "{}", same.refs);
}

/// A mirror brings nothing back, and loses nothing that the VM has.
#[test]
fn a_mirror_moves_to_the_vm_only() {
    let both = Repositories::new("native", STORY);
    both.sync();
    both.sh(Side::Laptop, "git branch l");
    both.sh(Side::Vm, "git branch v; git branch -f other main");
    let here = both.standing(Side::Laptop);
    let said = both.run(&["sync", "dev", "--mirror"]);
    assert!(
        said.contains("other stays here as it is: changes go to the VM only"),
        "{said}"
    );
    assert_eq!(both.standing(Side::Laptop), here);
    assert_eq!(both.kept("refs/boxery/dev/heads/v"), both.kept("main"));
    assert!(both.sh(Side::Vm, "git branch").contains(" l\n"));
}

/// What is only told changes nothing.
#[test]
fn a_dry_run_of_git_changes_nothing() {
    let both = Repositories::new("native", STORY);
    both.sync();
    both.sh(Side::Laptop, "git branch l");
    both.sh(Side::Vm, "git commit -q --allow-empty -m v");
    let before = (both.standing(Side::Laptop), both.standing(Side::Vm));
    let said = both.run(&["sync", "dev", "--dry-run"]);
    assert!(
        said.contains("git: main from dev") && said.contains("git: l to dev"),
        "{said}"
    );
    assert_eq!(
        (both.standing(Side::Laptop), both.standing(Side::Vm)),
        before
    );
}

/// The configuration can leave repositories alone.
#[test]
fn git_off_moves_files_only() {
    let both = Repositories::new("native", STORY);
    let path = both.sandbox.home().join(".config/boxery/config.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("[sync]\ngit = \"off\"\n{text}")).unwrap();
    let said = both.sync_quiet();
    assert!(!said.contains("git"), "{said}");
    assert!(both.vm.copy().join("a").exists());
    assert!(!both.vm.copy().join(".git").exists());
}

/// What git ignores here by lists that don't move it ignores there too.
#[test]
fn what_is_ignored_here_is_ignored_there() {
    let both = Repositories::new("native", STORY);
    fs::create_dir_all(both.sandbox.home().join(".config/git")).unwrap();
    fs::write(both.sandbox.home().join(".config/git/ignore"), "*.swp\n").unwrap();
    both.sh(Side::Laptop, "echo '*.own' >> .git/info/exclude");
    both.sync();
    let listed = both.sh(
        Side::Vm,
        "touch x.swp y.own z; env HOME=/nonexistent git status --porcelain; rm x.swp y.own z",
    );
    assert_eq!(listed, "?? z\n");
}

/// A process that is killed in the middle of a transfer leaves nothing that is in the
/// next one's way.
#[rstest]
fn a_killed_transfer_is_completed_by_the_next_one(
    #[values("native", "system")] pipe: &str,
    #[values(Side::Laptop, Side::Vm)] side: Side,
) {
    let both = Repositories::new(pipe, STORY);
    both.sync();
    // Enough that it can't be in between two looks.
    both.sh(
        side,
        "head -c 60000000 /dev/urandom > target; git add -f target; git commit -qm large; git rm -q --cached target
        git commit -qm small; rm target",
    );
    let acted = both.standing(side);
    let receiving = both.folder(side.other()).join(".git/objects");
    let mut sync = both.boxery(&["sync", "dev"]);
    let mut sync = sync
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // What is being received lies in a folder or file of its own.
    let begun = || {
        let pack = fs::read_dir(receiving.join("pack")).into_iter().flatten();
        let all = fs::read_dir(&receiving).into_iter().flatten().chain(pack);
        all.flatten().any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("tmp_") || name.starts_with("incoming-")
        })
    };
    while !begun() {
        assert_eq!(
            sync.try_wait().unwrap(),
            None,
            "it ended before it was seen"
        );
        std::thread::yield_now();
    }
    sync.kill().unwrap();
    sync.wait().unwrap();
    both.sync();
    assert_eq!(both.same(), acted);
}

/// A commit in a redirected call shows up on the laptop's branch, files and all.
#[rstest]
fn a_commit_in_a_run_is_on_the_laptops_branch(#[values("native", "system")] pipe: &str) {
    let both = Repositories::new(pipe, STORY);
    both.run(&["pin", "dev", "--drift", "sync"]);
    both.sh(
        Side::Laptop,
        "echo edited >> b; git add b; echo not >> lib/c",
    );
    let said = both.run(&["run", "dev", "--", "git", "status", "--porcelain"]);
    assert!(said.contains("M  b\n M lib/c\n"), "{said}");
    let said = both.run(&[
        "run",
        "dev",
        "--",
        "bash",
        "-c",
        "echo built > made; git add -A; git commit -qm 'from the VM'; git log -1 --format=%an",
    ]);
    assert!(
        said.starts_with("exit: 0") && said.contains("Ann\n"),
        "{said}"
    );
    assert_eq!(
        both.sh(Side::Laptop, "git log -1 --format=%s; cat made"),
        "from the VM\nbuilt\n"
    );
    let same = both.same();
    assert_eq!(same.status, "");
    // An ignored file that a commit there tracks comes with it.
    let said = both.run(&[
        "run",
        "dev",
        "--",
        "bash",
        "-c",
        "mkdir target; echo kept > target/kept; git add -f target/kept; git commit -qm forced",
    ]);
    assert!(said.starts_with("exit: 0"), "{said}");
    assert_eq!(both.sh(Side::Laptop, "cat target/kept"), "kept\n");
    assert_eq!(both.same().status, "");
}
