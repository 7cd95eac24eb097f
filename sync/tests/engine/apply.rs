//! The hazards of applying, on a real disk.

#![expect(clippy::disallowed_methods, reason = "test trees need no crash safety")]

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::time::{Duration, SystemTime};

use boxery_sync::{Base, Guard, KEPT, Left, Protected, Reason, STAGE, Side, Step};
use rstest::rstest;

use super::pair::{KILLED, Manner, Pair, Stopped, entry};

const SIDES: [Side; 2] = [Side::Laptop, Side::Vm];

fn synced(files: &[(&str, &str)]) -> Pair {
    let mut pair = Pair::new();
    for (path, content) in files {
        pair.write(Side::Laptop, path, content);
    }
    pair.sync();
    pair
}

#[test]
fn a_project_comes_to_the_vm_and_the_vms_work_comes_back() {
    let mut pair = synced(&[("src/a.rs", "1"), ("run.sh", "#!/bin/sh\n")]);
    assert_eq!(pair.read(Side::Vm, "src/a.rs").as_deref(), Some("1"));
    pair.write(Side::Vm, "out/b", "made")
        .make_executable(Side::Vm, "run.sh");
    pair.write(Side::Laptop, "src/a.rs", "2");
    pair.sync();
    assert_eq!(pair.read(Side::Laptop, "out/b").as_deref(), Some("made"));
    assert_eq!(pair.read(Side::Vm, "src/a.rs").as_deref(), Some("2"));
    let mode = fs::metadata(pair.at(Side::Laptop, "run.sh"))
        .unwrap()
        .mode();
    assert_eq!(mode & 0o777, 0o755);
}

#[test]
fn what_arrives_has_the_time_of_its_arrival_and_what_was_there_keeps_its_own() {
    let mut pair = synced(&[("old", "1"), ("edited", "1")]);
    let hour_ago = SystemTime::now() - Duration::from_hours(1);
    let age = |pair: &Pair, name: &str| {
        let meta = fs::metadata(pair.at(Side::Vm, name)).unwrap();
        let age = SystemTime::now().duration_since(meta.modified().unwrap());
        age.unwrap_or_default()
    };
    for name in ["old", "edited"] {
        let file = fs::File::options()
            .write(true)
            .open(pair.at(Side::Vm, name));
        file.unwrap().set_modified(hour_ago).unwrap();
    }
    pair.write(Side::Laptop, "edited", "2");
    let file = fs::File::options()
        .write(true)
        .open(pair.at(Side::Laptop, "edited"));
    file.unwrap().set_modified(hour_ago).unwrap();
    pair.sync();
    assert!(age(&pair, "old") >= Duration::from_mins(59));
    assert!(age(&pair, "edited") < Duration::from_mins(1));
}

#[test]
fn a_hundred_edits_of_one_length_within_a_moment_all_arrive() {
    let mut pair = synced(&[("a", "000")]);
    for round in 0..100 {
        let content = format!("{round:03}");
        pair.write(Side::Laptop, "a", &content);
        pair.sync();
        assert_eq!(pair.read(Side::Vm, "a"), Some(content));
    }
}

#[test]
fn build_outputs_on_the_vm_stay_there_and_hold_up_nobody() {
    let mut pair = synced(&[(".gitignore", "target\n"), ("lib/a", "1")]);
    pair.write(Side::Vm, "target/x", "built");
    pair.write(Side::Vm, "lib/target/y", "built");
    fs::remove_dir_all(pair.at(Side::Laptop, "lib")).unwrap();
    let outcome = pair.sync();
    assert_eq!(outcome.vm.occupied, [entry("lib")]);
    assert_eq!(pair.read(Side::Vm, "lib/a"), None);
    assert_eq!(
        pair.read(Side::Vm, "lib/target/y").as_deref(),
        Some("built")
    );
    let again = pair.sync();
    assert!(again.plan.is_same(), "{again:?}");
    assert_eq!(pair.read(Side::Vm, "target/x").as_deref(), Some("built"));
}

#[test]
fn a_file_in_the_place_of_a_folder_with_ignored_files_is_left_and_said() {
    let mut pair = synced(&[(".gitignore", "target\n"), ("lib/a", "1")]);
    pair.write(Side::Vm, "lib/target/y", "built");
    fs::remove_dir_all(pair.at(Side::Laptop, "lib")).unwrap();
    pair.write(Side::Laptop, "lib", "a file");
    let outcome = pair.sync();
    assert_eq!(outcome.vm.left, [(entry("lib"), Left::Occupied)]);
    assert_eq!(
        pair.read(Side::Vm, "lib/target/y").as_deref(),
        Some("built")
    );
}

#[test]
fn links_are_data_and_never_followed() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("precious"), "mine").unwrap();
    let mut pair = Pair::new();
    for (name, target) in [("dangling", "nowhere"), ("loop", "loop"), ("up", "../..")] {
        symlink(target, pair.at(Side::Laptop, name)).unwrap();
    }
    symlink(outside.path(), pair.at(Side::Laptop, "out")).unwrap();
    pair.sync();
    for name in ["dangling", "loop", "up", "out"] {
        let [laptop, vm] = SIDES.map(|side| fs::read_link(pair.at(side, name)).unwrap());
        assert_eq!(laptop, vm);
    }
    fs::remove_file(pair.at(Side::Laptop, "out")).unwrap();
    pair.sync();
    assert!(!pair.at(Side::Vm, "out").is_symlink());
    assert_eq!(
        fs::read_to_string(outside.path().join("precious")).unwrap(),
        "mine"
    );
}

/// The folder becomes a link to a place outside, between the scan and the apply.
#[test]
fn a_folder_that_becomes_a_link_under_way_leads_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("d")).unwrap();
    fs::write(outside.path().join("d/a"), "old").unwrap();
    let mut pair = synced(&[("d/a", "old"), ("d/gone", "old"), ("e", "1")]);
    fs::write(outside.path().join("d/gone"), "old").unwrap();
    pair.write(Side::Laptop, "d/a", "new")
        .write(Side::Laptop, "d/n/m", "new");
    fs::remove_file(pair.at(Side::Laptop, "d/gone")).unwrap();
    let (folder, target) = (pair.at(Side::Vm, "d"), outside.path().join("d"));
    let mut done = false;
    let mut swap = |_| {
        if !done {
            done = true;
            fs::remove_dir_all(&folder).unwrap();
            symlink(&target, &folder).unwrap();
        }
        Ok(())
    };
    let outcome = pair.sync_as(&Manner::default(), &mut swap).unwrap();
    assert!(!outcome.vm.left.is_empty(), "{outcome:?}");
    assert_eq!(
        fs::read_to_string(outside.path().join("d/a")).unwrap(),
        "old"
    );
    assert_eq!(
        fs::read_to_string(outside.path().join("d/gone")).unwrap(),
        "old"
    );
    assert!(!outside.path().join("d/n").exists());
}

/// A person writes on the VM at each step of an update, a creation and a deletion
/// there: what was written is still there, and the next sync names it.
#[rstest]
fn what_is_written_in_the_last_moment_is_never_lost(
    #[values("edited", "deleted", "made", "swapped")] path: &str,
    #[values(
        Step::Begin,
        Step::Checked,
        Step::MovedAside,
        Step::Prepared,
        Step::Exchanged
    )]
    at: Step,
    #[values(false, true)] killed: bool,
) {
    let mut pair = synced(&[("edited", "1"), ("deleted", "1"), ("swapped", "1")]);
    match path {
        "deleted" => fs::remove_file(pair.at(Side::Laptop, path)).unwrap(),
        "swapped" => {
            fs::remove_file(pair.at(Side::Laptop, path)).unwrap();
            pair.write(Side::Laptop, "swapped/x", "2");
        }
        path => {
            pair.write(Side::Laptop, path, "2");
        }
    }
    let mut applying = 0;
    let file = pair.at(Side::Vm, path);
    // Steps are counted from the first of the apply, which is the third of all.
    let mut write = |step| {
        applying += 1;
        let first = applying > 3 || step != Step::Begin;
        if step == at && first {
            // As an editor that opened the file before: through the same inode.
            let stage = file.parent().unwrap().join(STAGE);
            let moved = fs::read_dir(stage).into_iter().flatten().find_map(|entry| {
                let name = entry.unwrap().path();
                let text = fs::read_to_string(&name).ok()?;
                (text == "1").then_some(name)
            });
            fs::write(moved.unwrap_or_else(|| file.clone()), "theirs!").ok();
            if killed {
                return Err(io::Error::other(KILLED));
            }
        }
        Ok(())
    };
    let mut kept = match pair.sync_as(&Manner::default(), &mut write) {
        Ok(outcome) => outcome.kept,
        Err(Stopped::Killed) => Vec::new(),
        Err(stopped) => panic!("{stopped:?}"),
    };
    let outcome = pair.sync();
    kept.extend(outcome.kept.iter().cloned());
    let was_written = applying > 0;
    let somewhere = [path.to_owned(), format!("{path}/x")]
        .into_iter()
        .chain(kept)
        .any(|name| pair.read(Side::Vm, &name).as_deref() == Some("theirs!"));
    let never = !steps_of(path).contains(&at);
    assert!(was_written && (somewhere || never), "{outcome:?}");
}

/// Which steps a change of this kind has.
fn steps_of(path: &str) -> &'static [Step] {
    match path {
        "edited" => &[Step::Begin, Step::Checked, Step::Prepared, Step::Exchanged],
        "made" => &[Step::Begin, Step::Checked, Step::Prepared],
        _ => &[Step::Begin, Step::Checked, Step::MovedAside],
    }
}

#[test]
fn another_machine_is_never_taken_for_the_one_of_last_time() {
    let mut pair = synced(&[("a", "1"), ("b", "1")]);
    pair.copy.identity.machine = "another".to_owned();
    fs::remove_file(pair.at(Side::Vm, "a")).unwrap();
    let stopped = pair.sync_as(&Manner::default(), &mut |_| Ok(()));
    assert!(matches!(stopped, Err(Stopped::Foreign)));
    assert_eq!(pair.read(Side::Laptop, "a").as_deref(), Some("1"));
}

#[test]
fn most_of_the_vms_tree_gone_deletes_nothing_until_a_person_allows_that_many() {
    let names: Vec<String> = (0..80).map(|number| format!("f{number}")).collect();
    let mut pair = synced(&[]);
    for name in &names {
        pair.write(Side::Laptop, name, name);
    }
    pair.sync();
    for name in &names[..60] {
        fs::remove_file(pair.at(Side::Vm, name)).unwrap();
    }
    let stopped = pair.sync_as(&Manner::default(), &mut |_| Ok(()));
    let Err(Stopped::Guard(guard)) = stopped else {
        panic!("it went on");
    };
    assert_eq!(
        guard,
        Guard::ManyDeletes {
            count: 60,
            files: 80
        }
    );
    assert!(pair.at(Side::Laptop, "f0").exists());
    let allowing = Manner {
        allowed: guard.needs(),
        ..Manner::default()
    };
    pair.sync_as(&allowing, &mut |_| Ok(())).unwrap();
    assert!(!pair.at(Side::Laptop, "f0").exists());
}

#[test]
fn a_copy_restored_from_a_backup_writes_nothing_over_the_laptops_newer_files() {
    let mut pair = synced(&[("a", "old"), ("b", "1")]);
    pair.write(Side::Laptop, "a", "new");
    pair.sync();
    // The backup of the day before.
    pair.write(Side::Vm, "a", "old");
    pair.copy.epoch -= 1;
    let outcome = pair.sync();
    assert_eq!(outcome.plan.conflicts[0].reason, Reason::NoCommonState);
    assert_eq!(pair.read(Side::Laptop, "a").as_deref(), Some("new"));
}

#[rstest]
#[case::lost(None)]
#[case::damaged(Some("not a base"))]
#[case::empty(Some(""))]
fn a_lost_or_damaged_state_deletes_nothing(#[case] content: Option<&str>) {
    let mut pair = synced(&[("a", "1"), ("b", "1"), ("both", "1")]);
    fs::remove_file(pair.at(Side::Vm, "a")).unwrap();
    fs::remove_file(pair.at(Side::Laptop, "b")).unwrap();
    pair.write(Side::Laptop, "both", "2")
        .write(Side::Vm, "both", "3");
    match content {
        None => Base::remove(pair.state.path()).unwrap(),
        Some(content) => {
            fs::write(pair.state.path().join("base"), content).unwrap();
            fs::write(pair.state.path().join("index"), content).unwrap();
        }
    }
    pair.sync();
    for side in SIDES {
        assert_eq!(pair.read(side, "a").as_deref(), Some("1"));
        assert_eq!(pair.read(side, "b").as_deref(), Some("1"));
    }
    assert_eq!(pair.read(Side::Laptop, "both").as_deref(), Some("2"));
    assert_eq!(pair.read(Side::Vm, "both").as_deref(), Some("3"));
}

#[test]
fn names_of_any_bytes_and_lengths_arrive() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let mut pair = Pair::new();
    let long = "n".repeat(255);
    let names: [&[u8]; 5] = [b"new\nline", b"caf\xe9", b"-rf", b"a\\b", long.as_bytes()];
    for name in names {
        let path = pair.laptop.path().join(OsStr::from_bytes(name));
        fs::write(path, name).unwrap();
    }
    pair.sync();
    for name in names {
        let path = pair.vm.path().join(OsStr::from_bytes(name));
        assert_eq!(fs::read(path).unwrap(), name);
    }
    assert!(pair.sync().plan.is_same());
}

#[test]
fn a_file_that_was_private_stays_private_when_it_is_written() {
    let mut pair = synced(&[("secret", "1")]);
    let vm = pair.at(Side::Vm, "secret");
    fs::set_permissions(&vm, fs::Permissions::from_mode(0o600)).unwrap();
    pair.write(Side::Laptop, "secret", "2");
    pair.sync();
    assert_eq!(fs::metadata(&vm).unwrap().mode() & 0o777, 0o600);
    pair.make_executable(Side::Laptop, "secret");
    pair.sync();
    assert_eq!(fs::metadata(&vm).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn a_hard_link_elsewhere_keeps_its_content() {
    let outside = super::pair::folder();
    let mut pair = synced(&[("a", "1")]);
    let elsewhere = outside.path().join("a");
    fs::hard_link(pair.at(Side::Vm, "a"), &elsewhere).unwrap();
    pair.write(Side::Laptop, "a", "2");
    pair.sync();
    assert_eq!(fs::read_to_string(elsewhere).unwrap(), "1");
    assert_eq!(pair.read(Side::Vm, "a").as_deref(), Some("2"));
}

#[test]
fn settings_that_were_planted_on_the_vm_stay_there_and_are_named() {
    let mut pair = synced(&[("a", "1")]);
    pair.write(
        Side::Vm,
        ".claude/settings.json",
        "{\"disableAllHooks\":true}",
    )
    .write(Side::Vm, "sub/.envrc", "evil");
    let manner = Manner {
        protected: Protected::new([".claude/settings.json"], [""; 0]),
        ..Manner::default()
    };
    let outcome = pair.sync_as(&manner, &mut |_| Ok(())).unwrap();
    let named: Vec<_> = outcome
        .plan
        .conflicts
        .iter()
        .map(|c| c.path.clone())
        .collect();
    assert_eq!(named, [entry(".claude/settings.json"), entry("sub/.envrc")]);
    assert!(!pair.at(Side::Laptop, ".claude/settings.json").exists());
    assert!(!pair.at(Side::Laptop, "sub/.envrc").exists());
}

#[test]
fn what_the_policy_never_sends_is_never_staged_either() {
    let mut pair = Pair::new();
    pair.write(Side::Laptop, "x.key", "secret")
        .write(Side::Laptop, "a", "1");
    let manner = Manner {
        never_sent: ".key",
        ..Manner::default()
    };
    let outcome = pair.sync_as(&manner, &mut |_| Ok(())).unwrap();
    assert_eq!(outcome.plan.withheld, [entry("x.key")]);
    assert!(!pair.at(Side::Vm, "x.key").exists());
}

/// Twice the same content, which lies in the stage once.
#[test]
fn two_files_with_one_content_both_arrive_and_the_stage_is_gone() {
    let mut pair = synced(&[("a", "same"), ("b", "same"), ("c/d", "same")]);
    for name in ["a", "b", "c/d"] {
        assert_eq!(pair.read(Side::Vm, name).as_deref(), Some("same"));
    }
    for side in SIDES {
        assert!(!pair.at(side, STAGE).exists());
        assert!(!pair.at(side, KEPT).exists());
    }
    assert!(pair.sync().plan.is_same());
}
