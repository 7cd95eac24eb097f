//! What is typed behind `boxery run NAME --` arrives byte for byte, whichever the login
//! shell there.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::process::Command;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use rstest::rstest;

use crate::sshd::Vm;
use crate::support::Sandbox;

/// Cases for each shell; `PROPTEST_CASES` says another number, and then each round has
/// cases of its own.
const CASES: u32 = 12;
const SEED: u64 = 0x626f_7865_7279;

/// The longest argument that Linux takes, and the most of all of them here.
const LONGEST: usize = 128 * 1024 - 1;
const MOST: usize = 1 << 20;

/// The login shell gets the line as sshd gives it, and nobody else does.
const LOGIN_SHELL: &str = r#"exec "$SHELL" -c "$SSH_ORIGINAL_COMMAND""#;

/// A user of this machine with that login shell; the first test that wants it makes it.
fn user(shell: &str) -> String {
    let name = format!("boxery-argv-{shell}");
    let lock = std::fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open("/run/boxery-tests.lock")
        .expect("this test makes users: run it as root");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let known = std::fs::read_to_string("/etc/passwd").unwrap();
    if !known
        .lines()
        .any(|line| line.starts_with(&format!("{name}:")))
    {
        let found = Command::new("sh")
            .args(["-c", "command -v \"$1\"", "sh", shell])
            .output()
            .unwrap();
        let path = String::from_utf8(found.stdout).unwrap();
        assert!(
            !path.is_empty(),
            "this test needs `{shell}`: ./tests/run needs"
        );
        let made = Command::new("useradd")
            .args(["--create-home", "--base-dir", "/var/tmp", "--password", "*"])
            .args(["--shell", path.trim(), &name])
            .status()
            .unwrap();
        assert!(made.success());
    }
    name
}

/// Arguments of any bytes but NUL: mostly short ones, full of what shells mean, now and
/// then one as long as can be.
fn arguments() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let special = proptest::sample::select(
        b"'\"\\$`!\n\r\t #;&|<>()*?[]{}~-+=%^\x01\x1b\x7f\x80\x81\x82\x88\xff\x1e".to_vec(),
    );
    let bytes = proptest::collection::vec(prop_oneof![1..=255_u8, special], 0..300);
    let long = (1..=255_u8, 1..=LONGEST).prop_map(|(byte, length)| {
        let mut text = vec![byte; length];
        text[0] = b'\'';
        text
    });
    proptest::collection::vec(prop_oneof![12 => bytes, 1 => long], 0..10)
}

fn run(sandbox: &Sandbox, arguments: &[Vec<u8>]) -> std::process::Output {
    let mut command = sandbox.boxery(["run", "dev", "--cwd", "/", "--", "printf", "%s\\0"]);
    let words = arguments.iter().cloned().map(OsString::from_vec);
    command.args(words).output().unwrap()
}

fn joined(arguments: &[Vec<u8>]) -> Vec<u8> {
    if arguments.is_empty() {
        return b"\0".to_vec();
    }
    let ended = arguments
        .iter()
        .map(|argument| [argument.as_slice(), b"\0"].concat());
    ended.collect::<Vec<_>>().concat()
}

#[rstest]
fn any_bytes_come_back_as_they_went(
    #[values("sh", "dash", "bash", "zsh", "fish", "tcsh", "ksh")] shell: &str,
) {
    let sandbox = Sandbox::new();
    let vm = Vm::start(&sandbox, LOGIN_SHELL);
    vm.log_in_as(&sandbox, &user(shell));
    let whose = sandbox.run(&["run", "dev", "--cwd", "/", "--", "sh", "-c", "echo $SHELL"]);
    assert!(whose.contains(&format!("/{shell}\n")), "{whose}");

    let config = Config::default();
    let is_long = config.cases != 256;
    let mut runner = TestRunner::new(Config {
        cases: if is_long { config.cases } else { CASES },
        rng_seed: if is_long {
            RngSeed::Random
        } else {
            RngSeed::Fixed(SEED)
        },
        failure_persistence: None,
        max_shrink_iters: 200,
        ..config
    });
    let tried = runner.run(&arguments(), |arguments| {
        let output = run(&sandbox, &arguments);
        prop_assert_eq!(output.status.code(), Some(0));
        prop_assert!(output.stdout == joined(&arguments));
        prop_assert!(output.stderr.is_empty());
        Ok(())
    });
    tried.unwrap();

    // As much as there may be.
    let piece: Vec<u8> = (1..=255).cycle().take(LONGEST).collect();
    let many: Vec<Vec<u8>> = std::iter::repeat_n(piece, MOST / (LONGEST + 1)).collect();
    let output = run(&sandbox, &many);
    assert!(output.stdout == joined(&many), "{:?}", output.status);
}
