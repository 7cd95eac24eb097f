//! Random edits on both sides against a naive reference, with a kill at any step.
//!
//! The reference knows nothing of how the engine works. It has three trees: what both
//! sides were when they last agreed, and what each was before the sync; and it says
//! of each path what must be there afterwards.

#![expect(
    clippy::unwrap_used,
    reason = "test support: a failure here is the test's failure"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use boxery_sync::{EntryPath, Plan, Side, State, Tree};
use proptest::prelude::*;

use super::pair::{KILLED, Manner, Outcome, Pair, Stopped, tree_of};

/// Names that lie in, beside and instead of each other.
const PATHS: &[&str] = &[
    "a", "a/x", "a/x/1", "a/y", "a.b", "b", "b/x", "b/x/1", "c", "c/z", "d/e/f/g", "d/e",
];

#[derive(Debug, Clone)]
enum Edit {
    Write(usize, u8),
    Executable(usize, bool),
    Link(usize, u8),
    Folder(usize),
    Delete(usize),
    Rename(usize, usize),
}

#[derive(Debug, Clone)]
struct Round {
    laptop: Vec<Edit>,
    vm: Vec<Edit>,
    /// At which steps the first syncs are killed, one after the other.
    kills: Vec<u8>,
    /// Edits between a killed sync and the next.
    laptop_then: Vec<Edit>,
    vm_then: Vec<Edit>,
}

fn edit() -> impl Strategy<Value = Edit> {
    let path = 0..PATHS.len();
    prop_oneof![
        5 => (path.clone(), 0..4_u8).prop_map(|(path, content)| Edit::Write(path, content)),
        1 => (path.clone(), any::<bool>()).prop_map(|(path, on)| Edit::Executable(path, on)),
        1 => (path.clone(), 0..2_u8).prop_map(|(path, target)| Edit::Link(path, target)),
        1 => path.clone().prop_map(Edit::Folder),
        3 => path.clone().prop_map(Edit::Delete),
        2 => (path.clone(), path).prop_map(|(from, to)| Edit::Rename(from, to)),
    ]
}

fn edits(most: usize) -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec(edit(), 0..=most)
}

fn round() -> impl Strategy<Value = Round> {
    let later = prop_oneof![
        2 => Just((Vec::new(), Vec::new())),
        1 => (edits(2), edits(2)),
    ];
    let kills = prop::collection::vec(0..60_u8, 0..=2);
    (edits(4), edits(3), kills, later).prop_map(|(laptop, vm, kills, (laptop_then, vm_then))| {
        Round {
            laptop,
            vm,
            kills,
            laptop_then,
            vm_then,
        }
    })
}

/// Take away whatever lies at `path`.
fn clear(path: &Path) {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// Make room for something at `path`: what is in the way goes.
fn make_room(top: &Path, path: &str) -> PathBuf {
    let full = top.join(path);
    for above in Path::new(path).ancestors().skip(1) {
        let above = top.join(above);
        if above.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
            clear(&above);
        }
    }
    fs::create_dir_all(full.parent().unwrap()).unwrap();
    full
}

#[expect(clippy::disallowed_methods, reason = "a person's editor")]
fn make(top: &Path, edit: &Edit) {
    match edit {
        Edit::Write(path, content) => {
            let path = make_room(top, PATHS[*path]);
            if !path.is_file() || path.is_symlink() {
                clear(&path);
            }
            // One length: only content and times tell them apart.
            fs::write(path, format!("content {content}")).unwrap();
        }
        Edit::Executable(path, on) => {
            let path = top.join(PATHS[*path]);
            if path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
                let mode = if *on { 0o755 } else { 0o644 };
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        Edit::Link(path, target) => {
            let path = make_room(top, PATHS[*path]);
            clear(&path);
            symlink(["a", "/etc"][usize::from(*target)], path).unwrap();
        }
        Edit::Folder(path) => {
            let path = make_room(top, PATHS[*path]);
            if !path.is_dir() || path.is_symlink() {
                clear(&path);
            }
            fs::create_dir_all(path).unwrap();
        }
        Edit::Delete(path) => {
            let full = top.join(PATHS[*path]);
            if full
                .parent()
                .unwrap()
                .canonicalize()
                .is_ok_and(|p| p.starts_with(top))
            {
                clear(&full);
            }
        }
        Edit::Rename(from, to) => {
            let source = top.join(PATHS[*from]);
            if !source.exists() || PATHS[*to].starts_with(PATHS[*from]) {
                return;
            }
            let real = source.parent().unwrap().canonicalize();
            if !real.is_ok_and(|real| real == source.parent().unwrap()) {
                return;
            }
            if PATHS[*from].starts_with(PATHS[*to]) {
                return;
            }
            let target = make_room(top, PATHS[*to]);
            clear(&target);
            fs::rename(source, target).ok();
        }
    }
}

/// What a killed sync is: an error at the step with this number.
fn killed_at(kill: Option<u8>) -> impl FnMut(boxery_sync::Step) -> io::Result<()> {
    let mut step = 0;
    move |_| {
        step += 1;
        if kill == Some(step - 1) {
            return Err(io::Error::other(KILLED));
        }
        Ok(())
    }
}

fn paths<'a>(trees: &[&'a Tree]) -> BTreeSet<&'a EntryPath> {
    trees
        .iter()
        .flat_map(|tree| tree.iter().map(|(path, _)| path))
        .collect()
}

fn related(one: &EntryPath, other: &EntryPath) -> bool {
    one.is_within(other) || other.is_within(one)
}

/// What both sides were when they last agreed, path by path.
#[derive(Default)]
struct Agreed {
    states: BTreeMap<EntryPath, State>,
    /// Paths that differ since a person wrote while a killed sync was half done: the
    /// reference doesn't know how far that one came.
    unsure: BTreeSet<EntryPath>,
}

impl Agreed {
    fn at(&self, path: &EntryPath) -> State {
        self.states.get(path).copied().unwrap_or(State::Absent)
    }

    fn note(&mut self, after: &(Tree, Tree), sure: bool) {
        let all = paths(&[&after.0, &after.1]).into_iter().cloned();
        let all: Vec<EntryPath> = all.chain(self.states.keys().cloned()).collect();
        for path in all {
            if after.0.at(&path) == after.1.at(&path) {
                self.unsure.remove(&path);
                self.states.insert(path.clone(), after.0.at(&path));
            } else if !sure {
                self.unsure.insert(path);
            }
        }
    }
}

/// Whether both sides changed something at, above or below `path` since they agreed.
fn is_contested(path: &EntryPath, base: &Agreed, laptop: &Tree, vm: &Tree) -> bool {
    let changed = |tree: &Tree| {
        let all = paths(&[tree]).into_iter().chain(base.states.keys());
        all.into_iter()
            .any(|other| related(other, path) && base.at(other) != tree.at(other))
    };
    let unsure = base.unsure.iter().any(|other| related(other, path));
    unsure || (changed(laptop) && changed(vm))
}

/// What must be after a sync, path by path.
fn judge(base: &Agreed, before: &(Tree, Tree), after: &(Tree, Tree), plan: &Plan) {
    let mut all = paths(&[&before.0, &before.1, &after.0, &after.1]);
    all.extend(base.states.keys());
    for path in all {
        let (b, l, v) = (base.at(path), before.0.at(path), before.1.at(path));
        let (now_l, now_v) = (after.0.at(path), after.1.at(path));
        let say = format!("{path}: base {b:?}, laptop {l:?} -> {now_l:?}, VM {v:?} -> {now_v:?}");
        if now_l != now_v {
            let conflict = plan.conflict_at(path);
            // A folder in which something contested stays is there on one side only.
            let holds = |tree: &Tree| tree.below(path).any(|(p, _)| plan.conflict_at(p).is_some());
            let only_folders = !now_l.holds_content() && !now_v.holds_content();
            if only_folders && (holds(&after.0) || holds(&after.1)) {
                continue;
            }
            let Some(conflict) = conflict else {
                panic!("differs and isn't named: {say}");
            };
            assert!(
                is_contested(&conflict.path, base, &before.0, &before.1),
                "no conflict: {say}"
            );
            assert_eq!((now_l, now_v), (l, v), "each side keeps its own: {say}");
            continue;
        }
        if l == v {
            assert_eq!(now_l, l, "what agreed stays: {say}");
            continue;
        }
        // One side's change has come to the other.
        if base.unsure.contains(path) {
            continue;
        }
        let want = match (l == b, v == b) {
            (true, _) => v,
            (_, true) => l,
            (false, false) => State::Folder,
        };
        let stays =
            now_l == State::Folder && want == State::Absent && after.0.below(path).next().is_some();
        assert!(now_l == want || stays, "the wrong side won: {say}");
    }
}

/// What a person made on one side, and isn't what both agreed on, is there after any
/// number of killed syncs.
fn survives(side: Side, agreed: &Agreed, made: &Tree, before: Option<&(Tree, Tree)>, now: &Tree) {
    for (path, state) in made.iter() {
        // Written as it was there already, or on the other side: then they agreed.
        let is_new = before.is_none_or(|(l, v)| l.at(path) != state && v.at(path) != state);
        if state.holds_content()
            && is_new
            && agreed.at(path) != state
            && !agreed.unsure.contains(path)
        {
            assert_eq!(now.at(path), state, "an edit on {side:?} is lost: {path}");
        }
    }
}

fn trees(pair: &Pair) -> (Tree, Tree) {
    (tree_of(pair.laptop.path()), tree_of(pair.vm.path()))
}

fn complete(pair: &mut Pair) -> Outcome {
    let manner = Manner {
        allowed: usize::MAX,
        ..Manner::default()
    };
    let outcome = pair.sync_as(&manner, &mut |_| Ok(()));
    let outcome = outcome.unwrap();
    assert_eq!((&outcome.laptop.left, &outcome.vm.left), (&vec![], &vec![]));
    assert_eq!(outcome.kept, [""; 0], "all that was staged is known");
    outcome
}

fn play(pair: &mut Pair, agreed: &mut Agreed, round: &Round) {
    for edit in &round.laptop {
        make(pair.laptop.path(), edit);
    }
    for edit in &round.vm {
        make(pair.vm.path(), edit);
    }
    let before = trees(pair);
    let manner = Manner {
        allowed: usize::MAX,
        ..Manner::default()
    };
    for kill in &round.kills {
        match pair.sync_as(&manner, &mut killed_at(Some(*kill))) {
            Err(Stopped::Killed) | Ok(_) => {}
            Err(stopped) => panic!("{stopped:?}"),
        }
    }
    let between = trees(pair);
    for edit in &round.laptop_then {
        make(pair.laptop.path(), edit);
    }
    for edit in &round.vm_then {
        make(pair.vm.path(), edit);
    }
    let then = trees(pair);
    let outcome = complete(pair);
    let after = trees(pair);
    if then == between {
        // A kill changes nothing about where it ends. What the killed syncs completed
        // is in the trees already, so only the last plan's conflicts are open.
        judge(agreed, &before, &after, &outcome.plan);
    }
    if then == between {
        survives(Side::Laptop, agreed, &before.0, None, &after.0);
        survives(Side::Vm, agreed, &before.1, None, &after.1);
    }
    survives(Side::Laptop, agreed, &then.0, Some(&between), &after.0);
    survives(Side::Vm, agreed, &then.1, Some(&between), &after.1);
    agreed.note(&after, round.kills.is_empty() || then == between);
    let again = complete(pair);
    assert!(
        !again.plan.has_changes(),
        "a second sync has work: {again:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(400),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_edit_is_lost_and_every_difference_is_named_whenever_it_is_killed(
        rounds in prop::collection::vec(round(), 6),
    ) {
        let mut pair = Pair::new();
        let mut agreed = Agreed::default();
        for round in &rounds {
            play(&mut pair, &mut agreed, round);
        }
    }
}
