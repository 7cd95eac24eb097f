//! The login environment, as each kind of login shell makes it.

use std::fs;
use std::path::Path;

use boxery_wire::{Machine, Outcome, Reply, Request};
use rstest::rstest;
use tokio::process::Command;

use crate::support::{Helper, Home};

/// A helper of a user with this login shell. `/etc/passwd` is another file in a
/// mount namespace of its own.
async fn login(home: &Home, shell: &str) -> Helper {
    let program = env!("CARGO_BIN_EXE_boxery-helper");
    let passwd = home.path().join("passwd");
    let line = format!("vmuser:x:0:0::{}:{shell}\n", home.path().display());
    put(home, "passwd", &line);
    let text = format!(
        "mount --bind '{}' /etc/passwd && exec '{program}' \"$@\"",
        passwd.display()
    );
    let mut command = Command::new("unshare");
    command.args([
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        &text,
        "sh",
    ]);
    home.connect_to(command).await
}

async fn hello(helper: &Helper) -> Machine {
    match helper.ask(&Request::Hello).await.0 {
        Reply::Hello(machine) => *machine,
        other => panic!("{other:?}"),
    }
}

fn put(home: &Home, file: &str, text: &str) {
    home.put(file, text);
}

/// What a start-up file may do to whoever reads its output.
const NOISE: &str = "echo noise; echo noise >&2\n";

#[rstest]
#[case::bash_profile("bash", ".bash_profile", "export PATH=/opt/own:$PATH\n")]
#[case::bash_profile_of_sh("bash", ".profile", "export PATH=/opt/own:$PATH\n")]
#[case::bash_rc_only("bash", ".bashrc", "export PATH=/opt/own:$PATH\n")]
#[case::dash("dash", ".profile", "export PATH=/opt/own:$PATH\n")]
#[case::zsh_rc("zsh", ".zshrc", "export PATH=/opt/own:$PATH\n")]
#[case::zsh_env("zsh", ".zshenv", "export PATH=/opt/own:$PATH\n")]
#[case::zsh_profile("zsh", ".zprofile", "export PATH=/opt/own:$PATH\n")]
#[case::fish("fish", ".config/fish/config.fish", "set -gx PATH /opt/own $PATH\n")]
#[case::tcsh("tcsh", ".tcshrc", "setenv PATH /opt/own:$PATH\n")]
#[case::tcsh_login("tcsh", ".login", "setenv PATH /opt/own:$PATH\n")]
#[case::ksh("ksh", ".profile", "export PATH=/opt/own:$PATH\n")]
#[tokio::test]
async fn path_is_the_login_shells_whichever_file_sets_it(
    #[case] shell: &str,
    #[case] file: &str,
    #[case] text: &str,
) {
    let home = Home::new();
    let noise = if shell == "tcsh" {
        "echo noise\n"
    } else {
        NOISE
    };
    put(&home, file, &format!("{noise}{text}"));
    let shell = format!("/usr/bin/{shell}");
    assert!(
        Path::new(&shell).exists(),
        "install {shell}: these tests need it"
    );
    let helper = login(&home, &shell).await;
    let machine = hello(&helper).await;
    assert_eq!(machine.no_login, None);
    assert_eq!(&*machine.shell, shell.as_bytes());
    let path = String::from_utf8_lossy(&machine.path).into_owned();
    assert!(path.starts_with("/opt/own:"), "{path}");
    let done = helper.bash("printf %s \"$PATH\"").await;
    assert_eq!(String::from_utf8_lossy(&done.stdout), path);
}

#[tokio::test]
async fn a_bashrc_that_its_profile_reads_is_read_as_an_interactive_one() {
    let home = Home::new();
    put(&home, ".profile", ". ~/.bashrc\n");
    let guard = "case $- in *i*) ;; *) return ;; esac\nexport FROM_RC=1\n";
    put(&home, ".bashrc", guard);
    let helper = login(&home, "/usr/bin/bash").await;
    let done = helper.bash("echo $FROM_RC").await;
    assert_eq!(
        (done.stdout.as_slice(), done.stderr.as_slice()),
        (&b"1\n"[..], &b""[..])
    );
}

#[rstest]
#[case::no_login("/usr/sbin/nologin")]
#[case::gone("/no/such/shell")]
#[tokio::test]
async fn a_shell_that_tells_nothing_leaves_what_sshd_gave(#[case] shell: &str) {
    let home = Home::new();
    let helper = login(&home, shell).await;
    let machine = hello(&helper).await;
    let why = machine.no_login.unwrap();
    assert!(why.contains(shell), "{why}");
    assert_eq!(&*machine.path, b"/usr/local/bin:/usr/bin:/bin");
    assert_eq!(helper.bash("exit 3").await.outcome, Outcome::Exited(3));
}

#[tokio::test]
async fn what_start_up_files_leave_running_is_nobodys_business() {
    let home = Home::new();
    put(&home, ".bashrc", "sleep 300 & echo $! > agent\n");
    let helper = login(&home, "/usr/bin/bash").await;
    for _ in 0..3 {
        assert_eq!(helper.bash("exit 0").await.outcome, Outcome::Exited(0));
    }
    let pid: i32 = fs::read_to_string(home.path().join("agent"))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
