//! `boxery shell` in a real terminal.

use std::process::Command;

use rstest::rstest;
use rustix::termios::LocalModes;

use crate::pty::Pty;
use crate::sshd::Vm;
use crate::support::Sandbox;

fn boxery(sandbox: &Sandbox, vm: &Vm, words: &[&str]) -> Command {
    let mut command = sandbox.boxery(words);
    command
        .env("SSH_AUTH_SOCK", vm.agent())
        .env("TERM", "xterm-256color");
    command
}

/// A shell there, at a prompt of ours.
fn open(sandbox: &Sandbox, vm: &Vm) -> Pty {
    let mut pty = Pty::start(&boxery(sandbox, vm, &["shell", "dev", "--cwd", "/"]));
    pty.say("PS1='\\r\\n[there]'; exec bash --norc -i\n");
    pty.say("PS1='\\r\\n[at%''there]'; unset PROMPT_COMMAND\n");
    pty.until("[at%there]");
    pty
}

#[rstest]
fn a_shell_is_a_real_terminal(#[values("native", "system")] pipe: &str) {
    let sandbox = Sandbox::new();
    let vm = Vm::start_over(&sandbox, "", pipe);
    let mut pty = open(&sandbox, &vm);
    let outer = pty.settings().local_modes;
    assert!(
        !outer.contains(LocalModes::ICANON | LocalModes::ECHO),
        "raw"
    );

    pty.say("tty; stty size; echo $TERM; pwd\n");
    pty.until("/dev/pts/");
    pty.until("24 80\r\n");
    pty.until("xterm-256color\r\n/\r\n");

    // A new size reaches what runs there, by a signal.
    pty.say(
        "bash -c \"trap 'stty size; kill \\$!; exit' WINCH; sleep 1000 & echo re''ady; wait\"\n",
    );
    pty.until("ready\r\n");
    pty.resize(132, 50);
    pty.until("50 132\r\n");
    pty.until("[at%there]");

    // Colours, and every other byte, as they are.
    pty.say("printf '\\033[1;31mred\\033[0m\\342\\202\\254\\n'\n");
    pty.until("\x1b[1;31mred\x1b[0m\u{20ac}\r\n");

    // Ctrl-Z, fg, and Ctrl-C to the foreground job alone.
    pty.say("sleep 1000 &\n");
    pty.until("[1] ");
    pty.say("bash -c \"trap 'echo re''sumed' CONT; echo u''p; while :; do sleep 0.1; done\"\n");
    pty.until("up\r\n");
    pty.say("\x1a");
    pty.until("Stopped");
    pty.until("[at%there]");
    pty.say("fg\n");
    pty.until("resumed\r\n");
    pty.say("\x03");
    pty.until("^C");
    pty.until("[at%there]");
    pty.say("echo \"$?/$(jobs -r | wc -l)\"\n");
    pty.until("130/1\r\n");
    pty.say("kill %1; exit 7\n");
    let (status, _) = pty.end();
    assert_eq!(status.code(), Some(7));
    let after = pty.settings().local_modes;
    assert!(after.contains(LocalModes::ICANON | LocalModes::ECHO));
}

#[rstest]
fn a_shell_comes_back_after_its_connection_broke(#[values("native", "system")] pipe: &str) {
    let sandbox = Sandbox::new();
    let vm = Vm::start_over(&sandbox, "", pipe);
    let mut pty = open(&sandbox, &vm);
    pty.say("here=still\n");
    pty.until("[at%there]");
    vm.cut();
    pty.say("echo $here-the''re\n");
    pty.until("still-there\r\n");
    pty.say("exit 3\n");
    assert_eq!(pty.end().0.code(), Some(3));
}

#[test]
fn the_terminal_is_as_it_was_after_a_shell_was_ended_from_outside() {
    let sandbox = Sandbox::new();
    let vm = Vm::start(&sandbox, "");
    let mut pty = open(&sandbox, &vm);
    assert!(!pty.settings().local_modes.contains(LocalModes::ICANON));
    let pid = pty.pid().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    let (status, _) = pty.end();
    assert_eq!(status.code(), Some(143));
    let after = pty.settings().local_modes;
    assert!(after.contains(LocalModes::ICANON | LocalModes::ECHO));
}
