//! A VM that isn't the machine that was added, and `boxery vm renew`.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::fs;
use std::process::Command;

use rstest::rstest;

use crate::pty::Pty;
use crate::sshd::Vm;
use crate::support::Sandbox;

/// The machine id of each command there is what `$dir.id` holds.
const OWN_ID: &str = r#"[ -n "$own_id" ] || {
    export own_id=1
    exec unshare --mount --map-root-user sh -c \
        'mount --bind "$1" /etc/machine-id && exec "$0"' "$0" "$dir.id"
}"#;

struct Rebuilt {
    sandbox: Sandbox,
    vm: Vm,
    pipe: &'static str,
}

impl Rebuilt {
    fn new(pipe: &'static str) -> Self {
        let sandbox = Sandbox::new();
        let vm = Vm::start_over(&sandbox, OWN_ID, pipe);
        let rebuilt = Self { sandbox, vm, pipe };
        rebuilt.set_id('a');
        let path = rebuilt.sandbox.home().join(".config/boxery/config.toml");
        let text = fs::read_to_string(&path).unwrap();
        let target = text.lines().find_map(|line| line.strip_prefix("target = "));
        let target = target.unwrap().trim_matches('"').to_owned();
        fs::write(&path, "# mine\n").unwrap();
        let dir = rebuilt.vm.dir().display().to_string();
        let words = ["vm", "add", "dev", &target, "--dir", &dir, "--pipe", pipe];
        let added = rebuilt.run(&words);
        assert!(added.starts_with("exit: 0\n"), "{added}");
        rebuilt
    }

    fn set_id(&self, digit: char) {
        let path = self.vm.dir().with_extension("id");
        fs::write(path, format!("{}\n", String::from(digit).repeat(32))).unwrap();
    }

    fn boxery(&self, words: &[&str]) -> Command {
        let mut command = self.sandbox.boxery(words);
        command.env("SSH_AUTH_SOCK", self.vm.agent());
        command
    }

    fn run(&self, words: &[&str]) -> String {
        self.sandbox.render(&self.boxery(words).output().unwrap())
    }

    /// Every verb that works there refuses, and says what would help.
    fn refused(&self, want: &str) {
        for (words, status) in [
            (
                &["run", "dev", "--cwd", "/", "--", "touch", "/tmp/no"][..],
                125,
            ),
            (&["drift", "dev"], 2),
            (&["vm", "seed", "dev"], 125),
            (&["cp", "dev:/etc/hostname", "."], 125),
            (&["jobs", "list", "dev"], 125),
        ] {
            let said = self.run(words);
            assert!(said.starts_with(&format!("exit: {status}\n")), "{said}");
            assert!(said.contains(want), "{words:?}: {said}");
            assert!(said.contains("`boxery vm renew dev`"), "{words:?}: {said}");
        }
        let doctor = self.run(&["vm", "doctor", "dev"]);
        assert!(doctor.contains("FAIL"), "{doctor}");
        assert!(doctor.contains("`boxery vm renew dev`"), "{doctor}");
    }

    /// `vm renew` on a terminal, answered.
    fn renew(&self, answer: &str) -> (Option<i32>, String) {
        let mut pty = Pty::start(&self.boxery(&["vm", "renew", "dev"]));
        let mut said = pty.until("[y/N] ");
        pty.say(answer);
        let (status, rest) = pty.end();
        said.push_str(&rest);
        (status.code(), said)
    }

    fn config(&self) -> String {
        fs::read_to_string(self.sandbox.home().join(".config/boxery/config.toml")).unwrap()
    }
}

#[rstest]
#[case::key_and_id(true, "the host key of")]
#[case::id_alone(false, "its machine id is bbbb")]
fn a_rebuilt_vm_is_refused_until_a_person_renews_it(
    #[values("native", "system")] pipe: &'static str,
    #[case] new_key: bool,
    #[case] want: &str,
) {
    let scene = Rebuilt::new(pipe);
    let echo = ["run", "dev", "--cwd", "/", "--", "echo", "hi"];
    assert!(scene.run(&echo).starts_with("exit: 0\n"));
    let pinned = scene.run(&["pin", "dev", "--guard"]);
    assert!(pinned.starts_with("exit: 0\n"), "{pinned}");
    let (old_key, before) = (scene.vm.fingerprint(), scene.config());
    scene.set_id('b');
    if new_key {
        scene.vm.change_key();
    }
    scene.vm.cut();
    scene.refused(want);

    let refused = scene.run(&["vm", "renew", "dev"]);
    assert!(refused.starts_with("exit: 1\n"), "{refused}");
    assert!(refused.contains("nobody can be asked"), "{refused}");
    let agent = scene
        .boxery(&["vm", "renew", "dev"])
        .env("CLAUDECODE", "1")
        .output();
    assert_eq!(agent.unwrap().status.code(), Some(1));

    let (status, said) = scene.renew("n\n");
    assert_eq!(status, Some(1), "{said}");
    assert_eq!(scene.config(), before);
    scene.refused(want);

    let (status, said) = scene.renew("y\n");
    assert_eq!(status, Some(0), "{said}");
    for shown in [
        &old_key,
        &scene.vm.fingerprint(),
        &"a".repeat(32),
        &"b".repeat(32),
    ] {
        assert!(said.contains(shown.as_str()), "no {shown} in {said}");
    }
    assert!(scene.config().contains("# mine\n"));
    assert!(
        scene
            .config()
            .contains(&format!("machine_id = \"{}\"", "b".repeat(32)))
    );
    let ran = scene.run(&echo);
    assert!(ran.contains("hi"), "{ran}");
    assert!(
        scene.run(&["pin"]).starts_with("exit: 0\n"),
        "the pin stays"
    );
    assert_eq!(scene.pipe, pipe);

    let mut again = Pty::start(&scene.boxery(&["vm", "renew", "dev"]));
    let (status, said) = again.end();
    assert_eq!(status.code(), Some(0));
    assert!(said.contains("there is nothing to renew"), "{said}");
}
