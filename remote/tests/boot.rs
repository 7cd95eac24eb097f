//! How the helper comes to a VM, whatever its shells, homes and links are like.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a scene that can't be set up should fail at once"
)]

#[path = "support/mod.rs"]
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use boxery_remote::{PipeChoice, RemoteError, Way, helper_image};
use camino::Utf8PathBuf;
use rstest::rstest;
use support::{Sshd, bash, run_text, shell_user};

/// A home that a test may spoil, and a server that sends its users there.
struct Home {
    folder: tempfile::TempDir,
    mounted: bool,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("boxery-home-")
            .tempdir_in("/var/tmp")
            .unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        Self {
            folder,
            mounted: false,
        }
    }

    /// One with a file system of its own.
    fn mounted(options: &str) -> Self {
        assert!(
            support::is_root(),
            "this test mounts a disk: run it as root"
        );
        let mut home = Self::new();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "boxery-test"])
            .arg(home.folder.path())
            .output()
            .unwrap();
        assert!(mounted.status.success(), "{mounted:?}");
        home.mounted = true;
        home
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8PathBuf::try_from(self.folder.path().join(name)).unwrap()
    }

    /// A user's name of its own, so that folders for all users are told apart.
    fn name(&self) -> String {
        self.folder
            .path()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    }

    fn sshd(&self, more: &str) -> Sshd {
        Sshd::start_with(&format!("SetEnv {} {more}", self.variables()))
    }

    fn variables(&self) -> String {
        format!("HOME={} LOGNAME={}", self.path(""), self.name())
    }

    /// The files in the folder of helpers.
    fn helpers(&self) -> Vec<String> {
        let found = fs::read_dir(self.path(".cache/boxery"))
            .into_iter()
            .flatten();
        let mut names: Vec<String> = found
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("helper-"))
            .collect();
        names.sort();
        names
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for top in ["/var/tmp", "/tmp", "/dev/shm"] {
            drop(fs::remove_dir_all(format!("{top}/boxery-{}", self.name())));
        }
        if self.mounted {
            drop(
                Command::new("umount")
                    .arg("-l")
                    .arg(self.folder.path())
                    .output(),
            );
        }
    }
}

async fn says_hi(way: &Way) {
    let want = (0, "hi\n".to_owned(), String::new());
    assert_eq!(run_text(way, &bash("echo hi")).await, want);
}

#[rstest]
#[tokio::test]
async fn it_is_sent_once_and_found_from_then_on(
    #[values("sh", "bash", "zsh", "fish", "tcsh")] shell: &str,
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let home = Home::new();
    let sshd = home.sshd("");
    let user = shell_user(shell);
    assert_eq!(home.helpers(), [""; 0]);
    says_hi(&sshd.open_as(&user, pipe).await).await;
    let sent = home.helpers();
    assert_eq!(sent.len(), 1, "{sent:?}");
    let made = || fs::metadata(home.path(".cache/boxery").join(&sent[0])).unwrap();
    let (before, mode) = (made().modified().unwrap(), made().permissions().mode());
    assert_eq!(mode & 0o777, 0o700);
    says_hi(&sshd.open_as(&user, pipe).await).await;
    assert_eq!((home.helpers(), made().modified().unwrap()), (sent, before));
}

#[rstest]
#[case::bash("bash", ".bashrc")]
#[case::zsh("zsh", ".zshenv")]
#[case::fish("fish", ".config/fish/config.fish")]
#[case::tcsh("tcsh", ".cshrc")]
#[tokio::test]
async fn megabytes_of_noise_stand_before_it(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[case] shell: &str,
    #[case] file: &str,
) {
    let home = Home::new();
    let path = home.path(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(
        &path,
        "head -c 3000000 /dev/urandom\nsh -c 'head -c 3000000 /dev/urandom >&2'\n",
    )
    .unwrap();
    let made = Command::new("chmod")
        .args(["-R", "a+rwX"])
        .arg(home.path(""))
        .status();
    assert!(made.unwrap().success());
    let sshd = home.sshd("");
    let way = sshd.open_as(&shell_user(shell), pipe).await;
    says_hi(&way).await;
}

#[rstest]
#[case::read_only(None, 0o555)]
#[case::noexec(Some("mode=777,noexec"), 0o777)]
#[case::full(Some("mode=777,size=1m"), 0o777)]
#[tokio::test]
async fn a_home_that_takes_it_not_is_passed_by(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[case] options: Option<&str>,
    #[case] mode: u32,
) {
    let home = match options {
        Some(options) => Home::mounted(options),
        None => Home::new(),
    };
    fs::set_permissions(home.path(""), fs::Permissions::from_mode(mode)).unwrap();
    let sshd = home.sshd("");
    let way = sshd.open(pipe).await;
    says_hi(&way).await;
    assert_eq!(home.helpers(), [""; 0]);
    // Another folder has it, and the next connection finds it there.
    says_hi(&sshd.open(pipe).await).await;
}

#[rstest]
#[case::mac("Darwin", "arm64", "Darwin aarch64")]
#[case::riscv("Linux", "riscv64", "Linux riscv64")]
#[tokio::test]
async fn another_kind_of_machine_is_named(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[case] system: &str,
    #[case] machine: &str,
    #[case] want: &str,
) {
    let home = Home::new();
    let uname = home.path("uname");
    fs::write(
        &uname,
        format!("#!/bin/sh\ncase $1 in -s) echo {system} ;; -m) echo {machine} ;; esac\n"),
    )
    .unwrap();
    fs::set_permissions(&uname, fs::Permissions::from_mode(0o755)).unwrap();
    let sshd = home.sshd(&format!("PATH={}:/usr/bin:/bin", home.path("")));
    let error = sshd.try_open_as(&sshd.user, pipe).await.unwrap_err();
    assert!(
        matches!(&error, RemoteError::WrongMachine { system, .. } if system == want),
        "{error:?}"
    );
}

#[rstest]
#[case::early(0.1)]
#[case::half_way(0.5)]
#[case::while_it_is_read_back(1.5)]
#[tokio::test]
async fn one_that_came_half_is_never_started(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[case] share: f64,
) {
    let size = helper_image(std::env::consts::ARCH).unwrap().bytes.len();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "about there"
    )]
    let bytes = (size as f64 * share) as u64;
    let home = Home::new();
    let sshd = home.sshd("");
    let (link, route) = sshd.behind_a_link(pipe);
    link.cut_after(bytes);
    let broken = Way::open(route.clone(), None, None).await;
    assert!(
        broken.is_err(),
        "{broken:?} {:?} {size} {}",
        home.helpers(),
        link.connections()
    );
    let whole = |name: &String| !name.contains(".part-");
    assert!(!home.helpers().iter().any(whole), "{:?}", home.helpers());
    says_hi(&Way::open(route, None, None).await.unwrap()).await;
    let helpers = home.helpers();
    assert_eq!(helpers.iter().filter(|name| whole(name)).count(), 1);
}

#[rstest]
#[case::emptied("")]
#[case::cut("\u{7f}ELF\u{2}\u{1}")]
#[case::another_program("#!/bin/sh\necho not a helper\n")]
#[tokio::test]
async fn one_that_was_spoilt_is_replaced(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[case] text: &str,
) {
    let home = Home::new();
    let sshd = home.sshd("");
    says_hi(&sshd.open(pipe).await).await;
    let name = home.helpers().remove(0);
    let path = home.path(".cache/boxery").join(name);
    let size = fs::metadata(&path).unwrap().len();
    // The one that runs keeps its own.
    fs::remove_file(&path).unwrap();
    fs::write(&path, text).unwrap();
    let made = Command::new("chmod").args(["a+rx", path.as_str()]).status();
    assert!(made.unwrap().success());
    says_hi(&sshd.open(pipe).await).await;
    assert_eq!(fs::metadata(&path).unwrap().len(), size);
}

#[rstest]
#[tokio::test]
async fn one_that_runs_and_is_not_what_was_sent_is_replaced(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let home = Home::new();
    let sshd = home.sshd("");
    says_hi(&sshd.open(pipe).await).await;
    let name = home.helpers().remove(0);
    let path = home.path(".cache/boxery").join(name);
    let sent = fs::read(&path).unwrap();
    // The kernel doesn't mind what stands behind a program.
    fs::remove_file(&path).unwrap();
    fs::write(&path, [&sent[..], b"x"].concat()).unwrap();
    let made = Command::new("chmod").args(["a+rx", path.as_str()]).status();
    assert!(made.unwrap().success());
    says_hi(&sshd.open(pipe).await).await;
    assert!(fs::read(&path).unwrap() == sent, "it is the old one still");
}

#[tokio::test]
async fn several_first_connections_at_once_send_it_without_harm() {
    let home = Home::new();
    let sshd = home.sshd("");
    let opened = (0..4).map(|_| {
        let route = sshd.route(&sshd.user, PipeChoice::Native);
        tokio::spawn(async move { Way::open(route, None, None).await })
    });
    for way in opened.collect::<Vec<_>>() {
        says_hi(&way.await.unwrap().unwrap()).await;
    }
    let whole = home
        .helpers()
        .into_iter()
        .filter(|name| !name.contains(".part-"));
    assert_eq!(whole.count(), 1);
}

#[rstest]
#[tokio::test]
async fn one_session_at_a_time_is_enough(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let home = Home::new();
    let sshd = Sshd::start_with(&format!("MaxSessions 1\nSetEnv {}", home.variables()));
    let way = sshd.open(pipe).await;
    let runs = (0..50).map(|number| {
        let request = bash(&format!("sleep 0.2; echo {number}"));
        let way = &way;
        async move { run_text(way, &request).await.1 }
    });
    let outputs = join_all(runs.map(Box::pin).collect()).await;
    let want: Vec<String> = (0..50).map(|number| format!("{number}\n")).collect();
    assert_eq!(outputs, want);
}

/// Every future at once; what they gave, in their order.
async fn join_all<F: Future + Unpin>(futures: Vec<F>) -> Vec<F::Output>
where
    F::Output: Unpin,
{
    let mut slots: Vec<(F, Option<F::Output>)> =
        futures.into_iter().map(|future| (future, None)).collect();
    std::future::poll_fn(move |context| {
        let mut waiting = false;
        for (future, output) in &mut slots {
            if output.is_none() {
                match std::pin::Pin::new(future).poll(context) {
                    std::task::Poll::Ready(value) => *output = Some(value),
                    std::task::Poll::Pending => waiting = true,
                }
            }
        }
        if waiting {
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(slots.drain(..).filter_map(|(_, output)| output).collect())
    })
    .await
}
