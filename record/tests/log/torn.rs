//! Writers that are killed in the middle.

use boxery_record::{Event, Kind};
use rstest::rstest;

use crate::support::{DAY, NOW, Scene, TODAY, TOMORROW, decision};

/// A log of three lines whose writer was killed after `left` bytes of the
/// third, before it replaced `head`.
fn killed_after(left: usize) -> (Scene, usize) {
    let scene = Scene::with(&[NOW, NOW]);
    let head = scene.bytes("head");
    let before = scene.bytes(TODAY).len();
    scene.log.append(&decision(NOW + 1)).unwrap();
    scene.put("head", &head);
    let whole = scene.bytes(TODAY);
    scene.put(TODAY, &whole[..before + left]);
    (scene, whole.len() - before)
}

#[rstest]
#[case::same_day(NOW + 2)]
#[case::next_day(NOW + DAY)]
fn a_line_cut_at_any_byte_is_closed_and_told_and_never_joined(#[case] then: u64) {
    let (_, length) = killed_after(0);
    for left in 0..=length {
        let (scene, _) = killed_after(left);
        assert_eq!(scene.problem(), None, "{left} bytes, before");
        let torn = scene.bytes(TODAY);
        scene.log.append(&decision(then)).unwrap();
        scene.log.append(&decision(then)).unwrap();

        let report = scene.check();
        assert_eq!(report.problem, None, "{left} bytes");
        assert!(scene.bytes(TODAY).starts_with(&torn));
        let kinds: Vec<Kind> = scene.events().into_iter().map(|event| event.kind).collect();
        let mut want = vec![Kind::Decision; 2];
        match left {
            0 => {}
            // The whole line, with or without its end: it is taken over.
            _ if left >= length - 1 => want.push(Kind::Decision),
            _ => want.push(Kind::Gap),
        }
        want.extend([Kind::Decision, Kind::Decision]);
        assert_eq!(kinds, want, "{left} bytes");
        let told = left > 0 && left < length - 1;
        assert_eq!(report.notes.len(), usize::from(told), "{left} bytes");
        if told {
            assert_eq!(
                (report.notes[0].segment.as_str(), report.notes[0].line),
                (TODAY, 3)
            );
        }
    }
}

#[test]
fn what_a_killed_writer_left_cannot_be_changed_unseen_once_it_is_told() {
    let (scene, _) = killed_after(40);
    scene.log.append(&decision(NOW + 2)).unwrap();
    let good = scene.bytes(TODAY);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        scene.put(TODAY, &bad);
        assert!(scene.check().problem.is_some(), "byte {at}");
    }
}

#[test]
fn two_writers_killed_one_after_the_other_are_told_together() {
    let (scene, _) = killed_after(40);
    // The second closed the line of the first and was killed at once.
    let mut bytes = scene.bytes(TODAY);
    bytes.push(b'\n');
    scene.put(TODAY, &bytes);
    scene.log.append(&decision(NOW + 2)).unwrap();
    let report = scene.check();
    assert_eq!(report.problem, None);
    assert_eq!(report.notes.len(), 1);
}

#[test]
fn the_very_first_writer_may_be_killed_too() {
    let whole = Scene::with(&[NOW]);
    let line = whole.bytes(TODAY);
    for left in 0..=line.len() {
        let scene = Scene::with(&[NOW]);
        // The head of an empty log is written before the first line.
        let head = format!(
            "{{\"v\":1,\"segment\":\"{TODAY}\",\"size\":0,\"seq\":0,\"hash\":\"{}\"}}",
            "0".repeat(64)
        );
        scene.put("head", format!("{head:<255}\n").as_bytes());
        scene.put(TODAY, &line[..left]);
        assert_eq!(scene.problem(), None, "{left} bytes, before");
        scene.log.append(&decision(NOW)).unwrap();
        assert_eq!(scene.problem(), None, "{left} bytes");
    }
}

#[test]
fn a_killed_writer_of_the_first_line_of_a_day_is_no_problem() {
    let whole = Scene::with(&[NOW, NOW + DAY]);
    let line = whole.bytes(TOMORROW);
    for left in 0..=line.len() {
        let scene = Scene::with(&[NOW]);
        scene.put(TOMORROW, &line[..left]);
        assert_eq!(scene.problem(), None, "{left} bytes, before");
        scene.log.append(&decision(NOW + 2 * DAY)).unwrap();
        assert_eq!(scene.problem(), None, "{left} bytes");
    }
}

#[test]
fn a_killed_process_leaves_a_log_that_goes_on() {
    let scene = Scene::new();
    let own = std::env::current_exe().unwrap();
    for _ in 0..20 {
        let mut child = std::process::Command::new(&own)
            .args(["append::writer_process", "--exact", "--skip"])
            .arg(format!("log={}", scene.log.folder))
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Killed as soon as it has written something.
        let before = scene.log.check().unwrap().last_seq;
        while scene.log.check().unwrap().last_seq == before {
            if child.try_wait().unwrap().is_some() {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(scene.problem(), None);
        scene.log.append(&Event::new(NOW, Kind::Pin)).unwrap();
        assert_eq!(scene.problem(), None);
    }
    let pins = scene
        .events()
        .into_iter()
        .filter(|event| event.kind == Kind::Pin);
    assert_eq!(pins.count(), 20);
}
