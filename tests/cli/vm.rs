//! `boxery vm …` against a real server.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set its scene up should fail at once"
)]

use rstest::rstest;

use crate::sshd::Vm;
use crate::support::Sandbox;

struct Fresh {
    sandbox: Sandbox,
    vm: Vm,
    target: String,
}

impl Fresh {
    /// A server that nobody knows yet.
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let vm = Vm::start(&sandbox, "");
        let config = sandbox.home().join(".config/boxery");
        let text = std::fs::read_to_string(config.join("config.toml")).unwrap();
        let target = text.lines().find_map(|line| line.strip_prefix("target = "));
        let target = target.unwrap().trim_matches('"').to_owned();
        std::fs::remove_dir_all(&config).unwrap();
        Self {
            sandbox,
            vm,
            target,
        }
    }

    fn add(&self, more: &[&str]) -> (Option<i32>, String) {
        let dir = self.vm.dir();
        let mut command = self
            .sandbox
            .boxery(["vm", "add", "dev", &self.target, "--dir"]);
        let output = command.arg(dir).args(more).output().unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }

    fn config(&self) -> String {
        let path = self.sandbox.home().join(".config/boxery/config.toml");
        std::fs::read_to_string(path).unwrap_or_default()
    }
}

#[rstest]
fn a_new_vm_is_added_once_its_key_is_confirmed(#[values("native", "auto")] pipe: &str) {
    let fresh = Fresh::new();
    let key = fresh.vm.fingerprint();
    let (code, said) = fresh.add(&["--pipe", pipe]);
    assert_eq!(code, Some(125), "{said}");
    assert!(
        said.contains(&format!("--accept-fingerprint {key}")),
        "{said}"
    );
    assert_eq!(fresh.config(), "", "nothing is written before that");

    let wrong = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let (code, said) = fresh.add(&["--pipe", pipe, "--accept-fingerprint", wrong]);
    assert_eq!(code, Some(125));
    assert!(said.contains("not the one that you named"), "{said}");

    let (code, said) = fresh.add(&["--pipe", pipe, "--accept-fingerprint", &key]);
    assert_eq!(code, Some(0), "{said}");
    assert!(fresh.config().contains(&format!("host_key = \"{key}\"")));
    assert!(fresh.vm.dir().is_dir(), "its folder was made");

    let doctor = fresh.sandbox.run(&["vm", "doctor", "dev"]);
    assert!(doctor.starts_with("exit: 0\n"), "{doctor}");
    let run = fresh
        .sandbox
        .run(&["run", "dev", "--cwd", "/", "--", "echo", "hi"]);
    assert!(run.contains("hi"), "{run}");
    // Known now: connecting asks nothing.
    let connect = fresh.sandbox.run(&["vm", "connect", "dev"]);
    assert!(connect.starts_with("exit: 0\n"), "{connect}");
}

#[test]
fn the_doctor_names_what_is_wrong_and_what_to_do() {
    let fresh = Fresh::new();
    let key = fresh.vm.fingerprint();
    assert_eq!(fresh.add(&["--accept-fingerprint", &key]).0, Some(0));
    let keys = fresh.sandbox.home().join(".ssh/id_ed25519");
    std::fs::remove_file(&keys).unwrap();
    let doctor = fresh.sandbox.run(&["vm", "doctor", "dev"]);
    assert!(doctor.starts_with("exit: 1\n"), "{doctor}");
    assert!(doctor.contains("FAIL  login"), "{doctor}");
    assert!(doctor.contains("hint: load the right key"), "{doctor}");
    drop(fresh.vm);
    let doctor = fresh.sandbox.run(&["vm", "doctor", "dev"]);
    assert!(doctor.contains("FAIL  TCP"), "{doctor}");
}

#[test]
fn a_vm_without_a_target_or_with_a_taken_name_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.configure("[vm.dev]\ntarget = \"me@dev\"\ndir = \"/vm\"\n");
    insta::assert_snapshot!(sandbox.run(&["vm", "add", "dev", "me@other"]), @r"
    exit: 125
    ----- stdout
    ----- stderr
    error: there is a VM `dev` already: me@dev
    hint: take another name, or `boxery vm remove dev` first
    ");
    let ssh = sandbox.home().join(".ssh");
    std::fs::create_dir(&ssh).unwrap();
    let mut file = std::fs::File::create(ssh.join("config")).unwrap();
    let text = b"Host build *.corp\n  User me\nHost=gate !bad\nMatch all\n";
    std::io::Write::write_all(&mut file, text).unwrap();
    insta::assert_snapshot!(sandbox.run(&["vm", "add", "new"]), @r"
    exit: 64
    ----- stdout
    ----- stderr
    error: where is the VM `new`?
    hint: hosts of your ssh configuration: build, gate; or `boxery vm add new user@host[:port]`, or `--embedded` for one on this machine
    ");
    insta::assert_snapshot!(sandbox.run(&["vm", "add", "new", "me@-oProxyCommand=id"]), @r"
    exit: 125
    ----- stdout
    ----- stderr
    error: `me@-oProxyCommand=id` is no SSH target: the host isn't a name or address
    hint: give user@host, user@host:port or a Host of your ssh configuration
    ");
}

#[test]
fn the_vm_on_this_machine_says_so_and_keeps_its_own_root() {
    let sandbox = Sandbox::new();
    let added = sandbox.run(&["vm", "add", "try", "--embedded"]);
    assert!(added.starts_with("exit: 0\n"), "{added}");
    assert!(
        added.contains("this machine, no security boundary"),
        "{added}"
    );
    let marker = format!("/tmp/boxery-marker-{}", std::process::id());
    let run = sandbox.run(&["run", "try", "--cwd", "/", "--", "touch", &marker]);
    assert!(run.starts_with("exit: 0\n"), "{run}");
    assert!(run.contains("boxery: VM try is this machine"), "{run}");
    assert!(
        !std::path::Path::new(&marker).exists(),
        "it ran on the host"
    );
    let root = sandbox.home().join(".local/state/boxery/embedded/try/root");
    assert!(root.join(&marker[1..]).exists());
    let list = sandbox.run(&["vm", "list"]);
    assert!(list.contains("this machine"), "{list}");
    let doctor = sandbox.run(&["vm", "doctor", "try", "--json"]);
    assert!(doctor.contains("\"well\":true"), "{doctor}");
    let removed = sandbox.run(&["vm", "remove", "try"]);
    assert!(removed.starts_with("exit: 0\n"), "{removed}");
    drop(std::fs::remove_dir_all(
        sandbox.home().join(".local/state/boxery/embedded"),
    ));
}
