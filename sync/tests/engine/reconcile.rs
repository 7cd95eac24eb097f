//! What the plan says, row by row.

#![expect(
    clippy::unwrap_used,
    reason = "test support: a failure here is the test's failure"
)]

use boxery_sync::{
    Change, Digest, Direction, EntryPath, Folding, Guard, Plan, Protected, Reason, Side, State,
    Take, Terms, Tree, Trees, check, reconcile,
};
use rstest::rstest;

use super::pair::entry;

/// A tree in short: `a=1 b/c=2 d/ s!=3 l@t`: files, a folder, a script, a link.
fn tree(text: &str) -> Tree {
    text.split_whitespace()
        .map(|word| {
            let of = |text: &str| (Digest::of(text.as_bytes()), text.len() as u64);
            if let Some(folder) = word.strip_suffix('/') {
                (entry(folder), State::Folder)
            } else if let Some((path, target)) = word.split_once('@') {
                let (digest, size) = of(target);
                (entry(path), State::Link { size, digest })
            } else {
                let (path, content) = word.split_once('=').unwrap();
                let (digest, size) = of(content);
                let (path, executable) = match path.strip_suffix('!') {
                    Some(path) => (path, true),
                    None => (path, false),
                };
                let state = State::File {
                    executable,
                    size,
                    digest,
                };
                (entry(path), state)
            }
        })
        .collect()
}

struct Rules {
    direction: Direction,
    takes: Vec<Take>,
    laptop_folds: Folding,
    has_base: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            direction: Direction::TwoWay,
            takes: Vec::new(),
            laptop_folds: Folding::NONE,
            has_base: true,
        }
    }
}

fn plan(base: &str, laptop: &str, vm: &str, rules: &Rules) -> Plan {
    let (base, laptop, vm) = (tree(base), tree(laptop), tree(vm));
    let protected = Protected::new([".claude/settings.json"], ["tools/hooks"]);
    reconcile(
        Trees {
            base: &base,
            laptop: &laptop,
            vm: &vm,
        },
        &Terms {
            direction: rules.direction,
            has_base: rules.has_base,
            protected: &protected,
            never_taken: &|path| path.as_bytes().ends_with(b".lock"),
            never_sent: &|path| path.as_bytes().ends_with(b".env"),
            takes: &rules.takes,
            laptop_folds: rules.laptop_folds,
            vm_folds: Folding::NONE,
        },
    )
}

/// A plan in short: `laptop +a`, `vm -b`, `! c` and so on, in order.
fn shown(plan: &Plan) -> String {
    let change = |side: &str, change: &Change| {
        let sign = match (change.from, change.to) {
            (State::Absent, _) => '+',
            (_, State::Absent) => '-',
            _ => '~',
        };
        format!("{side}{sign}{}", change.path)
    };
    let laptop = plan.laptop.iter().map(|c| change("l", c));
    let vm = plan.vm.iter().map(|c| change("v", c));
    let conflicts = plan.conflicts.iter().map(|c| format!("!{}", c.path));
    let kept = plan.kept.iter().map(|path| format!("k{path}"));
    let withheld = plan.withheld.iter().map(|path| format!("w{path}"));
    laptop
        .chain(vm)
        .chain(conflicts)
        .chain(kept)
        .chain(withheld)
        .collect::<Vec<_>>()
        .join(" ")
}

#[rstest]
#[case::same("a=1", "a=1", "a=1", "")]
#[case::both_the_same_change("a=1", "a=2", "a=2", "")]
#[case::new_on_the_laptop("", "a=1", "", "v+a")]
#[case::new_on_the_vm("", "", "a=1", "l+a")]
#[case::new_folders("", "d/e/f=1", "", "v+d v+d/e v+d/e/f")]
#[case::edited_on_the_laptop("a=1", "a=2", "a=1", "v~a")]
#[case::edited_on_the_vm("a=1", "a=1", "a=2", "l~a")]
#[case::made_executable("a=1", "a!=1", "a=1", "v~a")]
#[case::another_target("a@x", "a@y", "a@x", "v~a")]
#[case::deleted_on_the_laptop("a=1", "", "a=1", "v-a")]
#[case::deleted_on_the_vm("a=1", "a=1", "", "l-a")]
#[case::deleted_on_both("a=1", "", "", "")]
#[case::edited_on_both("a=1", "a=2", "a=3", "!a")]
#[case::made_on_both("", "a=1", "a=2", "!a")]
#[case::deleted_and_edited("a=1", "", "a=2", "!a")]
#[case::edited_and_deleted("a=1", "a=2", "", "!a")]
#[case::file_to_folder("a=1", "a/b=1", "a=1", "v~a v+a/b")]
#[case::folder_to_file("a/b=1", "a=1", "a/b=1", "v~a v-a/b")]
#[case::folder_to_link("a/b=1", "a/b=1", "a@x", "l~a l-a/b")]
#[case::folder_to_file_with_news_below("a/b=1", "a=1", "a/b=1 a/c=2", "!a")]
#[case::folder_to_file_with_an_edit_below("a/b=1", "a=1", "a/b=2", "!a")]
#[case::folder_gone_with_news_below("a/b=1", "", "a/b=1 a/c=2", "l+a/c v-a/b")]
#[case::file_to_folder_and_edited("a=1", "a/b=1", "a=2", "!a")]
#[case::empty_folder("", "d/", "", "v+d")]
#[case::folder_that_became_empty("d/a=1", "d/", "d/a=1", "v-d/a")]
#[case::folder_that_went("d/a=1", "", "d/a=1", "v-d v-d/a")]
#[case::never_sent("", "x.env=1 a=1", "", "v+a wx.env")]
#[case::never_sent_back("x.env=1", "x.env=1", "", "wx.env")]
#[case::settings("", "", ".claude/settings.json=1", "l+.claude !.claude/settings.json")]
#[case::settings_by_a_link("", "", ".claude@evil", "!.claude")]
#[case::settings_deleted(
    ".claude/settings.json=1",
    ".claude/settings.json=1",
    "",
    "!.claude/settings.json"
)]
#[case::settings_sent("", ".claude/settings.json=1", "", "v+.claude v+.claude/settings.json")]
#[case::hooks_folder_as_a_link("tools/x=1", "tools/x=1", "tools@y", "!tools")]
#[case::a_tracked_gitattributes(
    ".gitattributes=1",
    ".gitattributes=1",
    ".gitattributes=2",
    "!.gitattributes"
)]
#[case::policy("", "", "Cargo.lock=1", "!Cargo.lock")]
fn each_change_goes_to_the_other_side_or_is_named(
    #[case] base: &str,
    #[case] laptop: &str,
    #[case] vm: &str,
    #[case] want: &str,
) {
    assert_eq!(shown(&plan(base, laptop, vm, &Rules::default())), want);
}

#[rstest]
#[case::edited_on_the_vm("a=1", "a=1", "a=2", "ka")]
#[case::deleted_on_the_vm("a=1", "a=1", "", "ka")]
#[case::new_on_the_vm("", "", "d/a=1", "kd kd/a")]
#[case::edited_on_both("a=1", "a=2", "a=3", "!a")]
#[case::edited_on_the_laptop("a=1", "a=2", "a=1", "v~a")]
#[case::below_a_file_that_the_vm_made("a/b=1", "a/b=1 a/c=1", "a=1", "!a/c ka ka/b")]
fn a_mirror_writes_nothing_on_the_laptop_and_nothing_over_the_vms_own_work(
    #[case] base: &str,
    #[case] laptop: &str,
    #[case] vm: &str,
    #[case] want: &str,
) {
    let rules = Rules {
        direction: Direction::Mirror,
        ..Rules::default()
    };
    assert_eq!(shown(&plan(base, laptop, vm, &rules)), want);
}

#[test]
fn without_a_common_state_nothing_is_deleted_and_what_differs_is_named() {
    let rules = Rules {
        has_base: false,
        ..Rules::default()
    };
    let plan = plan("", "a=1 b=1 d/x=1", "a=1 b=2 c=1", &rules);
    assert_eq!(shown(&plan), "l+c v+d v+d/x !b");
    assert_eq!(plan.conflicts[0].reason, Reason::NoCommonState);
}

#[rstest]
#[case::the_laptops(Side::Laptop, "a", "v~a !b/x")]
#[case::the_vms(Side::Vm, "a", "l~a !b/x")]
#[case::a_whole_folder(Side::Vm, "b", "l~b/x !a")]
#[case::another(Side::Vm, "c", "!a !b/x")]
#[case::everything(Side::Vm, "", "l~a l~b/x")]
fn taking_a_side_ends_a_conflict(#[case] side: Side, #[case] path: &str, #[case] want: &str) {
    let rules = Rules {
        takes: vec![Take {
            side,
            path: EntryPath::parse(path.as_bytes()),
        }],
        ..Rules::default()
    };
    let plan = plan("a=1 b/x=1", "a=2 b/x=2", "a=3 b/x=3", &rules);
    assert_eq!(shown(&plan), want);
}

#[rstest]
#[case::settings(
    "",
    "",
    ".claude/settings.json=1",
    ".claude",
    "l+.claude l+.claude/settings.json"
)]
#[case::folder_against_file("a/b=1", "a=1", "a/b=2 a/c=1", "a", "l~a l+a/b l+a/c")]
fn a_person_can_take_what_never_comes_by_itself(
    #[case] base: &str,
    #[case] laptop: &str,
    #[case] vm: &str,
    #[case] path: &str,
    #[case] want: &str,
) {
    let rules = Rules {
        takes: vec![Take {
            side: Side::Vm,
            path: Some(entry(path)),
        }],
        ..Rules::default()
    };
    assert_eq!(shown(&plan(base, laptop, vm, &rules)), want);
}

#[test]
fn taking_everything_takes_nothing_that_would_run_here() {
    let rules = Rules {
        takes: vec![Take {
            side: Side::Vm,
            path: None,
        }],
        ..Rules::default()
    };
    let plan = plan("a=1", "a=1", "a=2 .envrc=1 b/.git=1", &rules);
    assert_eq!(shown(&plan), "l~a l+b !.envrc !b/.git");
}

const CASE: Folding = Folding {
    case: true,
    unicode: false,
};
const FORM: Folding = Folding {
    case: false,
    unicode: true,
};

#[rstest]
#[case::both_new(CASE, "", "", "Foo=1 foo=2", "l+Foo !foo")]
#[case::one_is_there(CASE, "foo=1", "foo=1", "foo=1 Foo=2", "!Foo")]
#[case::a_folder(CASE, "", "", "Foo/a=1 foo/b=2", "l+Foo l+Foo/a !foo")]
#[case::renamed(CASE, "Foo=1", "Foo=1", "foo=1", "l-Foo l+foo")]
#[case::forms(FORM, "", "", "e\u{301}=1 é=2", "l+e\u{301} !é")]
#[case::a_disk_that_folds_nothing(Folding::NONE, "", "", "Foo=1 foo=2", "l+Foo l+foo")]
fn names_that_are_one_on_the_laptops_disk_never_meet_there(
    #[case] laptop_folds: Folding,
    #[case] base: &str,
    #[case] laptop: &str,
    #[case] vm: &str,
    #[case] want: &str,
) {
    let rules = Rules {
        laptop_folds,
        ..Rules::default()
    };
    assert_eq!(shown(&plan(base, laptop, vm, &rules)), want);
}

fn numbered(count: usize) -> Tree {
    (0..count)
        .map(|number| {
            let digest = Digest::of(&number.to_le_bytes());
            let state = State::File {
                executable: false,
                size: 8,
                digest,
            };
            let path = EntryPath::parse(format!("f{number:05}").as_bytes()).unwrap();
            (path, state)
        })
        .collect()
}

#[rstest]
#[case::few_of_few(60, 10, 0, true)]
#[case::fifty(100, 50, 0, true)]
#[case::more_than_fifty(100, 49, 0, false)]
#[case::a_fifth(1000, 800, 0, true)]
#[case::more_than_a_fifth(1000, 799, 0, false)]
#[case::allowed(1000, 799, 201, true)]
#[case::too_few_allowed(1000, 799, 200, false)]
#[case::all(1000, 0, 0, false)]
#[case::all_of_two(2, 0, 0, false)]
#[case::all_of_one(1, 0, 0, true)]
fn many_deletions_on_the_laptop_are_asked_about(
    #[case] before: usize,
    #[case] left: usize,
    #[case] allowed: usize,
    #[case] passes: bool,
) {
    let (base, vm) = (numbered(before), numbered(left));
    let trees = Trees {
        base: &base,
        laptop: &base,
        vm: &vm,
    };
    let terms = Terms {
        direction: Direction::TwoWay,
        has_base: true,
        protected: &Protected::default(),
        never_taken: &|_| false,
        never_sent: &|_| false,
        takes: &[],
        laptop_folds: Folding::NONE,
        vm_folds: Folding::NONE,
    };
    let plan = reconcile(trees, &terms);
    let checked = check(&plan, &base, &base, &vm, allowed);
    assert_eq!(checked.is_ok(), passes, "{checked:?}");
}

#[test]
fn an_empty_project_is_no_reason_to_empty_the_copy() {
    let (base, empty) = (numbered(10), Tree::default());
    let plan = plan("a=1 b=1", "", "a=1 b=1", &Rules::default());
    assert_eq!(shown(&plan), "v-a v-b");
    let checked = check(&plan, &base, &empty, &base, 0);
    let want = Guard::Empty {
        side: Side::Laptop,
        files: 10,
    };
    assert_eq!(checked, Err(want));
}
