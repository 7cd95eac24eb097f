//! Who is trusted, and what is said when something on the way is wrong: the same
//! over both pipes.

#![expect(
    clippy::unwrap_used,
    reason = "a scene that can't be set up should fail at once"
)]

#[path = "support/mod.rs"]
mod support;

use std::process::Command;

use boxery_remote::{Laptop, PipeChoice, RemoteError, RunRequest, Way, accept, capture};
use camino::Utf8PathBuf;
use rstest::rstest;
use support::{Sshd, bash, keygen, run_text};

fn write(path: &Utf8PathBuf, text: &str) {
    #[expect(clippy::disallowed_methods, reason = "a scratch file")]
    std::fs::write(path, text).unwrap();
}

fn read(path: &Utf8PathBuf) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn fingerprint(sshd: &Sshd) -> String {
    let output = Command::new("ssh-keygen")
        .args(["-l", "-f", sshd.path("host.pub").as_str()])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split(' ').nth(1).unwrap().to_owned()
}

/// The host's key in a known-hosts file, hashed as `HashKnownHosts` does.
fn hash(path: &Utf8PathBuf) {
    let status = Command::new("ssh-keygen")
        .args(["-q", "-H", "-f", path.as_str()])
        .output()
        .unwrap();
    assert!(status.status.success());
}

#[rstest]
#[tokio::test]
async fn an_unknown_host_is_shown_and_once_accepted_known(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let sshd = Sshd::start();
    write(&sshd.path("known_hosts"), "");
    let error = sshd.failure(pipe).await;
    let RemoteError::HostKeyUnknown {
        fingerprint: shown,
        line,
        algorithm,
        host,
    } = error
    else {
        panic!("{error:?}");
    };
    let want = (
        fingerprint(&sshd),
        "ssh-ed25519".to_owned(),
        format!("[127.0.0.1]:{}", sshd.port),
    );
    assert_eq!((shown, algorithm, host), want);
    // Nothing was learnt on the way.
    assert_eq!(read(&sshd.path("known_hosts")), "");
    accept(&sshd.laptop().known_hosts, &line).unwrap();
    let pipe = sshd.open(pipe).await;
    assert_eq!(run_text(&pipe, &bash("echo hi")).await.1, "hi\n");
    assert_eq!(
        pipe.host_key().await.unwrap().fingerprint,
        fingerprint(&sshd)
    );
}

#[rstest]
#[case::hashed("{port} {key}", true, None)]
#[case::wildcard("[127.0.0.*]:* {key}", false, None)]
#[case::several("{port} {other}\n{port} {key}", false, None)]
#[case::negated("!{port},[*]:* {key}", false, Some("unknown"))]
#[case::without_its_port("127.0.0.1 {key}", false, None)]
#[case::other_without_its_port("127.0.0.1 {other}", false, Some("unknown"))]
#[case::changed("{port} {other}", false, Some("changed"))]
#[case::changed_and_hashed("{port} {other}", true, Some("changed"))]
#[case::revoked("{port} {key}\n@revoked * {key}", false, Some("revoked"))]
#[tokio::test]
async fn known_hosts_mean_what_openssh_means(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[case] text: &str,
    #[case] hashed: bool,
    #[case] refused: Option<&str>,
) {
    let sshd = Sshd::start();
    let path = sshd.path("known_hosts");
    keygen(&sshd.path("other"), "ed25519", "");
    let text = text
        .replace("{port}", &format!("[127.0.0.1]:{}", sshd.port))
        .replace("{key}", read(&sshd.path("host.pub")).trim())
        .replace("{other}", read(&sshd.path("other.pub")).trim());
    write(&path, &text);
    if hashed {
        hash(&path);
    }
    let Some(refused) = refused else {
        let pipe = sshd.open(pipe).await;
        assert_eq!(run_text(&pipe, &bash("echo hi")).await.1, "hi\n");
        return;
    };
    let shown = fingerprint(&sshd);
    match (sshd.failure(pipe).await, refused) {
        (RemoteError::HostKeyUnknown { fingerprint, .. }, "unknown")
        | (RemoteError::HostKeyRevoked { fingerprint, .. }, "revoked") => {
            assert_eq!(fingerprint, shown);
        }
        (
            RemoteError::HostKeyChanged {
                fingerprint, known, ..
            },
            "changed",
        ) => {
            assert_eq!(fingerprint, shown);
            assert_eq!(known, format!("{path}:1"));
        }
        (error, want) => panic!("wanted {want}, got {error:?}"),
    }
}

#[rstest]
#[tokio::test]
async fn no_setting_makes_an_unknown_host_trusted(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[values("no", "accept-new", "off", "ask")] setting: &str,
) {
    let sshd = Sshd::start();
    write(&sshd.path("known_hosts"), "");
    sshd.configure(&format!("StrictHostKeyChecking {setting}"));
    let error = sshd.failure(pipe).await;
    assert!(
        matches!(error, RemoteError::HostKeyUnknown { .. }),
        "{error:?}"
    );
    assert_eq!(read(&sshd.path("known_hosts")), "");
}

#[rstest]
#[case::ed25519("ed25519", "")]
#[case::rsa_with_sha2("rsa", "")]
#[case::ecdsa("ecdsa", "")]
#[tokio::test]
async fn every_kind_of_key_logs_in(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[case] kind: &str,
    #[case] passphrase: &str,
) {
    let sshd = Sshd::start_with("PubkeyAcceptedAlgorithms -ssh-rsa");
    std::fs::remove_file(sshd.path("key")).unwrap();
    std::fs::remove_file(sshd.path("key.pub")).unwrap();
    keygen(&sshd.path("key"), kind, passphrase);
    std::fs::copy(sshd.path("key.pub"), sshd.path("authorized")).unwrap();
    let pipe = sshd.open(pipe).await;
    assert_eq!(run_text(&pipe, &bash("echo hi")).await.1, "hi\n");
}

#[rstest]
#[tokio::test]
async fn a_wrong_key_is_said(#[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice) {
    let sshd = Sshd::start();
    write(&sshd.path("authorized"), "");
    let RemoteError::Auth { user, offered, .. } = sshd.failure(pipe).await else {
        panic!("no login error");
    };
    assert_eq!(user, sshd.user);
    assert_eq!(offered, sshd.path("key").as_str());
}

#[rstest]
#[tokio::test]
async fn an_encrypted_key_that_nobody_opens_is_named(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let sshd = Sshd::start();
    std::fs::remove_file(sshd.path("key")).unwrap();
    keygen(&sshd.path("key"), "ed25519", "secret words");
    std::fs::copy(sshd.path("key.pub"), sshd.path("authorized")).unwrap();
    let error = sshd.failure(pipe).await;
    let hint = error.hint("dev").unwrap();
    assert!(
        matches!(&error, RemoteError::EncryptedKey { path } if *path == sshd.path("key")),
        "{error:?}"
    );
    assert!(hint.contains("boxery vm connect dev"), "{hint}");
}

#[tokio::test]
async fn a_typed_passphrase_opens_the_key_and_leaves_it_with_the_agent() {
    let sshd = Sshd::start();
    std::fs::remove_file(sshd.path("key")).unwrap();
    keygen(&sshd.path("key"), "ed25519", "secret words");
    std::fs::copy(sshd.path("key.pub"), sshd.path("authorized")).unwrap();
    let mut agent = Command::new("ssh-agent")
        .args(["-D", "-a", sshd.path("agent").as_str()])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    support::eventually(
        "the agent listens",
        std::time::Duration::from_secs(10),
        || sshd.path("agent").exists(),
    )
    .await;
    sshd.configure(&format!("IdentityAgent {}", sshd.path("agent")));
    let laptop = Laptop {
        keep_keys: true,
        ..sshd.laptop()
    };
    let answers = std::sync::Mutex::new(vec!["secret words", "wrong"]);
    let ask = |prompt: &str| {
        assert!(prompt.contains(sshd.path("key").as_str()), "{prompt}");
        answers.lock().unwrap().pop().map(str::to_owned)
    };
    let route = support::route(&sshd.target().to_string(), PipeChoice::Native, laptop);
    let pipe = Way::open(route, None, Some(&ask)).await;
    assert_eq!(run_text(&pipe.unwrap(), &bash("echo hi")).await.1, "hi\n");
    // From now on nobody is asked, over either pipe.
    for choice in [PipeChoice::Native, PipeChoice::System] {
        let pipe = sshd.open(choice).await;
        assert_eq!(run_text(&pipe, &bash("echo hi")).await.1, "hi\n");
    }
    agent.kill().unwrap();
    agent.wait().unwrap();
}

async fn failure_at(target: &str, choice: PipeChoice, sshd: &Sshd) -> RemoteError {
    let route = support::route(target, choice, sshd.laptop());
    Way::open(route, None, None).await.unwrap_err()
}

#[rstest]
#[tokio::test]
async fn a_refused_port_and_an_unknown_name_are_told_apart(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let sshd = Sshd::start();
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let error = failure_at(&format!("me@127.0.0.1:{port}"), pipe, &sshd).await;
    assert!(matches!(error, RemoteError::Refused { .. }), "{error:?}");
    let error = failure_at("me@no-such-host.invalid", pipe, &sshd).await;
    assert!(matches!(error, RemoteError::Resolve { .. }), "{error:?}");
}

#[rstest]
#[tokio::test]
async fn a_silent_server_is_a_time_out(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let sshd = Sshd::start();
    sshd.configure("ConnectTimeout 1");
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = silent.local_addr().unwrap().port();
    let error = failure_at(&format!("me@127.0.0.1:{port}"), pipe, &sshd).await;
    assert!(
        matches!(error, RemoteError::Timeout { seconds: 1, .. }),
        "{error:?}"
    );
}

#[rstest]
#[tokio::test]
async fn what_is_no_ssh_server_is_an_ssh_failure(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let sshd = Sshd::start();
    let other = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = other.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in other.incoming() {
            let text = b"HTTP/1.1 400 Bad Request\r\n\r\n";
            drop(std::io::Write::write_all(&mut stream.unwrap(), text));
        }
    });
    let error = failure_at(&format!("me@127.0.0.1:{port}"), pipe, &sshd).await;
    assert!(matches!(error, RemoteError::Ssh { .. }), "{error:?}");
}

#[rstest]
#[tokio::test]
async fn a_folder_that_is_gone_or_closed_is_said_and_the_next_run_works(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let sshd = Sshd::start();
    let pipe = sshd.open(pipe).await;
    let at = |folder: &str| RunRequest {
        cwd: Some(folder.to_owned()),
        ..bash("echo ran")
    };
    let error = capture(&pipe, &at("/no/such folder"), None, 100).await;
    assert!(
        matches!(&error, Err(RemoteError::FolderGone { path }) if path == "/no/such folder"),
        "{error:?}"
    );
    if support::is_root() {
        let error = capture(&pipe, &at("/root"), None, 100).await;
        assert!(
            matches!(&error, Err(RemoteError::FolderDenied { .. })),
            "{error:?}"
        );
    }
    assert_eq!(run_text(&pipe, &at("/usr")).await.1, "ran\n");
}

#[rstest]
#[tokio::test]
async fn without_bash_nothing_runs_instead(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
) {
    let sshd = Sshd::start();
    let pipe = sshd.open(pipe).await;
    let request = RunRequest {
        env: vec![("PATH".to_owned(), b"/nowhere".to_vec())],
        ..bash("echo ran")
    };
    let error = capture(&pipe, &request, None, 100).await;
    assert!(matches!(&error, Err(RemoteError::NoBash)), "{error:?}");
    let request = RunRequest {
        argv: vec![b"no-such-program".to_vec()],
        ..RunRequest::default()
    };
    let (code, stdout, stderr) = run_text(&pipe, &request).await;
    assert_eq!((code, &*stdout), (127, ""));
    assert!(stderr.contains("no-such-program"), "{stderr}");
}

#[tokio::test]
async fn a_full_disk_is_said() {
    let sshd = Sshd::start();
    let pipe = sshd.open(PipeChoice::Native).await;
    // A file system of one page, in namespaces of the test's own.
    assert!(
        support::is_root(),
        "this test mounts a small disk: run it as root"
    );
    let folder = sshd.path("full");
    std::fs::create_dir(&folder).unwrap();
    let mount = Command::new("mount")
        .args([
            "-t",
            "tmpfs",
            "-o",
            "size=4096,mode=777",
            "boxery-test",
            folder.as_str(),
        ])
        .output()
        .unwrap();
    assert!(mount.status.success(), "{mount:?}");
    let full = boxery_remote::doctor::check_folder(&pipe, folder.as_str()).await;
    let closed = boxery_remote::doctor::check_folder(&pipe, "/proc/boxery").await;
    let well = boxery_remote::doctor::check_folder(&pipe, "/var/tmp/boxery-test-folder").await;
    let unmount = Command::new("umount")
        .arg(folder.as_str())
        .output()
        .unwrap();
    assert!(unmount.status.success(), "{unmount:?}");
    assert!(matches!(full, Err(RemoteError::NoSpace { .. })), "{full:?}");
    assert!(
        matches!(closed, Err(RemoteError::NotWritable { .. })),
        "{closed:?}"
    );
    well.unwrap();
}

#[rstest]
#[case::well("", &["configuration", "name", "TCP", "host key", "login", "helper", "shell", "folder", "process tree", "clock"], None)]
#[case::key("authorized", &["configuration", "name", "TCP", "host key"], Some("login"))]
#[case::host_key("known_hosts", &["configuration", "name", "TCP"], Some("host key"))]
#[tokio::test]
async fn the_doctor_names_the_step_that_fails(
    #[values(PipeChoice::Native, PipeChoice::System)] pipe: PipeChoice,
    #[case] emptied: &str,
    #[case] well: &[&str],
    #[case] failing: Option<&str>,
) {
    use boxery_remote::doctor::{Outcome, check_inside, check_way};
    let sshd = Sshd::start();
    if !emptied.is_empty() {
        write(&sshd.path(emptied), "");
    }
    let (mut checks, pipe) = check_way(&sshd.target(), pipe, &sshd.laptop(), None).await;
    if let Some(pipe) = pipe {
        let now = std::time::SystemTime::now();
        let now = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let (inside, probe) = check_inside(&pipe, "/var/tmp/boxery-test-folder", now).await;
        let probe = probe.unwrap();
        assert_eq!((probe.user, probe.bash), (sshd.user.clone(), true));
        checks.extend(inside);
    }
    let found: Vec<&str> = checks
        .iter()
        .filter(|check| matches!(check.outcome, Outcome::Well(_) | Outcome::Skipped(_)))
        .map(|check| check.step.name())
        .collect();
    let failed = checks.iter().find(|check| check.failed());
    assert_eq!(found, well, "{checks:?}");
    assert_eq!(failed.map(|check| check.step.name()), failing);
}
