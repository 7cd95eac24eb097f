//! Holds the house to its own rules: which crate may use which, what every open
//! set lists, whose licences we take, where printing and reading the environment
//! may happen, and how long a file may be.

#![expect(
    clippy::expect_used,
    reason = "helpers of a test: what can't be read fails it"
)]

mod complaints;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};

use complaints::{COMPLAINTS, Proof};
use tables::{
    EDGES, LICENCES, LONG_FILES, MAX_LINES, OPEN_SETS, POLL, PRINT, READ_ENVIRONMENT, SYNCHRONOUS,
};

static METADATA: LazyLock<Metadata> = LazyLock::new(|| {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .other_options(["--locked".to_owned()])
        .exec()
        .expect("cargo metadata describes the workspace")
});

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A package's name in the table of edges.
fn short(name: &str) -> &str {
    name.strip_prefix("boxery-").unwrap_or(name)
}

/// Every file of the project whose name ends with one of `endings`, relative to the root.
fn files(endings: &[&str]) -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("the project can be read") {
            let entry = entry.expect("the project can be read");
            let name = entry.file_name();
            let kind = entry.file_type().expect("the project can be read");
            if kind.is_dir() {
                let skipped = ["target", ".git", "__pycache__", "node_modules"];
                if !skipped.iter().any(|skip| *skip == name) {
                    walk(&entry.path(), found);
                }
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    let mut found = Vec::new();
    walk(root(), &mut found);
    found.sort();
    found
        .into_iter()
        .map(|path| {
            path.strip_prefix(root())
                .expect("the walk stays below the root")
                .to_path_buf()
        })
        .filter(|path| {
            let path = path.to_string_lossy();
            endings.iter().any(|ending| path.ends_with(ending))
        })
        .collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path)).expect("a source file is text")
}

/// Rust files that belong to a crate, without its tests.
fn sources() -> Vec<PathBuf> {
    files(&[".rs"])
        .into_iter()
        .filter(|path| path.components().any(|part| part.as_os_str() == "src"))
        .collect()
}

/// A source file up to its unit tests.
fn without_tests(text: &str) -> &str {
    text.split_once("#[cfg(test)]\nmod tests {")
        .map_or(text, |(code, _)| code)
}

/// The lines of `text` that hold one of `words`, without comments, as `path:line`.
fn hits(path: &Path, text: &str, words: &[&str]) -> Vec<String> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| {
            let code = line.split("//").next().unwrap_or_default();
            words.iter().any(|word| code.contains(word))
        })
        .map(|(number, line)| format!("{}:{}: {}", path.display(), number + 1, line.trim()))
        .collect()
}

/// Checks that what was found is exactly what the list excuses: no more, and no stale excuse.
fn only_excused(what: &str, found: &BTreeSet<String>, excuses: &[(&str, &str)]) {
    let excused: BTreeSet<String> = excuses.iter().map(|(path, _)| (*path).to_owned()).collect();
    assert!(
        excuses.iter().all(|(_, reason)| !reason.is_empty()),
        "{what}: every entry of the list has a reason"
    );
    assert_eq!(found, &excused, "{what}: left is found, right is the list");
}

#[test]
fn crates_use_only_what_the_table_allows() {
    let table: BTreeMap<&str, &[&str]> = EDGES.iter().copied().collect();
    let ours: BTreeSet<&str> = METADATA
        .workspace_packages()
        .iter()
        .map(|package| short(&package.name))
        .collect();
    let mut wrong = Vec::new();
    for package in METADATA.workspace_packages() {
        let name = short(&package.name);
        let Some(allowed) = table.get(name) else {
            wrong.push(format!("{name} is in no row of the table"));
            continue;
        };
        for dependency in &package.dependencies {
            let used = short(&dependency.name);
            if dependency.path.is_some() && ours.contains(used) && !allowed.contains(&used) {
                wrong.push(format!("{name} uses {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "edges that the table lacks: {wrong:#?}");
}

#[test]
fn every_package_lies_in_the_folder_of_its_name() {
    for package in METADATA.workspace_packages() {
        let folder = package
            .manifest_path
            .parent()
            .and_then(|folder| folder.strip_prefix(&METADATA.workspace_root).ok())
            .expect("a member lies in the workspace");
        let want = match package.name.as_str() {
            "boxery" => "",
            other => short(other),
        };
        assert_eq!(folder, want, "{}", package.name);
    }
}

#[test]
fn every_package_is_tested_by_a_plain_cargo_test() {
    let members: BTreeSet<&PackageId> = METADATA.workspace_members.iter().collect();
    let default: BTreeSet<&PackageId> = METADATA.workspace_default_members.iter().collect();
    assert_eq!(members, default);
}

/// Every package that `name` needs to be built, itself included.
fn tree(name: &str) -> BTreeSet<String> {
    let resolve = METADATA.resolve.as_ref().expect("metadata resolves");
    let start = METADATA
        .workspace_packages()
        .into_iter()
        .find(|package| short(&package.name) == name);
    let mut open: Vec<&PackageId> = start.iter().map(|package| &package.id).collect();
    let mut seen: BTreeSet<&PackageId> = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let node = resolve.nodes.iter().find(|node| &node.id == id);
        for dependency in node.into_iter().flat_map(|node| &node.deps) {
            let needed = dependency
                .dep_kinds
                .iter()
                .any(|kind| kind.kind != DependencyKind::Development);
            if needed {
                open.push(&dependency.pkg);
            }
        }
    }
    seen.into_iter()
        .map(|id| METADATA[id].name.to_string())
        .collect()
}

#[test]
fn the_build_hash_is_of_every_crate_of_ours_that_is_in_the_helper() {
    let hashed = read(Path::new("wire/build.rs"));
    for name in tree("helper") {
        let Some(folder) = name.strip_prefix("boxery-") else {
            continue;
        };
        let sources = match folder {
            "wire" => "\"src\"".to_owned(),
            _ => format!("\"../{folder}/src\""),
        };
        assert!(hashed.contains(&sources), "wire/build.rs lacks {sources}");
    }
}

#[test]
fn the_synchronous_crates_have_no_runtime_in_their_tree() {
    assert!(tree("remote").contains("tokio"), "the walk sees a runtime");
    for name in SYNCHRONOUS {
        let tree = tree(name);
        let runtimes: Vec<&String> = tree
            .iter()
            .filter(|package| {
                ["tokio", "async-std", "smol", "async-io", "futures-executor"]
                    .contains(&package.as_str())
            })
            .collect();
        assert!(runtimes.is_empty(), "{name} pulls in {runtimes:?}");
    }
}

#[test]
fn every_member_of_an_open_set_is_listed() {
    let mut wrong = Vec::new();
    for (folder, list, helpers) in OPEN_SETS {
        let Ok(entries) = fs::read_dir(root().join(folder)) else {
            continue;
        };
        let declarations = read(&Path::new(folder).join("mod.rs"));
        let listing = read(Path::new(list));
        for entry in entries {
            let file = entry.expect("the folder can be read").file_name();
            let file = file.to_string_lossy();
            let name = file.strip_suffix(".rs").unwrap_or(&file);
            if name == "mod" {
                continue;
            }
            if !declarations.contains(&format!("mod {name};")) {
                wrong.push(format!("{folder}/{file} is no module of mod.rs"));
            }
            let helper = helpers.iter().any(|(helper, _)| *helper == name);
            if !helper && !listing.contains(&format!("{name}::")) {
                wrong.push(format!("{folder}/{file} is not in the list in {list}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whether the SPDX expression lets us use the code under an allowed licence.
fn allowed(expression: &str) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let answer = either(&words, &mut at);
    answer && at == words.len()
}

fn either(words: &[&str], at: &mut usize) -> bool {
    let mut answer = both(words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        answer |= both(words, at);
    }
    answer
}

fn both(words: &[&str], at: &mut usize) -> bool {
    let mut answer = single(words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        answer &= single(words, at);
    }
    answer
}

fn single(words: &[&str], at: &mut usize) -> bool {
    let Some(word) = words.get(*at) else {
        return false;
    };
    *at += 1;
    if *word == "(" {
        let answer = either(words, at);
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return answer && closed;
    }
    let mut licence = (*word).to_owned();
    if words.get(*at) == Some(&"WITH") {
        licence = format!("{licence} WITH {}", words.get(*at + 1).unwrap_or(&""));
        *at += 2;
    }
    LICENCES.contains(&licence.as_str())
}

#[test]
fn licence_expressions_are_read_as_spdx_means_them() {
    let rows = [
        ("MIT", true),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0-only", false),
        ("GPL-3.0-only OR MIT", true),
        ("GPL-3.0-only AND MIT", false),
        ("(MIT OR GPL-3.0-only) AND Unicode-3.0", true),
        ("MIT OR GPL-3.0-only AND Unicode-3.0", true),
        ("GPL-3.0-only OR LGPL-2.1-or-later AND MIT", false),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("GPL-2.0-only WITH Classpath-exception-2.0", false),
        ("(MIT", false),
        ("", false),
    ];
    for (expression, want) in rows {
        assert_eq!(allowed(expression), want, "{expression}");
    }
}

#[test]
fn every_dependency_may_be_used_under_a_listed_licence() {
    let refused: Vec<String> = METADATA
        .packages
        .iter()
        .filter(|package| !allowed(package.license.as_deref().unwrap_or_default()))
        .map(|package: &Package| {
            format!(
                "{} {}: {:?}",
                package.name, package.version, package.license
            )
        })
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn no_file_is_longer_than_the_limit_without_a_reason() {
    let long: BTreeSet<String> =
        files(&[".rs", ".py", ".sh", "tests/run", "tests/long", ".ci/run"])
            .into_iter()
            .filter(|path| read(path).lines().count() > MAX_LINES)
            .map(|path| path.display().to_string())
            .collect();
    only_excused("files over the limit", &long, LONG_FILES);
}

#[test]
fn only_env_rs_reads_the_environment() {
    let words = [
        "env::var",
        "env::vars",
        "env::home_dir",
        "env::temp_dir",
        "env::split_paths",
        "env::set_var",
        "home_dir()",
        "use std::env;",
    ];
    let found: BTreeSet<String> = sources()
        .into_iter()
        .filter(|path| path != Path::new("src/env.rs"))
        .filter(|path| !hits(path, without_tests(&read(path)), &words).is_empty())
        .map(|path| path.display().to_string())
        .collect();
    only_excused("files that read the environment", &found, READ_ENVIRONMENT);
}

#[test]
fn only_ui_rs_prints() {
    let words = [
        "println!",
        "print!",
        "eprintln!",
        "eprint!",
        "dbg!",
        "io::stdout",
        "io::stderr",
        "anstream::stdout",
        "anstream::stderr",
        "use std::io::{stdout",
        "use std::io::{stderr",
    ];
    let found: BTreeSet<String> = sources()
        .into_iter()
        .filter(|path| path != Path::new("src/ui.rs"))
        .filter(|path| !hits(path, without_tests(&read(path)), &words).is_empty())
        .map(|path| path.display().to_string())
        .collect();
    only_excused("files that print", &found, PRINT);
}

#[test]
fn no_test_is_ignored_and_none_sleeps() {
    let mut wrong = Vec::new();
    let mut polling = BTreeSet::new();
    for path in files(&[".rs", ".py"]) {
        if path == Path::new("tests/tidy/main.rs") {
            continue;
        }
        let text = read(&path);
        wrong.extend(hits(
            &path,
            &text,
            &["#[ignore", "@unittest.skip", "pytest.mark.skip"],
        ));
        let in_tests = path.components().any(|part| part.as_os_str() == "tests");
        let tests = if in_tests {
            Some(text.as_str())
        } else {
            text.split_once("#[cfg(test)]").map(|(_, tests)| tests)
        };
        if tests.is_some_and(|tests| {
            !hits(&path, tests, &["::sleep(", " sleep(", "time.sleep("]).is_empty()
        }) {
            polling.insert(path.display().to_string());
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    only_excused("tests that sleep", &polling, POLL);
}

fn manifest(path: &Path) -> toml_edit::DocumentMut {
    read(path).parse().expect("a manifest is TOML")
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for package in METADATA.workspace_packages() {
        // It may hold unsafe code; `helper/tests/helper/rules.rs` compares the rest.
        if package.name == "boxery-helper" {
            continue;
        }
        let path = package
            .manifest_path
            .strip_prefix(&METADATA.workspace_root)
            .expect("a member lies in the workspace");
        let inherits = manifest(path.as_std_path())["lints"]["workspace"].as_bool();
        assert_eq!(inherits, Some(true), "{path}");
    }
    let workspace = manifest(Path::new("Cargo.toml"));
    let lints = &workspace["workspace"]["lints"];
    assert_eq!(lints["rust"]["missing_docs"].as_str(), Some("warn"));
    assert_eq!(lints["rust"]["unsafe_code"].as_str(), Some("forbid"));
    for lint in [
        "unwrap_used",
        "expect_used",
        "print_stdout",
        "print_stderr",
        "allow_attributes",
    ] {
        assert_eq!(lints["clippy"][lint].as_str(), Some("warn"), "{lint}");
    }
}

#[test]
fn a_panic_unwinds_in_every_profile() {
    let workspace = manifest(Path::new("Cargo.toml"));
    let profiles = workspace["profile"]
        .as_table()
        .expect("profiles are pinned");
    for (name, profile) in profiles {
        let strategy = profile.get("panic").and_then(toml_edit::Item::as_str);
        assert!(matches!(strategy, None | Some("unwind")), "profile {name}");
    }
    assert_eq!(
        workspace["profile"]["release"]["panic"].as_str(),
        Some("unwind")
    );
    for config in [".cargo/config.toml", ".cargo/config"] {
        if let Ok(text) = fs::read_to_string(root().join(config)) {
            assert!(!text.contains("panic"), "{config} says something of panics");
        }
    }
}

#[test]
fn every_module_says_what_it_is_for() {
    let silent: Vec<String> = sources()
        .into_iter()
        .filter(|path| !read(path).trim_start().starts_with("//!"))
        .map(|path| path.display().to_string())
        .collect();
    assert!(silent.is_empty(), "no module doc at the top of {silent:#?}");
}

#[test]
fn every_public_complaint_has_a_test_that_would_find_it_or_a_reason() {
    assert_eq!(COMPLAINTS.len(), 55);
    let mut missing = Vec::new();
    for (complaint, proof) in COMPLAINTS {
        match proof {
            Proof::Tests(tests) => {
                assert!(!tests.is_empty(), "{complaint}");
                for test in *tests {
                    let (file, name) = test.rsplit_once("::").unwrap_or((test, ""));
                    let text = fs::read_to_string(root().join(file)).unwrap_or_default();
                    let heads = [format!("fn {name}("), format!("def {name}(")];
                    if !heads.iter().any(|head| text.contains(head.as_str())) {
                        missing.push(*test);
                    }
                }
            }
            Proof::DoesNotApply(because) => assert!(!because.is_empty(), "{complaint}"),
        }
    }
    assert_eq!(missing, Vec::<&str>::new());
}
