//! `pin` and `unpin`, as a person and as an agent would use them.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rstest::rstest;

use crate::support::{BOXERY, Sandbox};

/// A home that knows two VMs.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.configure(
        "[vm.dev]\ntarget = \"u@dev.example.org\"\ndir = \"/srv/boxery\"\n\n\
         [vm.other]\ntarget = \"u@other.example.org\"\ndir = \"/srv/boxery\"\n",
    );
    sandbox
}

/// The binary in a shell that a Claude Code of its own started, by its variables.
fn claude(sandbox: &Sandbox, session: &str, arguments: &[&str]) -> Command {
    let mut command = under_agent(sandbox, BOXERY, arguments.iter().map(OsStr::new));
    command
        .env("CLAUDECODE", "1")
        .env("CLAUDE_CODE_SESSION_ID", session);
    command
}

/// A shell whose processes bear an agent's name: the kernel takes it from the link.
fn agent(sandbox: &Sandbox) -> PathBuf {
    let agent = sandbox.home().join("claude");
    if !agent.exists() {
        std::os::unix::fs::symlink("/bin/sh", &agent).unwrap();
    }
    agent
}

/// `program` below a process that bears an agent's name.
fn under_agent<'a>(
    sandbox: &Sandbox,
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = &'a OsStr>,
) -> Command {
    let mut command = sandbox.command(agent(sandbox));
    // The `:` keeps the shell from becoming the program itself.
    command
        .args(["-c", "\"$@\"; status=$?; :; exit $status", "claude"])
        .arg(program)
        .args(arguments);
    command
}

fn text(sandbox: &Sandbox, mut command: Command) -> String {
    sandbox.render(&command.output().unwrap())
}

/// `arguments` at a terminal of the user's own; what the terminal shows.
fn at_terminal(sandbox: &Sandbox, arguments: &[&str]) -> String {
    text(sandbox, terminal(sandbox, BOXERY, arguments))
}

/// `program` at a terminal: needs util-linux's script.
fn terminal(sandbox: &Sandbox, program: &str, arguments: &[&str]) -> Command {
    let words = std::iter::once(program).chain(arguments.iter().copied());
    let mut command = sandbox.command("script");
    command
        .args(["-q", "-e", "-c", &shlex::try_join(words).unwrap()])
        .arg("/dev/null");
    command
}

/// The copy's digits depend on the machine.
fn without_digits(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/project-") {
        shown.push_str(before);
        shown.push_str("/project-[8 HEX]");
        rest = &after[8..];
    }
    shown + rest
}

fn pins(sandbox: &Sandbox) -> usize {
    let folder = sandbox.home().join(".local/state/boxery/pins");
    folder.read_dir().map_or(0, Iterator::count)
}

#[test]
fn nothing_pinned_is_a_no() {
    insta::assert_snapshot!(sandbox().run(&["pin"]), @r"
    exit: 1
    ----- stdout
    ----- stderr
    nothing is pinned here
    ");
    insta::assert_snapshot!(sandbox().run(&["pin", "--explain"]), @r"
    exit: 1
    ----- stdout
    BOXERY_VM is not set
    nothing is pinned at all
    ----- stderr
    nothing is pinned here
    ");
}

#[test]
fn a_person_pins_the_project_and_is_told_how_to_undo_it() {
    let sandbox = sandbox();
    insta::assert_snapshot!(without_digits(&sandbox.run(&["pin", "dev"])), @r"
    exit: 0
    ----- stdout
    VM      dev, by project [SCRATCH]/project
    mode    guard
    path    [SCRATCH]/project -> /srv/boxery/project-[8 HEX]
    policy  no policy file
    ----- stderr
    pinned project [SCRATCH]/project to VM dev
    undo: `boxery unpin` here, in a terminal of your own
    next: `boxery sync dev` sends the project there
    ");
    insta::assert_snapshot!(without_digits(&sandbox.run(&["pin"])), @r"
    exit: 0
    ----- stdout
    VM      dev, by project [SCRATCH]/project
    mode    guard
    path    [SCRATCH]/project -> /srv/boxery/project-[8 HEX]
    policy  no policy file
    ----- stderr
    ");
    insta::assert_snapshot!(at_terminal(&sandbox, &["unpin"]), @r"
    exit: 0
    ----- stdout
    unpinned project [SCRATCH]/project
    ----- stderr
    ");
    assert_eq!(pins(&sandbox), 0);
    insta::assert_snapshot!(sandbox.run(&["unpin"]), @r"
    exit: 0
    ----- stdout
    ----- stderr
    nothing is pinned here
    ");
}

#[test]
fn a_session_that_the_user_names_is_pinned_and_shown_from_a_terminal() {
    let sandbox = sandbox();
    let pinned = sandbox.run(&["pin", "dev", "--session", "s-1"]);
    insta::assert_snapshot!(without_digits(&pinned), @r"
    exit: 0
    ----- stdout
    VM      dev, by session s-1 of claude-code
    mode    guard
    path    [SCRATCH]/project -> /srv/boxery/project-[8 HEX]
    policy  no policy file
    ----- stderr
    pinned session s-1 of claude-code to VM dev
    undo: `boxery unpin --session s-1` in a terminal of your own
    ");
    assert!(sandbox.run(&["pin"]).starts_with("exit: 1\n"));
}

#[test]
fn an_agents_shell_pins_its_session_and_not_the_project() {
    let sandbox = sandbox();
    let pinned = text(&sandbox, claude(&sandbox, "s-1", &["pin", "dev"]));
    insta::assert_snapshot!(without_digits(&pinned), @r"
    exit: 0
    ----- stdout
    VM      dev, by session s-1 of claude-code
    mode    guard
    path    [SCRATCH]/project -> /srv/boxery/project-[8 HEX]
    policy  no policy file
    ----- stderr
    pinned session s-1 of claude-code to VM dev
    undo: `boxery unpin --session s-1` in a terminal of your own
    ");
    // In another process, as after a resume.
    assert!(text(&sandbox, claude(&sandbox, "s-1", &["pin"])).starts_with("exit: 0\n"));
    assert!(text(&sandbox, claude(&sandbox, "s-2", &["pin"])).starts_with("exit: 1\n"));
    assert!(sandbox.run(&["pin"]).starts_with("exit: 1\n"));
}

#[test]
fn mode_and_drift_of_a_pin_change_and_stay_until_they_change_again() {
    let sandbox = sandbox();
    let pinned = |arguments: &[&str]| {
        let json = sandbox.run(arguments);
        let json = json.split("----- stdout\n").nth(1).unwrap();
        let json: serde_json::Value =
            serde_json::from_str(json.split("\n-----").next().unwrap()).unwrap();
        (json["mode"].clone(), json["drift"].clone())
    };
    assert_eq!(
        pinned(&["pin", "dev", "--json"]),
        ("guard".into(), ().into())
    );
    assert_eq!(
        pinned(&["pin", "--redirect", "--drift", "deny", "--json"]),
        ("redirect".into(), "deny".into())
    );
    assert_eq!(
        pinned(&["pin", "dev", "--json"]),
        ("redirect".into(), "deny".into())
    );
    assert_eq!(
        pinned(&["pin", "--guard", "--json"]),
        ("guard".into(), "deny".into())
    );
}

#[rstest]
#[case::unknown_vm(&["pin", "deb"], 125, "did you mean `dev`?")]
#[case::bad_name(&["pin", "De v"], 64, "")]
#[case::both_modes(&["pin", "dev", "--guard", "--redirect"], 64, "")]
#[case::unknown_drift(&["pin", "dev", "--drift", "maybe"], 64, "warn, sync, deny or off")]
#[case::mode_of_nothing(&["pin", "--redirect"], 64, "boxery pin NAME")]
#[case::session_without_vm(&["pin", "--session", "s"], 64, "boxery pin NAME --session ID")]
fn a_mistake_pins_nothing(#[case] arguments: &[&str], #[case] exit: i32, #[case] says: &str) {
    let sandbox = sandbox();
    let shown = sandbox.run(arguments);
    assert!(shown.starts_with(&format!("exit: {exit}\n")), "{shown}");
    assert!(shown.contains(says), "{shown}");
    assert_eq!(pins(&sandbox), 0);
}

/// Everything that would weaken a pin, from a shell that an agent started.
#[rstest]
#[case::unpin(&["unpin"])]
#[case::unpin_for_a_while(&["unpin", "--for", "1s"])]
#[case::unpin_a_session(&["unpin", "--session", "s-1"])]
#[case::another_vm(&["pin", "other"])]
#[case::another_mode(&["pin", "--redirect"])]
#[case::another_drift_rule(&["pin", "dev", "--drift", "off"])]
#[case::another_vm_for_its_session(&["pin", "other", "--session", "s-1"])]
fn an_agent_cannot_weaken_a_pin(#[case] arguments: &[&str]) {
    for project in [false, true] {
        let sandbox = sandbox();
        if project {
            sandbox.run(&["pin", "dev"]);
        }
        sandbox.run(&["pin", "dev", "--session", "s-1"]);
        let before = pins(&sandbox);
        let shown = text(&sandbox, claude(&sandbox, "s-1", arguments));
        assert!(shown.starts_with("exit: 1\n"), "{shown}");
        assert!(shown.contains("in a terminal"), "{shown}");
        assert_eq!(pins(&sandbox), before);
        let after = text(&sandbox, claude(&sandbox, "s-1", &["pin"]));
        assert!(
            after.contains("VM      dev") && after.contains("mode    guard"),
            "{after}"
        );
    }
}

#[test]
fn an_agent_that_hides_its_variables_and_makes_a_terminal_is_known_by_its_program() {
    let sandbox = sandbox();
    sandbox.run(&["pin", "dev"]);
    let script = terminal(&sandbox, BOXERY, &["unpin"]);
    let command = under_agent(&sandbox, script.get_program(), script.get_args());
    let shown = text(&sandbox, command);
    assert!(shown.starts_with("exit: 1\n"), "{shown}");
    assert!(shown.contains("this is a shell of claude-code"), "{shown}");
    assert_eq!(pins(&sandbox), 1);
}

/// A row of docs/security.md: it goes when this fails.
#[test]
fn hole_a_process_that_left_its_agent_and_made_a_terminal_can_unpin() {
    let sandbox = sandbox();
    sandbox.run(&["pin", "dev"]);
    let script = terminal(&sandbox, BOXERY, &["unpin"]);
    let mut command = sandbox.command(agent(&sandbox));
    // The inner shell begins when the outer one, its agent, has ended.
    let wait = "while [ -e /proc/$0/exe ]; do :; done; exec \"$@\"";
    command
        .args(["-c", "setsid -f sh -c \"$0\" $$ \"$@\"; :", wait])
        .arg(script.get_program())
        .args(script.get_args());
    text(&sandbox, command);
    assert_eq!(pins(&sandbox), 0);
}

#[rstest]
#[case::unpin(&["unpin"])]
#[case::another_vm(&["pin", "other"])]
fn without_a_terminal_nobody_weakens_a_pin(#[case] arguments: &[&str]) {
    let sandbox = sandbox();
    sandbox.run(&["pin", "dev"]);
    // A session of its own has no controlling terminal, wherever the tests run.
    let mut command = sandbox.command("setsid");
    command.args(["--wait", BOXERY]).args(arguments);
    let shown = text(&sandbox, command);
    assert!(shown.starts_with("exit: 1\n"), "{shown}");
    assert!(shown.contains("in a terminal"), "{shown}");
    assert!(sandbox.run(&["pin"]).contains("VM      dev"));
}

#[test]
fn a_person_moves_a_pin_to_another_vm() {
    let sandbox = sandbox();
    sandbox.run(&["pin", "dev", "--redirect"]);
    let shown = at_terminal(&sandbox, &["pin", "other"]);
    assert!(shown.starts_with("exit: 0\n"), "{shown}");
    let shown = sandbox.run(&["pin"]);
    assert!(shown.contains("VM      other"), "{shown}");
    assert!(shown.contains("mode    guard"), "{shown}");
}

#[test]
fn a_pin_rests_for_a_while_and_pinning_again_ends_the_rest() {
    let sandbox = sandbox();
    sandbox.run(&["pin", "dev", "--redirect"]);
    let shown = at_terminal(&sandbox, &["unpin", "--for", "10m"]);
    assert!(shown.contains("for 600 s"), "{shown}");
    assert_eq!(pins(&sandbox), 1);
    insta::assert_snapshot!(sandbox.run(&["pin", "--explain"]), @r"
    exit: 1
    ----- stdout
    BOXERY_VM is not set
    the call belongs to no agent's session
    no pin for any of the processes above
    a project is pinned at or for `[SCRATCH]/project`
    the pin of project [SCRATCH]/project is suspended for now
    ----- stderr
    nothing is pinned here
    ");
    sandbox.run(&["pin", "dev"]);
    assert!(sandbox.run(&["pin"]).contains("mode    redirect"));
    at_terminal(&sandbox, &["unpin", "--for", "0s"]);
    assert!(sandbox.run(&["pin"]).contains("VM      dev"));
}

#[test]
fn the_environment_goes_before_every_pin_and_is_unset_by_the_user() {
    let sandbox = sandbox();
    let with = |value: &str, arguments: &[&str]| {
        let mut command = terminal(&sandbox, BOXERY, arguments);
        command.env("BOXERY_VM", value);
        text(&sandbox, command)
    };
    assert!(with("other", &["pin", "dev"]).contains("BOXERY_VM is set in this shell"));
    assert!(with("other", &["pin"]).contains("VM      other, by BOXERY_VM"));
    let shown = with("other", &["unpin"]);
    assert!(shown.contains("unset BOXERY_VM"), "{shown}");
    assert_eq!(pins(&sandbox), 1);
    for value in ["nobody", "Not a name"] {
        let shown = with(value, &["pin"]);
        assert!(shown.starts_with("exit: 2\n"), "{shown}");
    }
}

#[rstest]
#[case::cut("{")]
#[case::newer("{\"version\": 99}")]
fn a_damaged_pin_is_told_and_goes_by_unpin_or_pin(#[case] content: &str) {
    let sandbox = sandbox();
    let folder = sandbox.home().join(".local/state/boxery/pins");
    let damage = || {
        sandbox.run(&["pin", "dev"]);
        let file = folder.read_dir().unwrap().next().unwrap().unwrap().path();
        put(&file, content);
    };
    damage();
    let shown = sandbox.run(&["pin"]);
    assert!(shown.starts_with("exit: 2\n"), "{shown}");
    assert!(shown.contains("is not a pin file"), "{shown}");
    assert!(at_terminal(&sandbox, &["unpin"]).contains("unpinned project"));
    assert_eq!(pins(&sandbox), 0);
    damage();
    assert!(sandbox.run(&["pin", "dev"]).starts_with("exit: 0\n"));
}

#[test]
fn what_was_pinned_is_on_record_and_the_record_is_whole() {
    let sandbox = sandbox();
    assert!(
        sandbox
            .run(&["log", "check"])
            .contains("no event is on record yet")
    );
    sandbox.run(&["pin", "dev", "--session", "s-1"]);
    sandbox.run(&["pin", "dev", "--redirect"]);
    at_terminal(&sandbox, &["unpin"]);
    let log = sandbox.run(&["log"]);
    let shown: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split_once("Z  ").map(|(_, rest)| rest))
        .collect();
    assert_eq!(
        shown,
        [
            "pin            claude-code  session s-1  VM dev  session s-1 of claude-code",
            "pin            VM dev  redirect  project [SCRATCH]/project",
            "unpin          project [SCRATCH]/project",
        ]
    );
    assert!(sandbox.run(&["log", "check"]).contains("intact: 3 events"));
    let one = sandbox.run(&["log", "--session", "s-1", "--json"]);
    assert!(
        one.contains("\"kind\":\"pin\"") && one.contains("\"seq\":1,"),
        "{one}"
    );
    assert!(!one.contains("\"seq\":2,"), "{one}");

    let folder = sandbox.home().join(".local/state/boxery/log");
    let segment = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .unwrap();
    let good = std::fs::read_to_string(&segment).unwrap();
    put(&segment, &good.replace("s-1", "s-2"));
    let shown = sandbox.run(&["log", "check"]);
    assert!(shown.starts_with("exit: 1\n"), "{shown}");
    assert!(shown.contains(":1: the line was changed"), "{shown}");
}

fn put(path: &Path, content: &str) {
    std::io::Write::write_all(
        &mut std::fs::File::create(path).unwrap(),
        content.as_bytes(),
    )
    .unwrap();
}
