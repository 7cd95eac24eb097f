//! Appending: chained, private, and by many at once.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use boxery_record::{Event, Kind, Log, RecordError, Tier};
use proptest::prelude::*;
use rstest::rstest;

use crate::support::{DAY, NOW, Scene, TODAY, TOMORROW, decision};

#[test]
fn events_come_back_as_they_were_written_with_dense_numbers() {
    let scene = Scene::new();
    let full = Event {
        tier: Tier::VmObserved,
        subagent: Some("agent-1".to_owned()),
        exit: Some(-7),
        bytes: Some(9_007_199_254_740_991),
        detail: Some("a \"b\" \\ \u{7f} \u{1} \n ü 🦀 </script>".to_owned()),
        ..decision(NOW)
    };
    let kinds = [
        Kind::SessionStart,
        Kind::SessionEnd,
        Kind::TicketTaken,
        Kind::RunStarted,
        Kind::RunEnded,
        Kind::Escaped,
        Kind::Pin,
        Kind::Unpin,
        Kind::Install,
        Kind::Uninstall,
        Kind::Proof,
        Kind::Other("of_tomorrow".to_owned()),
    ];
    let mut events = vec![full];
    events.extend(kinds.map(|kind| Event::new(NOW + 1, kind)));
    for (number, event) in (1_u64..).zip(&events) {
        assert_eq!(scene.log.append(event).unwrap().seq, number);
    }
    assert_eq!(scene.events(), events);
    assert_eq!(scene.problem(), None);
    for (entry, event) in scene.entries().iter().zip(&events) {
        assert!(
            scene
                .bytes(TODAY)
                .windows(64)
                .any(|part| part == entry.hash.as_bytes())
        );
        let word = serde_json::to_value(&event.kind).unwrap();
        assert_eq!(word, event.kind.to_string());
    }
}

#[test]
fn files_are_private() {
    let scene = Scene::with(&[NOW]);
    let mode = |path: &camino::Utf8Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(scene.files(), [TODAY, "head", "lock"]);
    for name in scene.files() {
        assert_eq!(mode(&scene.path(&name)), 0o600, "{name}");
    }
    assert_eq!(mode(&scene.log.folder), 0o700);
}

#[test]
fn the_chain_goes_on_over_days_and_never_back() {
    let scene = Scene::with(&[NOW, NOW + 1, NOW + DAY, NOW, NOW + 30 * DAY]);
    assert_eq!(
        scene.files(),
        [TODAY, TOMORROW, "2027-02-14.jsonl", "head", "lock"]
    );
    assert_eq!(scene.lines(TODAY).len(), 2);
    assert_eq!(scene.lines(TOMORROW).len(), 2);
    let report = scene.check();
    assert_eq!((report.lines, report.last_seq), (5, 5));
    assert_eq!((report.problem, report.notes), (None, vec![]));
    let entries = scene.entries();
    for pair in entries.windows(2) {
        assert_eq!(pair[1].prev, pair[0].hash);
    }
}

#[rstest]
#[case::first_moment(0)]
#[case::last_moment_of_the_calendar(253_402_207_200)]
#[case::past_the_calendar(u64::MAX)]
fn any_clock_makes_a_line(#[case] time: u64) {
    let scene = Scene::with(&[time, time]);
    assert_eq!(scene.problem(), None);
    assert_eq!(scene.events().len(), 2);
}

#[test]
fn many_threads_append_without_losing_or_joining_a_line() {
    let scene = Scene::new();
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let log = scene.log.clone();
            scope.spawn(move || {
                for number in 0..200 {
                    let event = Event {
                        session: Some(thread.to_string()),
                        bytes: Some(number),
                        // Around midnight, so that segments change hands.
                        ..decision(NOW + (number % 2) * DAY)
                    };
                    log.append(&event).unwrap();
                }
            });
        }
    });
    let report = scene.check();
    assert_eq!((report.lines, report.last_seq), (1600, 1600));
    assert_eq!((report.problem, report.notes), (None, vec![]));
    for thread in 0..8 {
        let session = Some(thread.to_string());
        let numbers: Vec<_> = scene
            .events()
            .into_iter()
            .filter(|event| event.session == session)
            .filter_map(|event| event.bytes)
            .collect();
        assert_eq!(numbers, (0..200).collect::<Vec<_>>());
    }
}

/// Not a test by itself: the body of a process that the next test starts.
#[test]
fn writer_process() {
    let mut arguments = std::env::args();
    if let Some(folder) = arguments.find_map(|word| Some(word.strip_prefix("log=")?.to_owned())) {
        let log = Log::new(folder.into());
        for _ in 0..200 {
            log.append(&decision(NOW)).unwrap();
        }
    }
}

#[test]
fn unrelated_processes_append_to_one_chain() {
    let scene = Scene::new();
    let own = std::env::current_exe().unwrap();
    let children: Vec<_> = (0..8)
        .map(|_| {
            Command::new(&own)
                .args(["append::writer_process", "--exact", "--skip"])
                .arg(format!("log={}", scene.log.folder))
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let report = scene.check();
    assert_eq!((report.lines, report.problem), (1600, None));
}

#[test]
fn a_reader_meets_only_whole_lines_while_others_write() {
    let scene = Scene::new();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..300 {
                scene.log.append(&decision(NOW)).unwrap();
            }
        });
        while !writer.is_finished() {
            let entries = scene.log.entries(boxery_record::Filter::default()).unwrap();
            assert!(entries.into_iter().all(|entry| entry.is_ok()));
            assert_eq!(scene.problem(), None);
        }
    });
}

#[test]
fn a_disk_without_room_leaves_the_log_as_it_was() {
    // /dev/full answers every write with "no space left"; a link is refused
    // first, so the limit on a file's size stands in for a full disk.
    let scene = Scene::with(&[NOW, NOW]);
    let before = scene.bytes(TODAY);
    let status = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["append::writer_process", "--exact", "--skip"])
        .arg(format!("log={}", scene.log.folder))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(!status.success());
    let after = scene.bytes(TODAY);
    assert!(after.starts_with(&before));
    assert_eq!(after.last(), Some(&b'\n'));
    assert_eq!(scene.problem(), None);
    scene.log.append(&decision(NOW)).unwrap();
    assert_eq!(scene.problem(), None);
    assert!(scene.events().iter().all(|event| event.gap.is_none()));
}

#[rstest]
#[case::segment(TODAY)]
#[case::head("head")]
#[case::lock("lock")]
fn a_link_in_the_place_of_a_file_is_refused(#[case] name: &str) {
    let scene = Scene::with(&[NOW]);
    let elsewhere = scene.top().join("elsewhere");
    std::fs::rename(scene.path(name), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, scene.path(name)).unwrap();
    let before = std::fs::read(&elsewhere).unwrap();
    let error = scene.log.append(&decision(NOW)).unwrap_err();
    assert!(matches!(
        error,
        RecordError::Read { .. } | RecordError::Write { .. }
    ));
    assert_eq!(std::fs::read(&elsewhere).unwrap(), before);
}

#[test]
fn a_log_that_never_was_is_empty_and_whole() {
    let scene = Scene::new();
    assert_eq!(scene.entries(), vec![]);
    let report = scene.check();
    assert_eq!((report.lines, report.problem), (0, None));
    assert!(!scene.top().join("state").exists());
}

#[test]
fn an_append_reads_only_head_however_long_the_log_is() {
    let scene = Scene::with(&[NOW]);
    // The segment's bytes are made unreadable as lines; an append that looked
    // at them would tell of it.
    let mut nonsense = vec![b'x'; scene.bytes(TODAY).len() - 1];
    nonsense.push(b'\n');
    scene.put(TODAY, &nonsense);
    scene.log.append(&decision(NOW)).unwrap();
    assert_eq!(scene.events().len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_text_is_one_line_and_comes_back(texts in proptest::collection::vec(any::<String>(), 1..5)) {
        let scene = Scene::new();
        for text in &texts {
            let event = Event { detail: Some(text.clone()), tool: Some(text.clone()), ..decision(NOW) };
            scene.log.append(&event).unwrap();
        }
        let got: Vec<_> = scene.events().into_iter().filter_map(|event| event.detail).collect();
        prop_assert_eq!(got, texts);
        prop_assert_eq!(scene.problem(), None);
    }
}
