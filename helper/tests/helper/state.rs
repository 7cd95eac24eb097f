//! What a session's calls leave to the next one.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of a test: what can't be set up fails it"
)]

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use boxery_wire::{Blob, Keep, Outcome, Reply, Request, Run, StateId};
use rstest::rstest;

use crate::support::{Done, Helper, Home, bash};

/// A session in a folder `work` of a home, with a folder `sub` in it.
struct Session {
    home: Home,
    helper: Helper,
}

const MAIN: Keep = Keep {
    key: StateId([7; 16]),
    from: None,
    folder: true,
    exports: false,
};
const WITH_EXPORTS: Keep = Keep {
    exports: true,
    ..MAIN
};
const SUBAGENT: Keep = Keep {
    key: StateId([8; 16]),
    from: Some(StateId([7; 16])),
    ..MAIN
};

impl Session {
    async fn new() -> Self {
        let home = Home::new();
        fs::create_dir_all(home.path().join("work/sub/deep")).unwrap();
        let helper = home.connect().await;
        Self { home, helper }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.home.path().canonicalize().unwrap().join(path)
    }

    /// A call that asks for the folder `folder`.
    fn call(&self, text: &str, folder: &str, keep: Keep) -> Run {
        Run {
            cwd: Some(self.path(folder).as_os_str().as_bytes().into()),
            keep: Some(keep),
            ..bash(text)
        }
    }

    async fn bash(&self, text: &str, keep: Keep) -> Done {
        self.helper.run(self.call(text, "work", keep)).await
    }

    /// Where the next call is.
    async fn folder(&self, keep: Keep) -> PathBuf {
        let done = self.bash("pwd -P", keep).await;
        assert_eq!(done.outcome, Outcome::Exited(0), "{done:?}");
        path(done.stdout.trim_ascii_end())
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    Path::new(std::ffi::OsStr::from_bytes(bytes)).to_owned()
}

#[rstest]
#[case::cd("cd sub", "work/sub")]
#[case::cd_before_the_last("cd sub && true", "work/sub")]
#[case::cd_before_a_program("cd sub && /bin/true", "work/sub")]
#[case::cd_before_a_program_that_fails("cd sub && /bin/false", "work/sub")]
#[case::cd_before_no_program("cd sub; /no/such/program", "work/sub")]
#[case::twice("cd sub; cd deep", "work/sub/deep")]
#[case::back("cd sub; cd ..", "work")]
#[case::pushd("pushd sub", "work/sub")]
#[case::function("f() { cd sub; }; f", "work/sub")]
#[case::sourced("echo cd sub > x; . ./x", "work/sub")]
#[case::evaluated("eval 'cd sub && /bin/true'", "work/sub")]
#[case::negated("cd sub; ! /bin/false", "work/sub")]
#[case::lastpipe("shopt -s lastpipe; true | cd sub", "work/sub")]
#[case::exit_3("cd sub; exit 3", "work/sub")]
#[case::errexit("set -e; cd sub; false; cd /", "work/sub")]
#[case::nounset("set -u; cd sub; echo $nothing; cd /", "work/sub")]
#[case::exit_trap("trap 'cd deep; exit 5' EXIT; cd sub", "work/sub/deep")]
#[case::streams_moved("exec 3>&1 >out; cd sub; /bin/true", "work/sub")]
#[case::descriptors_closed(
    "for fd in /proc/$$/fd/*; do fd=${fd##*/}; exec {fd}>&-; done; cd sub; /bin/true",
    "work/sub"
)]
#[case::background("cd sub; sleep 0.01 &", "work/sub")]
#[case::script_without_a_name("printf 'cd /\nexit 4' > x; chmod +x x; cd sub && ../x", "work/sub")]
#[case::long("cd sub; : 'LONG'", "work/sub")]
#[case::subshell("(cd sub)", "work")]
#[case::pipe("cd sub | cat", "work")]
#[case::substitution("x=$(cd sub; pwd)", "work")]
#[case::another_bash("bash -c 'cd sub'", "work")]
#[case::another_bash_in_place("cd sub; bash -c 'cd deep'", "work/sub")]
#[case::exec("cd sub; exec /bin/true", "work")]
#[case::exec_of_a_bash("exec bash -c 'cd sub'", "work")]
#[case::exec_by_command("cd sub; command exec /bin/true", "work")]
#[case::exec_of_nothing("cd sub; exec /no/such/program", "work/sub")]
#[case::killed("cd sub; kill -KILL $$", "work")]
#[case::terminated("cd sub; kill -TERM $$", "work")]
#[tokio::test]
async fn the_next_call_is_where_the_last_one_ended(#[case] text: &str, #[case] want: &str) {
    let session = Session::new().await;
    let text = text.replace("LONG", &"x".repeat(200_000));
    let done = session.bash(&text, MAIN).await;
    assert!(done.gone.is_none(), "{done:?}");
    assert_eq!(session.folder(MAIN).await, session.path(want));
}

#[tokio::test]
async fn a_call_sees_every_call_before_it_also_over_another_connection() {
    let session = Session::new().await;
    session.bash("cd sub", MAIN).await;
    session.bash("cd deep", MAIN).await;
    session.bash("exit 9", MAIN).await;
    session.bash("kill -9 $$", MAIN).await;
    let again = session.home.connect().await;
    let done = again.run(session.call("pwd", "work", MAIN)).await;
    let want = session.path("work/sub/deep\n");
    assert_eq!(path(&done.stdout), want);
}

#[tokio::test]
async fn a_call_that_the_agent_moved_is_where_it_asks_to_be() {
    let session = Session::new().await;
    session.bash("cd sub", MAIN).await;
    let done = session
        .helper
        .run(session.call("pwd; cd /usr", "work/sub/deep", MAIN))
        .await;
    assert_eq!(path(&done.stdout), session.path("work/sub/deep\n"));
    // There it goes on, until it is moved again.
    let call = |folder| session.helper.run(session.call("pwd", folder, MAIN));
    assert_eq!(call("work/sub/deep").await.stdout, b"/usr\n");
    assert_eq!(path(&call("work").await.stdout), session.path("work\n"));
}

#[tokio::test]
async fn a_folder_of_any_name_is_kept() {
    let session = Session::new().await;
    session
        .bash(
            r#"d=$'a\xff b\n'"'"'"'; mkdir "$d"; cd "$d" && mkdir x"#,
            MAIN,
        )
        .await;
    let done = session
        .bash("ls; cd x; printf %s \"$PWD\" | tail -c 8", MAIN)
        .await;
    assert_eq!(done.stdout, b"x\n\xff b\n'\"/x"[..].to_vec(), "{done:?}");
}

#[rstest]
#[case::by_the_command("mkdir gone; cd gone; rmdir ../gone", "true")]
#[case::later("mkdir gone; cd gone", "rmdir gone")]
#[tokio::test]
async fn a_kept_folder_that_is_gone_is_named_once(#[case] text: &str, #[case] then: &str) {
    let session = Session::new().await;
    session.bash(text, MAIN).await;
    let outside = Keep {
        key: StateId([9; 16]),
        ..MAIN
    };
    session.bash(then, outside).await;
    let done = session.bash("pwd", MAIN).await;
    let gone = done.gone.map(|gone| path(&gone));
    assert_eq!(gone, Some(session.path("work/gone")));
    assert_eq!(path(&done.stdout), session.path("work\n"));
    let done = session.bash("pwd", MAIN).await;
    assert_eq!(done.gone, None);
}

#[tokio::test]
async fn calls_at_the_same_time_begin_alike_and_wait_for_nobody() {
    let session = Session::new().await;
    session.bash("cd sub; mkfifo go", MAIN).await;
    let first = session.call("cd deep; echo in; read x < ../go; pwd", "work", MAIN);
    let (reply, mut first) = session.helper.ask(&Request::Run(Box::new(first))).await;
    assert_eq!(reply, Reply::Started);
    first.until("in\n").await;
    let second = session.bash("pwd; cd /usr", MAIN).await;
    assert_eq!(path(&second.stdout), session.path("work/sub\n"));
    session.home.put("work/sub/go", "\n");
    let done = first.collect().await;
    assert_eq!(path(&done.stdout), session.path("work/sub/deep\n"));
    // Who ends last is who stays.
    assert_eq!(session.folder(MAIN).await, session.path("work/sub/deep"));
}

#[tokio::test]
async fn a_subagent_begins_as_a_copy_and_goes_its_own_way() {
    let session = Session::new().await;
    session.bash("cd sub", MAIN).await;
    // Its first call leaves nothing of its own, and yet the copy is made.
    session.bash("kill -9 $$", SUBAGENT).await;
    session.bash("cd ..; cd ..", MAIN).await;
    assert_eq!(session.folder(SUBAGENT).await, session.path("work/sub"));
    session.bash("cd deep", SUBAGENT).await;
    assert_eq!(
        session.folder(SUBAGENT).await,
        session.path("work/sub/deep")
    );
    assert_eq!(session.folder(MAIN).await, session.path(""));
}

#[tokio::test]
async fn exports_are_kept_only_where_they_are_asked_for() {
    let session = Session::new().await;
    let text = "export ONE=$'1\n\\xff' TWO=2; THREE=3; unset USER; ONCE=4 /bin/true";
    session.bash(text, MAIN).await;
    let show = "echo \"${ONE-none} ${TWO-none} ${THREE-none} ${USER-none} ${ONCE-none}\"";
    let done = session.bash(show, MAIN).await;
    assert_eq!(done.stdout, b"none none none vmuser none\n");
    session.bash(text, WITH_EXPORTS).await;
    for text in [show, "kill -9 $$", show] {
        let done = session.bash(text, WITH_EXPORTS).await;
        if text == show {
            assert_eq!(done.stdout, b"1\n\xff 2 none none none\n", "{done:?}");
        }
    }
    session
        .bash("unset ONE; export TWO=22 USER=me", WITH_EXPORTS)
        .await;
    let done = session.bash(show, WITH_EXPORTS).await;
    assert_eq!(done.stdout, b"none 22 none me none\n");
    session
        .bash("f() { echo hi; }; export -f f", WITH_EXPORTS)
        .await;
    assert_eq!(session.bash("f", WITH_EXPORTS).await.stdout, b"hi\n");
}

/// Everything that a command can see of its own making.
const LOOK: &str = r#"
env -0 | sort -z; echo; cat /proc/self/environ | sort -z; echo
tr -s '\0' < /proc/$$/environ | sort -z; echo
ls /proc/self/fd > a; ls /proc/$$/fd > b; cat a b; (ls /proc/self/fd; :); cat <(ls /proc/self/fd)
echo "$BASHOPTS $SHELLOPTS $- $0 $# $SHLVL $BASH_SUBSHELL"; trap -p; ulimit -a; umask; set -o; jobs"#;

#[rstest]
#[case::without(None)]
#[case::with_the_users_own(Some("/lib/x86_64-linux-gnu/libutil.so.1"))]
#[tokio::test]
async fn a_command_sees_nothing_of_it(#[case] preload: Option<&str>) {
    let session = Session::new().await;
    let call = |keep| {
        let mut call = session.call(LOOK, "work", MAIN);
        call.env = vec![
            ("AAA".into(), "1".into()),
            ("ZZZ".into(), "".into()),
            ("BOXERY_RUN_".into(), "x".into()),
        ];
        if let Some(preload) = preload {
            call.env.push(("LD_PRELOAD".into(), preload.into()));
        }
        call.keep = keep;
        call
    };
    let seen = async |keep| {
        let call = call(keep);
        let run = call.run.to_string();
        let done = session.helper.run(call).await;
        assert_eq!(
            done.stderr,
            b"",
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        let text = String::from_utf8(done.stdout).unwrap();
        text.replace(&run, "RUN").replace('\0', "\n")
    };
    let without = seen(None).await;
    assert!(without.contains("BOXERY_RUN=RUN") && without.contains("ZZZ=\n"));
    assert_eq!(without.contains("LD_PRELOAD"), preload.is_some());
    assert_eq!(seen(Some(MAIN)).await, without);
    assert_eq!(seen(Some(WITH_EXPORTS)).await, without);
}

/// A program with the rights of its owner says who it runs as.
#[rstest]
#[case::alone("./who")]
#[case::after_cd("cd sub && ../who")]
#[case::in_place("exec ./who")]
#[case::not_last("cd sub; ../who; true")]
#[tokio::test]
async fn a_program_with_its_owners_rights_has_them(#[case] text: &str) {
    let session = Session::new().await;
    // `who` is python's own, made setuid for somebody else: real and effective ids.
    let setuid = "cp /usr/bin/id who && chown 12345 who && chmod 4755 who && chmod o+x . ..";
    assert_eq!(session.bash(setuid, MAIN).await.outcome, Outcome::Exited(0));
    let done = session.bash(text, MAIN).await;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(said.contains("euid=12345"), "{said} {done:?}");
}

#[rstest]
#[case::alone("sudo -n id -u", "work")]
#[case::after_cd("cd sub && sudo -n id -u", "work/sub")]
#[case::not_last("cd sub; sudo -n id -u; true", "work/sub")]
#[case::in_place("cd sub; exec sudo -n id -u", "work")]
#[tokio::test]
async fn sudo_works_in_every_form(#[case] text: &str, #[case] want: &str) {
    let session = Session::new().await;
    let done = session.bash(text, MAIN).await;
    assert_eq!(
        (String::from_utf8_lossy(&done.stdout).trim(), done.outcome),
        ("0", Outcome::Exited(0)),
        "install sudo: {done:?}"
    );
    assert_eq!(session.folder(MAIN).await, session.path(want));
}

#[rstest]
#[case::another_shell(&["sh", "-c", "cd sub"])]
#[case::another_program(&["env", "-C", "sub", "true"])]
#[tokio::test]
async fn what_is_no_bash_leaves_the_state_as_it_was(#[case] argv: &[&str]) {
    let session = Session::new().await;
    session.bash("cd sub/deep; cd ..", MAIN).await;
    let other = Run {
        argv: argv.iter().map(|word| Blob::from(*word)).collect(),
        ..session.call("", "work", MAIN)
    };
    fs::create_dir(session.path("work/sub/sub")).unwrap();
    assert_eq!(session.helper.run(other).await.outcome, Outcome::Exited(0));
    assert_eq!(session.folder(MAIN).await, session.path("work/sub"));
}

#[tokio::test]
async fn a_bash_that_can_not_be_preloaded_is_run_as_it_is() {
    let home = Home::new();
    let bin = home.path().join("bin");
    // Another shell is what is loaded first.
    home.put("bin/bash", "#!/bin/sh\nexec /bin/bash \"$@\"\n");
    rustix::fs::chmod(bin.join("bash"), 0o755.into()).unwrap();
    home.put(".profile", &format!("PATH={}:$PATH\n", bin.display()));
    let helper = home.connect().await;
    let call = |text: &str| Run {
        cwd: Some("/usr".into()),
        keep: Some(MAIN),
        ..bash(text)
    };
    let done = helper
        .run(call(
            "cd /tmp; env | grep LD_; ls -l /proc/self/fd /proc/$$/fd | grep memfd; command -v bash",
        ))
        .await;
    let text = String::from_utf8(done.stdout).unwrap();
    let want = format!("{}\n", bin.join("bash").display());
    assert_eq!((&*text, &*done.stderr), (&*want, &b""[..]));
    assert_eq!(helper.run(call("pwd")).await.stdout, b"/usr\n");
}
