//! Whether a local git here could start another program, against real repositories.

use std::process::Command;

use boxery_router::{GitPlaces, git_hazard};
use camino::{Utf8Path, Utf8PathBuf};
use rstest::rstest;

/// Run `script` by sh with git's configuration shut off.
fn sh(folder: &Utf8Path, script: &str) {
    let status = Command::new("sh")
        .args(["-ec", script])
        .current_dir(folder)
        .env("HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TEMPLATE_DIR", "")
        .status();
    assert!(status.is_ok_and(|status| status.success()), "{script}");
}

const INIT: &str = "git init -q r && cd r && git config user.name n && git config user.email e@x \
                    && echo a > a && git add a && git commit -qm x";

#[rstest]
#[case::plain("", false)]
#[case::quiet_settings(
    "git config core.autocrlf input; git config branch.main.remote o; git remote add o x:y",
    false
)]
#[case::fsmonitor("git config core.fsmonitor ./x", true)]
#[case::other_case("git config CORE.FSMonitor ./x", true)]
#[case::text_conversion("git config diff.x.textconv ./x", true)]
#[case::external_diff("git config diff.external ./x", true)]
#[case::filter("git config filter.x.clean ./x", true)]
#[case::pager("git config pager.status ./x", true)]
#[case::core_pager("git config core.pager ./x", true)]
#[case::alias("git config alias.st status", true)]
#[case::hooks_path("git config core.hooksPath x", true)]
#[case::include("git config include.path ../x", true)]
#[case::include_if("git config includeIf.gitdir:/.path ../x", true)]
#[case::ssh_command("git config core.sshCommand x", true)]
#[case::unknown("git config new.thing x", true)]
#[case::broken("echo '[core' >> .git/config", true)]
#[case::same_line("printf '[core] fsmonitor = ./x\\n' >> .git/config", true)]
#[case::continued(
    "printf '[user]\\nname = a # \\\\\\n[core]\\nfsmonitor = x\\n' >> .git/config",
    true
)]
#[case::escaped_end(
    "printf '[user]\\nname = a\\\\\\\\\\n[core]\\nfsmonitor = x\\n' >> .git/config",
    true
)]
#[case::comment_with_backslash(
    "printf '# a \\\\\\n[core]\\nfsmonitor = x\\n' >> .git/config",
    true
)]
#[case::key_without_value("printf '[core]\\nfsmonitor\\n' >> .git/config", true)]
#[case::worktree_config(
    "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor ./x",
    true
)]
#[case::hook("mkdir -p .git/hooks; echo > .git/hooks/post-index-change", true)]
#[case::no_head("rm .git/HEAD", true)]
#[case::a_head_of_nothing("echo junk > .git/HEAD", true)]
#[case::no_objects("rm -r .git/objects", true)]
#[case::sample_hook("mkdir -p .git/hooks; echo > .git/hooks/pre-commit.sample", false)]
#[case::submodule(
    "git init -q s; git -C s -c user.name=n -c user.email=e commit -q --allow-empty -m x; git add s 2>/dev/null",
    true
)]
#[case::index_version_4("git update-index --index-version 4", false)]
#[case::many_files(
    "for i in 1 22 333 4444 55555; do mkdir -p d$i; echo > d$i/f$i; done; git add .",
    false
)]
#[case::split_index("git update-index --split-index", true)]
#[case::sha256("cd ..; rm -rf r; git init -q --object-format=sha256 r", true)]
fn a_repository_that_could_start_a_program_is_noticed(#[case] script: &str, #[case] want: bool) {
    let folder = tempfile::tempdir().unwrap();
    let folder = Utf8Path::from_path(folder.path()).unwrap();
    sh(folder, &format!("{INIT}; {script}"));
    let found = git_hazard(&folder.join("r"), &GitPlaces::default());
    assert_eq!(found.is_some(), want, "{found:?}");
}

#[test]
fn a_worktree_has_the_hazards_of_its_repository() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Utf8Path::from_path(folder.path()).unwrap();
    sh(folder, &format!("{INIT}; git worktree add -q ../w"));
    assert_eq!(git_hazard(&folder.join("w"), &GitPlaces::default()), None);
    sh(folder, "git -C r config core.fsmonitor ./x");
    assert!(git_hazard(&folder.join("w"), &GitPlaces::default()).is_some());
}

#[test]
fn a_folder_that_looks_like_a_bare_repository_is_a_hazard() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Utf8Path::from_path(folder.path()).unwrap();
    sh(folder, "mkdir -p p/sub && cd p && git init -q --bare .");
    assert!(git_hazard(&folder.join("p/sub"), &GitPlaces::default()).is_some());
    sh(folder, "mkdir q");
    assert_eq!(git_hazard(&folder.join("q"), &GitPlaces::default()), None);
}

#[rstest]
#[case::quiet(
    "[user]\nname = n\n[core]\neditor = vi\n[credential]\nhelper = store\n",
    false
)]
#[case::alias("[alias]\nst = status\n", true)]
#[case::include("[include]\npath = x\n", true)]
#[case::filter("[filter \"lfs\"]\nclean = git-lfs clean\n", true)]
#[case::fsmonitor("[core]\nfsmonitor = true\n", true)]
fn the_users_own_configuration_counts(#[case] text: &str, #[case] want: bool) {
    let folder = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    sh(&folder, INIT);
    sh(&folder, &format!("cat > gitconfig <<'EOF'\n{text}EOF\n"));
    let places = GitPlaces {
        variables: Vec::new(),
        configurations: vec![folder.join("missing"), folder.join("gitconfig")],
    };
    assert_eq!(git_hazard(&folder.join("r"), &places).is_some(), want);
    let places = GitPlaces {
        variables: vec!["GIT_DIR".to_owned()],
        configurations: Vec::new(),
    };
    assert!(git_hazard(&folder.join("r"), &places).is_some());
}
