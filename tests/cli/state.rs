//! What a session's calls leave to the next one: from the agent's payload through
//! the hook, its ticket and `boxery run` to the VM, all real.

use std::process::Output;

use serde_json::json;

use crate::roundtrip::Round;

/// Standard output and standard error of a call.
fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // An embedded VM says so before each command.
    let boundary = "boxery: VM dev is this machine, with no security boundary\n";
    let notes = text(&output.stderr).replace(boundary, "");
    (text(&output.stdout), notes)
}

#[test]
fn the_agents_next_call_is_where_its_last_one_ended() {
    let round = Round::new();
    let (copy, nothing) = (&round.copy, String::new);
    round.run("mkdir -p sub/deep; cd sub && true");
    assert_eq!(
        said(&round.run("pwd")),
        (format!("{copy}/sub\n"), nothing())
    );
    let failed = round.run("cd deep; exit 3");
    assert_eq!(failed.status.code(), Some(3));
    assert_eq!(
        said(&round.run("pwd")),
        (format!("{copy}/sub/deep\n"), nothing())
    );
    // Out of the copy, and into nothing.
    round.run("mkdir /tmp/elsewhere; cd /tmp/elsewhere");
    assert_eq!(
        said(&round.run("pwd; rmdir /tmp/elsewhere")),
        ("/tmp/elsewhere\n".to_owned(), nothing())
    );
    assert_eq!(
        said(&round.run("pwd; pwd >&2")),
        (
            format!("{copy}\n"),
            format!(
                "boxery: `/tmp/elsewhere`, where this session's last command ended, is gone; this one runs in the call's own folder\n{copy}\n"
            )
        )
    );
    assert_eq!(said(&round.run("pwd")), (format!("{copy}\n"), nothing()));
}

#[test]
fn a_call_that_the_agent_moved_and_another_session_are_where_their_payload_says() {
    let round = Round::new();
    let copy = &round.copy;
    let own = round.scene.project().join("own");
    std::fs::create_dir(&own).unwrap();
    round.run("mkdir -p own sub; cd sub");
    let moved = round.run_as("pwd", &json!({ "cwd": own }));
    assert_eq!(said(&moved).0, format!("{copy}/own\n"));
    assert_eq!(said(&round.run("pwd")).0, format!("{copy}\n"));
    round.run("cd sub");
    let direct = round
        .scene
        .sandbox
        .boxery(["run", "dev", "--cwd", copy, "--", "bash", "-c", "pwd; cd /"])
        .output()
        .unwrap();
    assert_eq!(said(&direct).0, format!("{copy}\n"), "no call of an agent");
    assert_eq!(said(&round.run("pwd")).0, format!("{copy}/sub\n"));
}

#[test]
fn a_subagent_begins_where_the_main_one_is_and_moves_alone() {
    let round = Round::new();
    let copy = &round.copy;
    let subagent = |command: &str| {
        let words = json!({ "agent_id": "a1", "agent_type": "general-purpose" });
        said(&round.run_as(command, &words)).0
    };
    round.run("mkdir -p sub/deep; cd sub");
    assert_eq!(subagent("pwd; cd deep"), format!("{copy}/sub\n"));
    assert_eq!(said(&round.run("pwd; cd ..")).0, format!("{copy}/sub\n"));
    assert_eq!(subagent("pwd"), format!("{copy}/sub/deep\n"));
    assert_eq!(said(&round.run("pwd")).0, format!("{copy}\n"));
}

#[test]
fn exports_are_kept_where_the_users_configuration_says_so() {
    for (lines, want) in [("", "none\n"), ("state = \"exports\"\n", "kept\n")] {
        let round = Round::with(lines);
        round.run("export WORD=kept && /bin/true");
        let text = "echo ${WORD-none}";
        assert_eq!(said(&round.run(text)).0, want, "{lines}");
    }
}

#[test]
fn a_word_that_state_doesnt_know_is_refused() {
    let round = Round::with("");
    let file = round.scene.home().join(".config/boxery/config.toml");
    crate::scene::write(&file, "state = \"everything\"\n");
    let output = round
        .scene
        .sandbox
        .boxery(["run", "dev", "--", "true"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("state = \"everything\""), "{text}");
    assert_eq!(output.status.code(), Some(125));
}
