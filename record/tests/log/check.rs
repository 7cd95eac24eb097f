//! Nothing can be done to a log that its checker doesn't see.

use boxery_record::ProblemKind;
use rstest::rstest;

use crate::support::{DAY, NOW, Scene, TODAY, TOMORROW, decision};

/// Five lines today, three tomorrow.
fn scene() -> Scene {
    let (today, tomorrow) = (NOW, NOW + DAY);
    Scene::with(&[
        today, today, today, today, today, tomorrow, tomorrow, tomorrow,
    ])
}

#[test]
fn every_change_of_every_byte_is_seen() {
    let scene = Scene::with(&[NOW, NOW, NOW + DAY, NOW + DAY]);
    assert_eq!(scene.problem(), None);
    for name in [TODAY, TOMORROW, "head"] {
        let good = scene.bytes(name);
        for at in 0..good.len() {
            for change in [1, 0x20] {
                let mut bad = good.clone();
                bad[at] ^= change;
                scene.put(name, &bad);
                assert!(
                    scene.check().problem.is_some(),
                    "{name} byte {at} ^ {change}"
                );
            }
            let mut bad = good.clone();
            bad.remove(at);
            // Of two bytes that are alike it doesn't matter which is gone, but one is.
            scene.put(name, &bad);
            assert!(scene.check().problem.is_some(), "{name} without byte {at}");
        }
        scene.put(name, &good);
    }
    assert_eq!(scene.problem(), None);
}

#[rstest]
#[case::first(1, Some((TODAY, 1, ProblemKind::Missing { from: 1, to: 1 })))]
#[case::middle(3, Some((TODAY, 3, ProblemKind::Missing { from: 3, to: 3 })))]
#[case::last_of_a_segment(5, Some((TOMORROW, 1, ProblemKind::Missing { from: 5, to: 5 })))]
fn a_dropped_line_is_named(#[case] line: usize, #[case] want: Option<(&str, u64, ProblemKind)>) {
    let scene = scene();
    let mut lines = scene.lines(TODAY);
    lines.remove(line - 1);
    scene.put_lines(TODAY, &lines);
    let want = want.map(|(segment, line, kind)| (segment.to_owned(), line, kind));
    assert_eq!(scene.problem(), want);
}

#[test]
fn a_dropped_segment_is_named() {
    let scene = scene();
    std::fs::remove_file(scene.path(TODAY)).unwrap();
    let kind = ProblemKind::Missing { from: 1, to: 5 };
    assert_eq!(scene.problem(), Some((TOMORROW.to_owned(), 1, kind)));
}

#[test]
fn a_dropped_last_segment_is_a_cut() {
    let scene = scene();
    std::fs::remove_file(scene.path(TOMORROW)).unwrap();
    let kind = ProblemKind::Cut { from: 6, to: 8 };
    assert_eq!(scene.problem(), Some((TODAY.to_owned(), 5, kind)));
}

#[test]
fn all_segments_dropped_is_a_cut() {
    let scene = scene();
    for name in [TODAY, TOMORROW] {
        std::fs::remove_file(scene.path(name)).unwrap();
    }
    assert_eq!(
        scene.problem().map(|(_, _, kind)| kind),
        Some(ProblemKind::Cut { from: 1, to: 8 })
    );
}

#[test]
fn every_cut_at_the_end_is_seen_and_stays_seen_when_the_log_goes_on() {
    let whole = scene();
    let good = whole.bytes(TOMORROW);
    // Every byte of the last line, and the ends of those before.
    let last = good.len() - 1 - good.iter().rev().skip(1).position(|b| *b == b'\n').unwrap();
    let ends =
        (0..last).filter(|size| good[size.saturating_sub(2)..last.min(size + 2)].contains(&b'\n'));
    for size in ends.chain(last..good.len()) {
        let scene = scene();
        scene.put(TOMORROW, &good[..size]);
        // A line that lacks only its end isn't lost.
        let left = (1..=size).filter(|end| good.get(*end) == Some(&b'\n'));
        let from = 6 + left.count() as u64;
        let at_end = scene.problem().map(|(_, _, kind)| kind);
        scene.log.append(&decision(NOW + DAY)).unwrap();
        scene.log.append(&decision(NOW + 2 * DAY)).unwrap();
        let later = scene.problem().map(|(_, _, kind)| kind);
        let numbers: Vec<u64> = scene.entries().iter().map(|entry| entry.seq).collect();
        if from == 9 {
            assert_eq!((at_end, later), (Some(ProblemKind::Head), None));
            assert_eq!(numbers, (1..11).collect::<Vec<_>>());
            continue;
        }
        assert_eq!(
            at_end,
            Some(ProblemKind::Cut { from, to: 8 }),
            "cut to {size}"
        );
        assert_eq!(
            later,
            Some(ProblemKind::Missing { from, to: 8 }),
            "cut to {size}"
        );
        // What was written since can be read.
        let want: Vec<u64> = (1..from).chain(9..12).collect();
        assert_eq!(numbers, want, "cut to {size}");
    }
}

#[test]
fn lines_that_changed_places_are_named() {
    let scene = scene();
    let mut lines = scene.lines(TODAY);
    lines.swap(1, 3);
    scene.put_lines(TODAY, &lines);
    assert_eq!(
        scene.problem(),
        Some((TODAY.to_owned(), 2, ProblemKind::Reordered))
    );
}

#[test]
fn segments_that_changed_places_are_named() {
    let scene = scene();
    let today = scene.bytes(TODAY);
    scene.put(TODAY, &scene.bytes(TOMORROW));
    scene.put(TOMORROW, &today);
    assert_eq!(
        scene.problem(),
        Some((TODAY.to_owned(), 1, ProblemKind::Reordered))
    );
}

#[rstest]
#[case::in_the_middle(2, (TODAY, 3))]
#[case::at_the_end_of_a_segment(5, (TODAY, 6))]
fn a_doubled_line_is_named(#[case] line: usize, #[case] want: (&str, u64)) {
    let scene = scene();
    let mut lines = scene.lines(TODAY);
    lines.insert(line, lines[line - 1].clone());
    scene.put_lines(TODAY, &lines);
    assert_eq!(
        scene.problem(),
        Some((want.0.to_owned(), want.1, ProblemKind::Duplicated))
    );
}

#[test]
fn the_last_line_doubled_is_named() {
    let scene = scene();
    let mut lines = scene.lines(TOMORROW);
    lines.push(lines[2].clone());
    scene.put_lines(TOMORROW, &lines);
    assert_eq!(
        scene.problem(),
        Some((TOMORROW.to_owned(), 4, ProblemKind::Duplicated))
    );
}

#[test]
fn a_line_replaced_with_one_whose_own_hash_fits_is_named() {
    let scene = scene();
    let forged = Scene::with(&[NOW, NOW + 1, NOW, NOW, NOW]);
    let mut lines = scene.lines(TODAY);
    // The same number and `prev`, another time.
    lines[1] = forged.lines(TODAY)[1].clone();
    scene.put_lines(TODAY, &lines);
    assert_eq!(
        scene.problem(),
        Some((TODAY.to_owned(), 3, ProblemKind::Unchained))
    );
}

#[test]
fn a_whole_log_forged_under_the_old_head_is_named() {
    let scene = scene();
    let forged = Scene::with(&[NOW + 1; 5]);
    for time in [NOW + DAY; 3] {
        forged.log.append(&decision(time)).unwrap();
    }
    for name in [TODAY, TOMORROW] {
        scene.put(name, &forged.bytes(name));
    }
    assert_eq!(
        scene.problem(),
        Some(("head".to_owned(), 1, ProblemKind::Head))
    );
}

#[rstest]
#[case::a_line("somebody was here\n")]
#[case::lines("somebody\nwas here\n")]
#[case::an_empty_line("\n")]
#[case::a_forged_line("{\"v\":1,\"seq\":9}\n")]
fn foreign_lines_are_named_now_and_after_the_log_went_on(#[case] text: &str) {
    let scene = scene();
    let mut bytes = scene.bytes(TOMORROW);
    bytes.extend_from_slice(text.as_bytes());
    scene.put(TOMORROW, &bytes);
    assert_eq!(
        scene.problem(),
        Some((TOMORROW.to_owned(), 4, ProblemKind::Changed))
    );
    scene.log.append(&decision(NOW + DAY)).unwrap();
    assert_eq!(scene.events().len(), 10);
    let report = scene.check();
    assert!(report.problem.is_some() || !report.notes.is_empty());
}

#[rstest]
#[case::removed(None)]
#[case::emptied(Some(""))]
#[case::cut(Some("{\"v\":1"))]
#[case::nonsense(Some("x\n"))]
fn a_lost_head_is_named_now_and_after_the_log_went_on(#[case] content: Option<&str>) {
    let scene = scene();
    match content {
        None => std::fs::remove_file(scene.path("head")).unwrap(),
        Some(text) => scene.put("head", text.as_bytes()),
    }
    let (_, _, kind) = scene.problem().unwrap();
    let want = match content {
        None => ProblemKind::NoHead,
        Some(_) => ProblemKind::Head,
    };
    assert_eq!(kind, want);
    scene.log.append(&decision(NOW + DAY)).unwrap();
    assert_eq!(
        scene.problem(),
        Some((TOMORROW.to_owned(), 4, ProblemKind::NoHead))
    );
    assert_eq!(scene.events().len(), 10);
}

#[test]
fn an_older_head_put_back_is_not_mistaken_for_a_cut() {
    let scene = Scene::with(&[NOW, NOW]);
    let old = scene.bytes("head");
    scene.log.append(&decision(NOW)).unwrap();
    scene.put("head", &old);
    // As after a kill between line and head: the line is there, and is taken over.
    assert_eq!(scene.problem(), None);
    scene.log.append(&decision(NOW)).unwrap();
    assert_eq!(scene.problem(), None);
    assert_eq!(scene.check().lines, 4);
}
