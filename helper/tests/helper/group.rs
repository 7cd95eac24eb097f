//! Each run has a control group, which ends whom nothing else reaches.
//!
//! The helpers here see mounts of their own, of one kind of control groups, and begin
//! in a group of the test's: what is left in that shows.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of a test: what can't be had fails it"
)]

use std::fs;
use std::path::{Path, PathBuf};

use boxery_wire::{FromRun, Reply, Request};
use rstest::rstest;
use tokio::process::Command;

use crate::support::{Helper, Home, bash, eventually};

/// The kinds of control groups: how it is mounted, and what a process's line begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Two,
    Freezer,
}

/// A place to mount it, and a group of the test's own in it.
struct Scene {
    home: Home,
    kind: Kind,
    own: String,
}

impl Scene {
    fn new(kind: Kind) -> Self {
        let home = Home::new();
        let name = home.path().file_name().unwrap().to_str().unwrap();
        let own = format!("test{}", name.replace('.', "-"));
        Self { home, kind, own }
    }

    /// `prefix` behind a shell that mounts this kind alone and goes into its group.
    fn command(&self, prefix: &str) -> Command {
        let mount = match self.kind {
            Kind::Two => "-t cgroup2 none",
            Kind::Freezer => "-t cgroup -o freezer none",
        };
        let text = format!(
            "set -e; umount -a -t cgroup,cgroup2 2>/dev/null || :; \
             ! grep -q ' - cgroup' /proc/self/mountinfo; \
             mkdir -p \"$HOME/groups\"; mount {mount} \"$HOME/groups\"; \
             mkdir -p \"$HOME/groups/{own}\"; echo $$ >\"$HOME/groups/{own}/cgroup.procs\"; \
             exec {prefix} \"$@\"",
            own = self.own,
        );
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &text, "sh"]);
        command.arg(env!("CARGO_BIN_EXE_boxery-helper"));
        command
    }

    async fn connect(&self) -> Helper {
        self.home.connect_to(self.command("")).await
    }

    /// The folder of the test's group, where the helper `pid` has it mounted.
    fn group(&self, pid: u32) -> PathBuf {
        let home = self.home.path().strip_prefix("/").unwrap();
        let root = Path::new("/proc").join(pid.to_string()).join("root");
        root.join(home).join("groups").join(&self.own)
    }

    /// The line of a process's group.
    fn line(&self, text: &str) -> String {
        let fits = |line: &&str| match self.kind {
            Kind::Two => line.starts_with("0::"),
            Kind::Freezer => line.contains(":freezer:"),
        };
        text.lines().find(fits).unwrap().to_owned()
    }
}

/// The folders in a folder.
fn below(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

/// Who sleeps so long, and not who is about to execute `sleep`.
fn sleeping(token: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            line == format!("sleep\0{token}\0").as_bytes()
        })
        .count()
}

fn token(kind: Kind, number: u32) -> String {
    format!("90{}.{}{number}", std::process::id(), kind as u8)
}

/// Looks at the test's group while its helpers are gone.
struct Watcher(tokio::process::Child);

impl Scene {
    /// A process with the same mounts that isn't in the group.
    async fn watch(&self) -> Watcher {
        let mut command =
            self.command("sh -c 'echo $$ >\"$HOME/groups/cgroup.procs\"; echo up; exec cat' #");
        command.env("HOME", self.home.path());
        command.stdin(std::process::Stdio::piped());
        command.stdout(std::process::Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().unwrap();
        let mut up = [0; 3];
        let stdout = child.stdout.as_mut().unwrap();
        tokio::io::AsyncReadExt::read_exact(stdout, &mut up)
            .await
            .unwrap();
        Watcher(child)
    }
}

impl Watcher {
    fn pid(&self) -> u32 {
        self.0.id().unwrap()
    }
}

#[rstest]
#[tokio::test]
async fn a_run_has_a_group_and_leaves_none(#[values(Kind::Two, Kind::Freezer)] kind: Kind) {
    let scene = Scene::new(kind);
    let watcher = scene.watch().await;
    let group = scene.group(watcher.pid());
    let helper = scene.connect().await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let done = helper.bash("cat /proc/self/cgroup").await;
        let line = scene.line(&String::from_utf8(done.stdout).unwrap());
        let want = format!("/{}/boxery-0/run-", scene.own);
        assert!(line.contains(&want), "{line}");
        assert!(!seen.contains(&line), "each has its own: {line}");
        seen.push(line);
    }
    eventually("only the next one's is left", || {
        let left = below(&group.join("boxery-0"));
        left.len() == 1 && seen.iter().all(|line| !line.ends_with(&left[0]))
    })
    .await;
    helper.cut().await;
    eventually("nothing is left", || below(&group).is_empty()).await;
    // The last one out may still be ending.
    eventually("nobody is left", || fs::remove_dir(&group).is_ok()).await;
}

#[rstest]
#[tokio::test]
async fn who_kills_supervisor_and_helper_is_ended_by_the_next_helper(
    #[values(Kind::Two, Kind::Freezer)] kind: Kind,
) {
    let scene = Scene::new(kind);
    let watcher = scene.watch().await;
    let group = scene.group(watcher.pid());
    let helper = scene.connect().await;
    let token = token(kind, 1);
    let text = format!(
        "(env -i setsid sleep {token} &); kill -STOP $PPID; echo $PPID; read x <$HOME/go; kill -9 {} $PPID",
        helper.child.id().unwrap()
    );
    rustix::fs::mkfifoat(rustix::fs::CWD, scene.home.path().join("go"), 0o600.into()).unwrap();
    let text = text.replace("kill -STOP $PPID; ", "");
    let request = bash(&text);
    let run = request.run;
    let (reply, mut talk) = helper.ask(&Request::Run(Box::new(request))).await;
    assert_eq!(reply, Reply::Started);
    talk.until("\n").await;
    eventually("it sleeps", || sleeping(&token) == 1).await;
    scene.home.put("go", "\n");
    while talk.next::<FromRun>().await.is_some() {}
    drop(helper);
    assert_eq!(
        sleeping(&token),
        1,
        "nobody is left who could have ended it"
    );
    let helper = scene.connect().await;
    eventually("the next helper ends it", || sleeping(&token) == 0).await;
    let note = scene.home.run(run).join("group");
    helper.cut().await;
    eventually("its group is forgotten", || !note.exists()).await;
    eventually("nothing is left", || below(&group).is_empty()).await;
    // The last one out may still be ending.
    eventually("nobody is left", || fs::remove_dir(&group).is_ok()).await;
}

#[rstest]
#[tokio::test]
async fn a_run_that_outlives_its_helper_removes_its_group(
    #[values(Kind::Two, Kind::Freezer)] kind: Kind,
) {
    let scene = Scene::new(kind);
    let watcher = scene.watch().await;
    let group = scene.group(watcher.pid());
    let helper = scene.connect().await;
    let token = token(kind, 2);
    let request = boxery_wire::Run {
        job: true,
        ..bash(&format!(
            "echo began; read x <$HOME/go; sleep {token} & kill $!"
        ))
    };
    rustix::fs::mkfifoat(rustix::fs::CWD, scene.home.path().join("go"), 0o600.into()).unwrap();
    let (reply, _) = helper.ask(&Request::Run(Box::new(request))).await;
    assert_eq!(reply, Reply::Started);
    helper.cut().await;
    eventually("its group alone is left", || {
        below(&group.join("boxery-0")).len() == 1
    })
    .await;
    scene.home.put("go", "\n");
    eventually("nothing is left", || below(&group).is_empty()).await;
    // The last one out may still be ending.
    eventually("nobody is left", || fs::remove_dir(&group).is_ok()).await;
}

#[tokio::test]
async fn without_groups_runs_are_as_ever() {
    let home = Home::new();
    let text = "umount -a -t cgroup,cgroup2 2>/dev/null; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", text, "sh"]);
    command.arg(env!("CARGO_BIN_EXE_boxery-helper"));
    let helper = home.connect_to(command).await;
    let done = helper.bash("cat /proc/self/cgroup; exit 3").await;
    assert_eq!(done.outcome, boxery_wire::Outcome::Exited(3));
    assert!(!String::from_utf8(done.stdout).unwrap().contains("boxery-"));
}
