//! Which events a filter lets through.

use boxery_record::{Event, Filter, Kind, RecordError};
use rstest::rstest;

use crate::support::{DAY, NOW, Scene, TODAY, decision};

#[expect(
    clippy::unnecessary_wraps,
    reason = "every field that takes it is optional"
)]
fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

#[rstest]
#[case::everything(Filter::default(), &[0, 1, 2, 3, 4])]
#[case::session(Filter { session: text("s1"), ..Filter::default() }, &[0, 1])]
#[case::agent(Filter { agent: text("codex"), ..Filter::default() }, &[2])]
#[case::vm(Filter { vm: text("other"), ..Filter::default() }, &[1, 3])]
#[case::denied(Filter { denied: true, ..Filter::default() }, &[0, 2])]
#[case::since(Filter { since: Some(NOW + 2), ..Filter::default() }, &[2, 3, 4])]
#[case::since_the_next_day(Filter { since: Some(NOW + DAY), ..Filter::default() }, &[3, 4])]
#[case::since_never(Filter { since: Some(u64::MAX), ..Filter::default() }, &[])]
#[case::all_must_agree(Filter { session: text("s1"), vm: text("dev"), ..Filter::default() }, &[0])]
#[case::nobody(Filter { session: text("s"), ..Filter::default() }, &[])]
fn every_field_of_a_filter_must_agree(#[case] filter: Filter, #[case] want: &[usize]) {
    let event = |time, agent, session, vm, decided| Event {
        agent: text(agent),
        session: text(session),
        vm: text(vm),
        decision: text(decided),
        ..decision(time)
    };
    let events = [
        event(NOW, "claude-code", "s1", "dev", "deny"),
        event(NOW + 1, "claude-code", "s1", "other", "rewrite"),
        event(NOW + 2, "codex", "s2", "dev", "deny"),
        event(NOW + DAY, "claude-code", "s3", "other", "pass"),
        Event::new(NOW + 2 * DAY, Kind::Install),
    ];
    let scene = Scene::new();
    for event in &events {
        scene.log.append(event).unwrap();
    }
    let got: Result<Vec<_>, _> = scene.log.entries(filter).unwrap().collect();
    let got: Vec<Event> = got.unwrap().into_iter().map(|entry| entry.event).collect();
    let want: Vec<Event> = want.iter().map(|number| events[*number].clone()).collect();
    assert_eq!(got, want);
}

#[test]
fn a_line_that_is_no_event_is_named_and_the_rest_is_read() {
    let scene = Scene::with(&[NOW, NOW, NOW]);
    let mut lines = scene.lines(TODAY);
    lines[1] = "{}".to_owned();
    scene.put_lines(TODAY, &lines);
    let entries: Vec<_> = scene.log.entries(Filter::default()).unwrap().collect();
    assert_eq!(entries.len(), 3);
    assert!(matches!(entries[1], Err(RecordError::Line { line: 2, .. })));
}
