//! Which folder on the VM corresponds to which on the laptop.

use boxery_pin::{PathMap, PathMapError, RemotePath};
use camino::Utf8Path;
use proptest::prelude::*;
use rstest::rstest;

use crate::support::{Scene, write};

fn remote(path: &str) -> RemotePath {
    path.parse().unwrap()
}

#[rstest]
#[case::plain("/home/u/app", "app-")]
#[case::space("/home/u/my app", "my_app-")]
#[case::shell("/home/u/$(x)`y`'\"", "__x__y___-")]
#[case::letters("/home/u/größe", "größe-")]
#[case::root("/", "root-")]
fn a_copys_name_is_readable(#[case] project: &str, #[case] want: &str) {
    let map = PathMap::new(project.into(), &remote("/srv/boxery"), "laptop");
    let name = map.copy.as_str().strip_prefix("/srv/boxery/").unwrap();
    let digits = name.strip_prefix(want).unwrap();
    assert_eq!(digits.len(), 8);
    assert!(digits.bytes().all(|b| b.is_ascii_hexdigit()));
    assert!(map.copy.is_within(&remote("/srv/boxery")));
}

#[test]
fn a_copys_name_is_the_same_each_time_and_another_for_another_laptop_or_path() {
    let copy =
        |project: &str, laptop: &str| PathMap::new(project.into(), &remote("/srv"), laptop).copy;
    let digits = blake3::hash(b"laptop\0/home/u/app").to_hex();
    assert_eq!(
        copy("/home/u/app", "laptop"),
        remote(&format!("/srv/app-{}", &digits[..8]))
    );
    assert_ne!(copy("/home/u/app", "laptop"), copy("/home/v/app", "laptop"));
    assert_ne!(
        copy("/home/u/app", "laptop"),
        copy("/home/u/app", "laptop2")
    );
    assert_eq!(
        copy("/home/u/app", "laptop"),
        PathMap::new("/home/u/app".into(), &remote("/srv/"), "laptop").copy
    );
}

#[test]
fn a_folder_corresponds_to_the_same_folder_of_the_copy() {
    let scene = Scene::new();
    let project = scene.folder("p");
    let map = PathMap::new(&project, &remote("/"), "laptop");
    assert_eq!(map.to_remote(&project).unwrap(), map.copy);
    let deep = scene.folder("p/src/a b/'c'");
    let want = remote(&format!("{}/src/a b/'c'", map.copy));
    assert_eq!(map.to_remote(&deep).unwrap(), want);
    assert_eq!(map.to_remote(&deep.join("../../a b/./'c'")).unwrap(), want);
    let link = scene.top.join("link");
    std::os::unix::fs::symlink(&deep, &link).unwrap();
    assert_eq!(map.to_remote(&link).unwrap(), want);
}

#[test]
fn a_folder_without_a_counterpart_is_an_error() {
    let scene = Scene::new();
    let project = scene.folder("p");
    let map = PathMap::new(&project, &remote("/srv"), "laptop");
    let outside = scene.folder("pp");
    std::os::unix::fs::symlink(&outside, project.join("out")).unwrap();
    write(&project.join("file"), "");
    for folder in [
        outside.clone(),
        scene.top.clone(),
        project.join("out"),
        project.join(".."),
    ] {
        let error = map.to_remote(&folder).unwrap_err();
        assert!(matches!(error, PathMapError::Outside { .. }), "{error:?}");
    }
    for folder in [
        project.join("gone"),
        project.join("gone/../../p"),
        project.join("file"),
        "p".into(),
        "".into(),
    ] {
        let error = map.to_remote(&folder).unwrap_err();
        assert!(matches!(error, PathMapError::Resolve { .. }), "{error:?}");
    }
}

fn component() -> impl Strategy<Value = String> {
    "[^/\0]{1,20}".prop_filter("a name", |name| {
        name != "." && name != ".." && name.len() <= 200
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_folder_below_the_project_keeps_its_components(
        name in component(),
        below in proptest::collection::vec(component(), 0..5),
    ) {
        let scene = Scene::new();
        let project = scene.folder("x").join(&name);
        let folder = below.iter().fold(project.clone(), |path, part| path.join(part));
        std::fs::create_dir_all(&folder).unwrap();
        let map = PathMap::new(&project, &remote("/srv"), "laptop");
        let mut want = map.copy.to_string();
        for part in &below {
            want.push('/');
            want.push_str(part);
        }
        prop_assert_eq!(map.to_remote(&folder).unwrap().to_string(), want.clone());
        prop_assert_eq!(String::from(want.parse::<RemotePath>().unwrap()), want);
        prop_assert!(map.copy.as_str().len() < 5 + 255);
    }

    #[test]
    fn a_copy_lies_directly_below_the_folder_of_copies(project in "(/[^/\0]{1,300}){1,3}", laptop in ".*") {
        let dir = remote("/srv/boxery");
        let map = PathMap::new(Utf8Path::new(&project), &dir, &laptop);
        let name = map.copy.as_str().strip_prefix("/srv/boxery/").unwrap();
        prop_assert!(!name.contains('/') && name.len() <= 255);
        prop_assert!(map.copy.as_str().parse::<RemotePath>().is_ok());
    }
}
