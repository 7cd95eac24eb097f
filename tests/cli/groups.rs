//! Control groups of runs, for whoever may have them: root, and a user with `sudo`.

use std::process::Stdio;

use rstest::rstest;

use crate::daemon::{boxery, eventually, run};
use crate::ending::{running, token};
use crate::sshd::{Vm, ordinary_user};
use crate::support::Sandbox;

const PLAIN: &str = "boxery-ungrouped";
const SUDOER: &str = "boxery-grouped";

/// A VM that shows version 2 alone, with a user of these tests' own.
fn start(pipe: &str, user: &str) -> (Sandbox, Vm) {
    if user != "root" {
        ordinary_user(user);
    }
    let sandbox = Sandbox::new();
    let lines = format!(
        "mount -t tmpfs -o mode=755 tmpfs /srv\n\
         mount -t tmpfs -o mode=750 tmpfs /etc/sudoers.d\n\
         (umask 337; echo '{SUDOER} ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/test)\n\
         umount -a -t cgroup,cgroup2 2>/dev/null || :\n\
         mkdir /srv/groups\n\
         mount -t cgroup2 none /srv/groups"
    );
    let vm = Vm::start_as(&sandbox, pipe, user, &lines, "");
    (sandbox, vm)
}

/// Wait until a run has its group: the first ones don't wait for `sudo`.
fn until_grouped(sandbox: &Sandbox, vm: &Vm) {
    eventually("a run has a group", || {
        run(sandbox, vm, "cat /proc/self/cgroup").contains("/run-")
    });
}

#[rstest]
#[case::root("root", "cgroup v2")]
#[case::with_sudo(SUDOER, "cgroup v2")]
#[case::without(PLAIN, "subreaper")]
fn the_doctor_says_what_ends_a_run(#[case] user: &str, #[case] want: &str) {
    let (sandbox, vm) = start("native", user);
    if user != PLAIN {
        until_grouped(&sandbox, &vm);
    }
    let said = boxery(&sandbox, &vm, &["vm", "doctor", "dev"]).output();
    let said = sandbox.render(&said.unwrap());
    let line = said.lines().find(|line| line.contains("process tree"));
    assert!(line.is_some_and(|line| line.ends_with(want)), "{said}");
}

#[rstest]
fn what_sudo_started_ends_with_its_run_and_no_group_is_left(
    #[values("native", "system")] pipe: &str,
) {
    let (sandbox, vm) = start(pipe, SUDOER);
    until_grouped(&sandbox, &vm);
    let token = token(60);
    let text = format!("sudo -n sleep {token} & (env -i sleep {token} &); wait");
    let words = ["run", "dev", "--cwd", "/", "--", "bash", "-c", &text];
    let mut client = boxery(&sandbox, &vm, &words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // `sudo` itself is one of them, and root's as well.
    eventually("they sleep", || running(&token) >= 3);
    client.kill().unwrap();
    client.wait().unwrap();
    eventually("nothing is left", || running(&token) == 0);

    assert!(sandbox.run(&["daemon", "stop"]).starts_with("exit: 0\n"));
    let left = "ls -d /srv/groups/boxery-$(id -u \"$1\") 2>/dev/null | wc -l";
    eventually("no group is left", || {
        let listed = vm.beside("sh").args(["-c", left, "sh", SUDOER]).output();
        listed.unwrap().stdout == b"0\n"
    });
}
