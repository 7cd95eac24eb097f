//! Projects and worktrees, made by the real git.

use boxery_pin::{PinError, find_project};
use rstest::rstest;

use crate::support::{Scene, git, write};

#[test]
fn a_pin_covers_every_worktree_of_the_repository_wherever_it_lies() {
    let scene = Scene::new();
    let main = scene.repository("home/p");
    let far = scene.top.join("elsewhere/far");
    scene.folder("elsewhere");
    git(&main, &["worktree", "add", "-q", far.as_str(), "-b", "far"]);
    git(&main, &["worktree", "add", "-q", "inside", "-b", "inside"]);
    let stranger = scene.repository("elsewhere/stranger");

    for pinned in [&main, &far] {
        scene.pin_project(pinned, "dev");
        for folder in [
            main.clone(),
            scene.folder("home/p/src/deep"),
            main.join("inside"),
            far.clone(),
            scene.folder("elsewhere/far/src"),
            main.join(".git/hooks"),
        ] {
            assert_eq!(
                scene.vm_in(&folder).unwrap().as_deref(),
                Some("dev"),
                "{folder}"
            );
        }
        assert_eq!(scene.vm_in(&stranger).unwrap(), None);
        assert_eq!(scene.vm_in(&scene.top.join("elsewhere")).unwrap(), None);
        for pin in scene.store.list().unwrap() {
            scene.store.remove(&pin.unwrap().file.key).unwrap();
        }
    }
}

#[test]
fn a_worktrees_own_pin_comes_before_its_siblings_and_two_siblings_are_ambiguous() {
    let scene = Scene::new();
    let main = scene.repository("p");
    for name in ["one", "two", "three"] {
        let path = scene.top.join(name);
        git(&main, &["worktree", "add", "-q", path.as_str(), "-b", name]);
    }
    scene.pin_project(&scene.top.join("one"), "vm1");
    assert_eq!(
        scene.vm_in(&scene.top.join("three")).unwrap().as_deref(),
        Some("vm1")
    );
    scene.pin_project(&scene.top.join("two"), "vm2");
    assert_eq!(
        scene.vm_in(&scene.top.join("one")).unwrap().as_deref(),
        Some("vm1")
    );
    assert_eq!(
        scene.vm_in(&scene.top.join("two")).unwrap().as_deref(),
        Some("vm2")
    );
    for folder in [main, scene.top.join("three")] {
        assert!(matches!(
            scene.vm_in(&folder),
            Err(PinError::Ambiguous { .. })
        ));
    }
}

#[test]
fn two_siblings_that_name_one_vm_agree() {
    let scene = Scene::new();
    let main = scene.repository("p");
    for name in ["one", "two"] {
        let path = scene.top.join(name);
        git(&main, &["worktree", "add", "-q", path.as_str(), "-b", name]);
        scene.pin_project(&path, "dev");
    }
    assert_eq!(scene.vm_in(&main).unwrap().as_deref(), Some("dev"));
}

#[test]
fn worktrees_of_a_bare_repository_belong_together() {
    let scene = Scene::new();
    let seed = scene.repository("seed");
    git(
        &scene.top,
        &["clone", "-q", "--bare", seed.as_str(), "bare.git"],
    );
    let bare = scene.top.join("bare.git");
    for name in ["one", "two"] {
        let path = scene.top.join(name);
        git(&bare, &["worktree", "add", "-q", path.as_str(), "-b", name]);
    }
    scene.pin_project(&scene.top.join("one"), "dev");
    assert_eq!(
        scene.vm_in(&scene.top.join("two")).unwrap().as_deref(),
        Some("dev")
    );
    assert_eq!(scene.vm_in(&bare).unwrap().as_deref(), Some("dev"));
    assert_eq!(scene.vm_in(&seed).unwrap(), None);
}

#[test]
fn a_submodule_is_a_project_of_its_own_under_the_pin_of_the_outer_one() {
    let scene = Scene::new();
    let library = scene.repository("library");
    let outer = scene.repository("outer");
    git(
        &outer,
        &["submodule", "--quiet", "add", library.as_str(), "lib"],
    );
    let lib = outer.join("lib");
    let project = find_project(&lib).unwrap().unwrap();
    assert_eq!(project.root, lib);
    assert_eq!(project.git_common, Some(outer.join(".git/modules/lib")));

    scene.pin_project(&outer, "outer");
    assert_eq!(scene.vm_in(&lib).unwrap().as_deref(), Some("outer"));
    scene.pin_project(&lib, "inner");
    assert_eq!(scene.vm_in(&lib).unwrap().as_deref(), Some("inner"));
    assert_eq!(scene.vm_in(&outer).unwrap().as_deref(), Some("outer"));
    assert_eq!(scene.vm_in(&library).unwrap(), None);
}

#[test]
fn a_worktree_whose_links_are_relative_is_found() {
    let scene = Scene::new();
    let main = scene.repository("p");
    let far = scene.top.join("far");
    git(&main, &["worktree", "add", "-q", far.as_str(), "-b", "far"]);
    write(&far.join(".git"), "gitdir: ../p/.git/worktrees/far\n");
    let project = find_project(&far).unwrap().unwrap();
    assert_eq!(project.root, far);
    assert_eq!(project.git_common, Some(main.join(".git")));
}

#[test]
fn a_separate_git_folder_is_the_common_one() {
    let scene = Scene::new();
    let folder = scene.folder("p");
    let apart = scene.top.join("apart.git");
    git(
        &folder,
        &["init", "-q", "--separate-git-dir", apart.as_str()],
    );
    let project = find_project(&folder).unwrap().unwrap();
    assert_eq!(project.git_common, Some(apart));
}

#[test]
fn an_empty_git_folder_is_passed_by_as_git_does() {
    let scene = Scene::new();
    let outer = scene.repository("outer");
    let inner = scene.folder("outer/inner");
    scene.folder("outer/inner/.git");
    assert_eq!(find_project(&inner).unwrap().unwrap().root, outer);
}

#[rstest]
#[case::empty("")]
#[case::no_path("gitdir: \n")]
#[case::another_word("elsewhere: /tmp\n")]
fn a_git_file_that_says_nothing_is_an_error(#[case] text: &str) {
    let scene = Scene::new();
    let folder = scene.folder("p");
    write(&folder.join(".git"), text);
    assert!(find_project(&folder).is_err());
}

#[test]
fn a_folder_outside_every_repository_is_no_project() {
    let scene = Scene::new();
    assert_eq!(find_project(&scene.folder("p")).unwrap(), None);
}
