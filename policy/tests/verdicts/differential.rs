//! Denied commands hidden in every construct of a shell, three deep: never allowed.

use std::sync::atomic::{AtomicUsize, Ordering};

use boxery_policy::{Action, Policy, Verdict};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::support;

const POLICY: &str = r#"{"command": {"deny": ["git push", "npm publish", "rm -rf", "mkfs.ext4", "kubectl delete"]}}"#;

/// Denied commands, written in every way that the shell reads alike.
const COMMANDS: &[&str] = &[
    "git push",
    "git push origin main --force",
    "git -C /srv/app push",
    "git --no-pager -c a.b=c push",
    "g\\it push",
    "'git' \"push\"",
    "gi''t pu\"\"sh",
    "$'git' push",
    "$'\\x67it' push",
    "/usr/bin/git push",
    "~/bin/git push",
    "$HOME/bin/git push",
    "git \\\n push",
    "npm publish --access public",
    "npm --prefix web publish",
    "rm -rf /srv",
    "rm -fr /srv",
    "rm -r -f /srv",
    "rm -r /srv -f",
    "rm --recursive --force /srv",
    "rm -vRf /srv",
    "dd if=/dev/zero of=/dev/sda",
    "docker run -it --privileged ubuntu",
    "docker run -v /:/host ubuntu",
    "shutdown -h now",
    "mkfs.ext4 /dev/sdb",
    "systemctl reboot",
    "kubectl -n prod delete pod x",
    "{git,push}",
];

/// Programs that run the command in their later words.
const WRAPPERS: &[&str] = &[
    "env",
    "env -i A=1 B=2",
    "env -u HOME",
    "env -C /tmp",
    "sudo",
    "sudo -u deploy -E",
    "sudo -- ",
    "sudo A=1",
    "doas -u x",
    "command",
    "command -p",
    "exec",
    "exec -a name",
    "builtin",
    "nohup",
    "nice",
    "nice -n 5",
    "nice -5",
    "ionice -c 2 -n 7",
    "setsid -w",
    "stdbuf -oL -e0",
    "time",
    "time -p",
    "/usr/bin/time -f %e",
    "timeout 5",
    "timeout -k 1 -s KILL 5s",
    "timeout --signal=TERM 5",
    "timeout --sig TERM 5",
    "xargs",
    "xargs -0 -n 1 -P4",
    "xargs -I{}",
    "parallel -j2",
    "flock /tmp/l",
    "flock -w 5 /tmp/l",
    "chroot /mnt",
    "unshare -r -n",
    "nsenter -t 1 -m --",
    "ssh host",
    "ssh -p 22 user@host",
    "runuser -u www --",
    "busybox",
    "strace -f -o /tmp/t",
    "ltrace -o /tmp/t",
    "A=1",
    "A=1 B=$(date)",
    ">out",
    "2>&1",
    "<in",
    "!",
    "uv run",
    "poetry run",
    "npx",
    "systemd-run --user --scope",
    "watch -n 1",
    "find . -name '*.x' -exec",
    "find . -type f -execdir",
    "fd -e rs -x",
];

fn quoted(text: &str) -> String {
    shlex::try_quote(text).expect("no NUL").into_owned()
}

/// Text in double quotes.
fn double(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        if "\\\"$`".contains(character) {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('"');
    quoted
}

/// The ways to hide a text, by number.
const HIDINGS: usize = 62;

fn hide(way: usize, text: &str) -> String {
    let backticks = text
        .replace('\\', "\\\\")
        .replace('`', "\\`")
        .replace('$', "\\$");
    let q = quoted(text);
    match way % HIDINGS {
        0 => format!("ls; {text}"),
        1 => format!("true && {text}"),
        2 => format!("false || {text}"),
        3 => format!("{text} & wait"),
        4 => format!("sleep 1 & {text}"),
        5 => format!("ls | {text}"),
        6 => format!("ls |& {text}"),
        7 => format!("({text})"),
        8 => format!("( cd /; ({text}) )"),
        9 => format!("{{ {text}\n}}"),
        10 => format!("ls\n{text}\nls"),
        11 => format!("if {text}\nthen :; fi"),
        12 => format!("if true; then {text}\nfi"),
        13 => format!("if false; then :; elif false; then :; else {text}\nfi"),
        14 => format!("for i in 1 2; do {text}\ndone"),
        15 => format!("for ((i=0; i<2; i++)); do {text}\ndone"),
        16 => format!("while {text}\ndo break; done"),
        17 => format!("until false; do {text}\ndone"),
        18 => format!("case x in (y) :;; x) {text}\n;; esac"),
        19 => format!("case x in x) {text}\nesac"),
        20 => format!("f() {{ {text}\n}}; f"),
        21 => format!("function f {{ {text}\n}}\nf"),
        22 => format!("f() ( {text}\n)"),
        23 => format!("echo $({text}\n)"),
        24 => format!("echo \"a $({text}\n) b\""),
        25 => format!("echo `{backticks}`"),
        26 => format!("x=$({text}\n)"),
        27 => format!("x=$({text}\n) ls"),
        28 => format!("export X=\"$({text}\n)\""),
        29 => format!("arr=(a $({text}\n))"),
        30 => format!("diff <({text}\n) /dev/null"),
        31 => format!("tee >({text}\n) < a"),
        32 => format!("cat < <({text}\n)"),
        33 => format!("cat <<EOF-1\n$({text}\n)\nEOF-1"),
        34 => format!("cat <<-X2\n\t$({text}\n)\n\tX2\n"),
        35 => format!("bash <<'EOF-3'\n{text}\nEOF-3"),
        36 => format!("sh -s <<'EOF-4'\n{text}\nEOF-4"),
        37 => format!("bash <<< {q}"),
        38 => format!("bash -c {q}"),
        39 => format!("bash -c {}", double(text)),
        40 => format!("sh -xec {q} name arg"),
        41 => format!("bash --norc -o pipefail -c {q}"),
        42 => format!("zsh -fc {q}"),
        43 => format!("/bin/dash -c {q}"),
        44 => format!("env bash -c {q}"),
        45 => format!("eval {q}"),
        46 => format!("eval -- {}", double(text)),
        47 => format!("trap {q} EXIT"),
        48 => format!("alias zz={q}\nzz"),
        49 => format!("[[ -n $({text}\n) ]]"),
        50 => format!("echo $(( $({text}\n) + 1 ))"),
        51 => format!("echo ${{X:-$({text}\n)}}"),
        52 => format!("echo \"${{X:+$({text}\n)}}\""),
        53 => format!("for x in $({text}\n); do :; done"),
        54 => format!("case $({text}\n) in x) ;; esac"),
        55 => format!("{text}\n# a comment; it's"),
        56 => format!("su -c {q} root"),
        57 => format!("flock /tmp/l -c {q}"),
        58 => format!("xargs -I{{}} sh -c {q}"),
        59 => format!("find . -exec sh -c {q} \\;"),
        60 => format!("ssh host {q}"),
        _ => format!("watch {q}"),
    }
}

fn judged(
    policy: &Policy,
    text: &str,
    denied: &AtomicUsize,
    all: &AtomicUsize,
) -> Result<(), TestCaseError> {
    all.fetch_add(1, Ordering::Relaxed);
    match policy.evaluate(Action::Command(text)) {
        Verdict::Allow => Err(TestCaseError::fail(format!("allowed: {text}"))),
        Verdict::Deny { .. } => {
            denied.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        Verdict::Unclear { .. } => Ok(()),
    }
}

#[test]
fn every_command_behind_every_wrapper_is_denied() {
    let policy = support::policy(POLICY);
    let mut wrong = Vec::new();
    for command in COMMANDS {
        for wrapper in WRAPPERS {
            // The options of these are the command's own words there.
            let text = format!("{wrapper} {command}");
            let own = ["builtin", "exec", "command", "!"].contains(wrapper);
            let verdict = policy.evaluate(Action::Command(&text));
            if !matches!(verdict, Verdict::Deny { .. }) {
                wrong.push(format!("{text} ({own}): {verdict:?}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of them:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn every_command_in_every_construct_is_denied() {
    let policy = support::policy(POLICY);
    let mut wrong = Vec::new();
    for command in COMMANDS {
        for way in 0..HIDINGS {
            let text = hide(way, command);
            let verdict = policy.evaluate(Action::Command(&text));
            if !matches!(verdict, Verdict::Deny { .. }) {
                wrong.push(format!("{way}: {text}: {verdict:?}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of them:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn no_denied_command_is_allowed_however_it_is_hidden() {
    let policy = support::policy(POLICY);
    let (denied, all) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // The same texts each time; the fuzz target looks further.
    let config = Config {
        cases: 4000,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let ways = (
        0..COMMANDS.len(),
        proptest::option::of(0..WRAPPERS.len()),
        proptest::collection::vec(0..HIDINGS, 1..=3),
    );
    runner
        .run(&ways, |(command, wrapper, hidings)| {
            let mut text = COMMANDS[command].to_owned();
            if let Some(wrapper) = wrapper {
                text = format!("{} {text}", WRAPPERS[wrapper]);
            }
            for way in hidings {
                text = hide(way, &text);
            }
            judged(&policy, &text, &denied, &all)
        })
        .expect("nothing denied is allowed");
    let (denied, all) = (denied.into_inner(), all.into_inner());
    println!(
        "hidden three deep: {all} texts, {denied} denied, {} unclear, 0 allowed",
        all - denied
    );
    assert!(
        denied * 100 >= all * 98,
        "{denied} of {all} denied: too much is unclear"
    );
}
