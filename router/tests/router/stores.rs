//! The files in which one hook call leaves word for the next.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::{TOKEN, World, bash, call, name, posix, remote};
use boxery_router::{AgentId, EventKind, SessionId};
use boxery_router::{
    Alarm, Alarms, CallKey, CallNote, Calls, Decision, ExecutableId, Finding, Grant, JudgedBy,
    PlainCommand, Proof, ProofState, Proofs, Ruling, Spool, Ticket, Tickets, ToolAction,
    ToolOutcome, decide, review,
};
use camino::{Utf8Path, Utf8PathBuf};
use rstest::rstest;

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap_or_default();
    (folder, path.join("store"))
}

fn ticket(text: &str) -> Ticket {
    Ticket {
        version: Ticket::VERSION,
        agent: AgentId("claude-code".to_owned()),
        session: Some(SessionId("s1".to_owned())),
        subagent: None,
        call: Some("call-1".to_owned()),
        vm: name("dev"),
        folder: remote("/w"),
        keeps_folder: true,
        drift: None,
        policy: Some(JudgedBy {
            digest: "d".to_owned(),
            folder: Some("/home/me/app".into()),
            project: Some("/home/me/app".into()),
        }),
        text_sha256: Ticket::digest(text),
        written_at: 100,
        expires_at: 1000,
    }
}

#[test]
fn a_ticket_is_taken_once_and_only_for_its_own_run() {
    let (_guard, folder) = folder();
    let tickets = Tickets::new(folder.clone());
    let written = tickets.write(&ticket("make"), TOKEN).unwrap();
    assert!(tickets.is_waiting(&written).unwrap());
    let take =
        |vm: &str, cwd: &str, text: &str| tickets.take(&name(vm), &remote(cwd), text, 200).unwrap();
    assert_eq!(take("prod", "/w", "make"), None);
    assert_eq!(take("dev", "/x", "make"), None);
    assert_eq!(take("dev", "/w", "make "), None);
    assert_eq!(take("dev", "/w", "make"), Some(ticket("make")));
    assert!(!tickets.is_waiting(&written).unwrap());
    assert_eq!(take("dev", "/w", "make"), None);
}

#[test]
fn an_expired_ticket_is_worth_nothing() {
    let (_guard, folder) = folder();
    let tickets = Tickets::new(folder);
    tickets.write(&ticket("make"), TOKEN).unwrap();
    assert_eq!(
        tickets
            .take(&name("dev"), &remote("/w"), "make", 1000)
            .unwrap(),
        None
    );
}

#[test]
fn a_ticket_does_not_hold_the_text_and_is_private() {
    let (_guard, folder) = folder();
    Tickets::new(folder.clone())
        .write(&ticket("export TOKEN=hunter2"), TOKEN)
        .unwrap();
    let mode = |path: &Utf8Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<_> = folder
        .read_dir_utf8()
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(files.len(), 1);
    assert_eq!(mode(files[0].path()), 0o600);
    assert!(
        !std::fs::read_to_string(files[0].path())
            .unwrap()
            .contains("hunter2")
    );
}

#[test]
fn of_two_equal_tickets_each_is_taken_by_one_of_many_takers() {
    let (_guard, folder) = folder();
    let tickets = Tickets::new(folder);
    tickets.write(&ticket("make"), TOKEN).unwrap();
    tickets
        .write(&ticket("make"), "ffeeddccbbaa99887766554433221100")
        .unwrap();
    let taken = std::thread::scope(|scope| {
        let takers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    tickets
                        .take(&name("dev"), &remote("/w"), "make", 200)
                        .unwrap()
                })
            })
            .collect();
        takers
            .into_iter()
            .filter_map(|taker| taker.join().unwrap())
            .count()
    });
    assert_eq!(taken, 2);
}

#[rstest]
#[case::readable_by_others(|path: &Utf8Path| {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
})]
#[case::a_link(|path: &Utf8Path| {
    let real = path.with_extension("real");
    std::fs::rename(path, &real).unwrap();
    std::os::unix::fs::symlink(&real, path).unwrap();
})]
#[case::not_ours(|path: &Utf8Path| {
    let text = std::fs::read_to_string(path).unwrap().replace("\"/w\"", "\"/x\"");
    std::fs::remove_file(path).unwrap();
    let mut options = std::fs::OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.write(true).create_new(true).open(path).unwrap();
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
})]
fn a_ticket_that_was_tampered_with_is_an_error(#[case] tamper: fn(&Utf8Path)) {
    let (_guard, folder) = folder();
    let tickets = Tickets::new(folder.clone());
    tickets.write(&ticket("make"), TOKEN).unwrap();
    let file = folder.read_dir_utf8().unwrap().next().unwrap().unwrap();
    tamper(file.path());
    assert!(
        tickets
            .take(&name("dev"), &remote("/w"), "make", 200)
            .is_err()
    );
}

#[test]
fn a_spooled_text_is_read_once() {
    let (_guard, folder) = folder();
    let spool = Spool::new(folder);
    assert_eq!(spool.take(TOKEN).unwrap(), None);
    spool.put(TOKEN, "a\n'b'").unwrap();
    assert_eq!(spool.take(TOKEN).unwrap().as_deref(), Some("a\n'b'"));
    assert_eq!(spool.take(TOKEN).unwrap(), None);
    assert!(spool.take("../../etc/passwd").is_err());
    assert!(spool.put("short", "x").is_err());
}

fn proof(executable: ExecutableId) -> Proof {
    Proof {
        version: Proof::VERSION,
        agent: AgentId("claude-code".to_owned()),
        executable,
        permission_mode: "default".to_owned(),
        sandbox_mode: "off".to_owned(),
        agent_version: "2.1".to_owned(),
        proven_at: 1,
    }
}

#[test]
fn a_proof_holds_for_one_file_and_its_modes() {
    let (guard, folder) = folder();
    let path = Utf8PathBuf::from_path_buf(guard.path().join("claude")).unwrap();
    std::fs::copy("/bin/sh", &path).unwrap();
    let agent = AgentId("claude-code".to_owned());
    let proofs = Proofs::new(folder);
    let executable = ExecutableId::read(&path).unwrap();
    let state = |executable: &ExecutableId, permission: &str, sandbox: &str| {
        proofs
            .state(&agent, executable, permission, sandbox)
            .unwrap()
    };
    assert!(matches!(
        state(&executable, "default", "off"),
        ProofState::Unproven { .. }
    ));
    proofs.write(&proof(executable.clone())).unwrap();
    assert_eq!(state(&executable, "default", "off"), ProofState::Proven);
    assert!(matches!(
        state(&executable, "plan", "off"),
        ProofState::Unproven { .. }
    ));
    assert!(matches!(
        state(&executable, "default", "on"),
        ProofState::Unproven { .. }
    ));

    // An update writes a new file under the same name.
    std::fs::remove_file(&path).unwrap();
    std::fs::copy("/bin/cat", &path).unwrap();
    let updated = ExecutableId::read(&path).unwrap();
    assert!(matches!(
        state(&updated, "default", "off"),
        ProofState::Unproven { .. }
    ));
    proofs.forget(&agent).unwrap();
    assert!(matches!(
        state(&executable, "default", "off"),
        ProofState::Unproven { .. }
    ));
}

#[test]
fn the_first_alarm_of_a_session_stays() {
    let (_guard, folder) = folder();
    let alarms = Alarms::new(folder);
    let agent = AgentId("claude-code".to_owned());
    let session = SessionId("s1".to_owned());
    let alarm = |reason: &str| Alarm {
        version: 1,
        agent: agent.clone(),
        session: Some(session.clone()),
        reason: reason.to_owned(),
        raised_at: 5,
    };
    alarms.raise(&alarm("first")).unwrap();
    alarms.raise(&alarm("second")).unwrap();
    assert_eq!(
        alarms.read(&agent, Some(&session)).unwrap().unwrap().reason,
        "first"
    );
    assert_eq!(alarms.read(&agent, None).unwrap(), None);
    assert!(alarms.clear(&agent, Some(&session)).unwrap());
    assert_eq!(alarms.list().unwrap().len(), 0);
}

fn note(text: &str, ruling: &Ruling) -> CallNote {
    let event = bash(text);
    let EventKind::BeforeTool(call) = &event.kind else {
        panic!("a call")
    };
    let key = CallKey::of(&event, call).unwrap_or_else(|| panic!("a call with an id"));
    CallNote::new(key, ruling, text, None, 100)
}

fn rewritten(text: &str) -> (CallNote, String) {
    let world = World::default();
    let ruling = decide(&bash(text), &world.redirect());
    let Decision::Rewrite {
        command,
        grant: Grant::None,
    } = ruling.decision.clone()
    else {
        panic!("not rewritten")
    };
    (note(text, &ruling), command)
}

#[rstest]
#[case::grep("grep -q nothing f", Some(PlainCommand::Grep))] // B29
#[case::path("/usr/bin/grep 'a b' f", Some(PlainCommand::Grep))]
#[case::rg("rg x", Some(PlainCommand::Rg))]
#[case::find("find . -name x", Some(PlainCommand::Find))]
#[case::diff("diff a b", Some(PlainCommand::Diff))]
#[case::test_of_a_file("test -f x", Some(PlainCommand::Test))]
#[case::pipe("grep x f | wc -l", None)]
#[case::list("grep x f; exit 1", None)]
#[case::other("make", None)]
fn only_a_plain_search_explains_its_one(#[case] text: &str, #[case] want: Option<PlainCommand>) {
    let (note, command) = rewritten(text);
    let call = call("Bash", posix(&command));
    let failed = |exit| review(&call, &ToolOutcome::Failure { exit }, Some(&note));
    assert_eq!(
        failed(Some(1)),
        want.map_or(Finding::Fine, Finding::Answered)
    );
    assert_eq!(failed(Some(2)), Finding::Fine);
    assert_eq!(
        review(&call, &ToolOutcome::Success, Some(&note)),
        Finding::Fine
    );
}

#[test]
fn another_text_than_ours_is_an_escape() {
    let (note, _) = rewritten("make");
    for outcome in [ToolOutcome::Success, ToolOutcome::Failure { exit: Some(1) }] {
        let finding = review(&call("Bash", posix("make")), &outcome, Some(&note));
        assert!(matches!(finding, Finding::Escaped { .. }), "{finding:?}");
    }
}

#[rstest]
#[case::success(ToolOutcome::Success, true)]
#[case::status(ToolOutcome::Failure { exit: Some(3) }, true)]
#[case::refused(ToolOutcome::Failure { exit: None }, false)]
fn a_denied_call_that_ran_is_an_escape(#[case] outcome: ToolOutcome, #[case] escaped: bool) {
    let world = World::default();
    let note = note("make", &decide(&bash("make"), &world.guard()));
    let finding = review(&call("Bash", posix("make")), &outcome, Some(&note));
    assert_eq!(
        matches!(finding, Finding::Escaped { .. }),
        escaped,
        "{finding:?}"
    );
}

#[test]
fn a_shell_call_without_a_begin_is_noticed_and_other_tools_are_not() {
    let outcome = ToolOutcome::Success;
    assert_eq!(
        review(&call("Bash", posix("make")), &outcome, None),
        Finding::Unseen
    );
    assert_eq!(
        review(&call("Read", ToolAction::Other), &outcome, None),
        Finding::Fine
    );
}

#[test]
fn call_notes_hold_no_text_and_are_watched_per_session() {
    let (_guard, folder) = folder();
    let calls = Calls::new(folder.clone());
    let (note, _) = rewritten("export TOKEN=hunter2");
    calls.write(&note).unwrap();
    let file = folder.read_dir_utf8().unwrap().next().unwrap().unwrap();
    assert!(
        !std::fs::read_to_string(file.path())
            .unwrap()
            .contains("hunter2")
    );
    assert_eq!(calls.read(&note.key).unwrap(), Some(note.clone()));
    calls.watch(&note, 150).unwrap();
    let watched = calls
        .watched(&note.key.agent, note.key.session.as_ref())
        .unwrap();
    assert_eq!(
        watched
            .iter()
            .map(|note| note.succeeded_at)
            .collect::<Vec<_>>(),
        [Some(150)]
    );
    assert_eq!(calls.watched(&note.key.agent, None).unwrap(), []);
    calls.unwatch(&note.key).unwrap();
    calls.remove(&note.key).unwrap();
    assert_eq!(
        calls
            .watched(&note.key.agent, note.key.session.as_ref())
            .unwrap(),
        []
    );
    assert_eq!(calls.read(&note.key).unwrap(), None);
}
