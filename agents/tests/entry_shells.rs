//! The installed entry under the shells that agents start hooks with: fail-closed
//! while something is pinned, harmless otherwise, whatever became of the binary.

#![expect(
    clippy::expect_used,
    reason = "a test support function may fail the test"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use boxery_agents::hook_command;
use camino::{Utf8Path, Utf8PathBuf};
use rstest::rstest;

struct World {
    folder: tempfile::TempDir,
    binary: &'static str,
}

/// What became of the binary.
#[derive(Debug, Clone, Copy)]
enum Binary {
    Missing,
    NotExecutable,
    /// It exits with 1.
    Fails,
    /// It is killed by SIGKILL.
    Killed,
}

/// What is pinned.
#[derive(Debug, Clone, Copy)]
enum Pinned {
    No,
    /// The folder for pins is there, and empty.
    EmptyFolder,
    ByVariable,
    ByEmptyVariable,
    ByFile,
    /// A pin file whose target is gone.
    ByDanglingLink,
    ByFileInXdgState,
    /// `XDG_STATE_HOME` is relative, so it doesn't count.
    ByFileDespiteRelativeXdg,
    /// `HOME` is unset: nobody can say.
    Unknown,
}

impl Pinned {
    fn must_deny(self) -> bool {
        match self {
            Self::No | Self::EmptyFolder | Self::ByEmptyVariable => false,
            Self::ByVariable
            | Self::ByFile
            | Self::ByDanglingLink
            | Self::ByFileInXdgState
            | Self::ByFileDespiteRelativeXdg
            | Self::Unknown => true,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "nobody reads it meanwhile")]
fn put(path: &Utf8Path, content: &str) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    fs::write(path, content).expect("a file");
}

impl World {
    fn new(binary: &'static str) -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            binary,
        }
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path())
            .expect("UTF-8")
            .join(name)
    }

    /// The binary is a link to a shell, which runs the file `hook` beside it.
    fn place(&self, binary: Binary) {
        let path = self.path(self.binary);
        match binary {
            Binary::Missing => {}
            Binary::NotExecutable => put(&path, "#!/bin/sh\n"),
            Binary::Fails | Binary::Killed => {
                fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
                symlink("/bin/sh", &path).expect("a link");
            }
        }
        let script = match binary {
            Binary::Killed => "kill -KILL $$",
            Binary::Missing | Binary::NotExecutable | Binary::Fails => "exit 1",
        };
        put(&self.path("work/hook"), script);
    }

    fn run(&self, shell: &[&str], pinned: Pinned) -> Output {
        let entry = hook_command(&self.path(self.binary), "claude-code").expect("quotable");
        let home = self.path("home of 'a' \"b\" $x");
        fs::create_dir_all(&home).expect("a folder");
        let mut command = Command::new(shell[0]);
        command
            .args(&shell[1..])
            .arg(&entry)
            .current_dir(self.path("work"))
            .env_clear()
            .env("PATH", "/nowhere")
            .env("HOME", &home);
        let pins = ".local/state/boxery/pins";
        match pinned {
            Pinned::No => {}
            Pinned::EmptyFolder => fs::create_dir_all(home.join(pins)).expect("a folder"),
            Pinned::ByVariable => {
                command.env("BOXERY_VM", "dev");
            }
            Pinned::ByEmptyVariable => {
                command.env("BOXERY_VM", "");
            }
            Pinned::ByFile => put(&home.join(pins).join("project-x.json"), "{}"),
            Pinned::ByDanglingLink => {
                fs::create_dir_all(home.join(pins)).expect("a folder");
                symlink("gone", home.join(pins).join("project-x.json")).expect("a link");
            }
            Pinned::ByFileInXdgState => {
                put(&self.path("xdg state/boxery/pins/x.json"), "{}");
                command.env("XDG_STATE_HOME", self.path("xdg state"));
            }
            Pinned::ByFileDespiteRelativeXdg => {
                put(&home.join(pins).join("x.json"), "{}");
                command.env("XDG_STATE_HOME", "relative");
            }
            Pinned::Unknown => {
                command.env_remove("HOME");
            }
        }
        command.output().unwrap_or_else(|error| {
            panic!(
                "{} can't be started ({error}): install it (apt install dash bash zsh)",
                shell[0]
            )
        })
    }
}

#[rstest]
fn a_hook_that_does_not_answer_denies_only_what_is_pinned(
    #[values(
        &["/bin/sh", "-c"],
        &["/bin/sh", "-uc"],
        &["/bin/dash", "-euc"],
        &["/bin/bash", "-c"],
        &["/bin/bash", "-euc"],
        &["/bin/bash", "--posix", "-uc"],
        &["/usr/bin/zsh", "-c"],
        &["/usr/bin/zsh", "-euc"],
    )]
    shell: &[&str],
    #[values(Binary::Missing, Binary::NotExecutable, Binary::Fails, Binary::Killed)] binary: Binary,
    #[values("bin/boxery", "it's \"my\" $tools; && x/boxery")] path: &'static str,
) {
    for pinned in [
        Pinned::No,
        Pinned::EmptyFolder,
        Pinned::ByVariable,
        Pinned::ByEmptyVariable,
        Pinned::ByFile,
        Pinned::ByDanglingLink,
        Pinned::ByFileInXdgState,
        Pinned::ByFileDespiteRelativeXdg,
        Pinned::Unknown,
    ] {
        // zsh looks an unset HOME up by itself, so there is nothing unknown.
        if matches!(pinned, Pinned::Unknown) && shell[0].ends_with("zsh") {
            continue;
        }
        let world = World::new(path);
        world.place(binary);
        let output = world.run(shell, pinned);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let want = if pinned.must_deny() { 2 } else { 0 };
        assert_eq!(output.status.code(), Some(want), "{pinned:?}: {stderr}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{pinned:?}");
        assert_eq!(
            stderr.contains("boxery did not answer"),
            pinned.must_deny(),
            "{pinned:?}: {stderr}"
        );
        assert!(
            !stderr.contains("nonomatch") && !stderr.contains("no matches"),
            "{stderr}"
        );
    }
}

#[rstest]
fn a_hook_that_denies_by_its_status_is_left_alone(
    #[values("/bin/sh", "/bin/dash", "/bin/bash", "/usr/bin/zsh")] shell: &str,
    #[values("-c", "-euc")] flags: &str,
    #[values(Pinned::No, Pinned::ByFile)] pinned: Pinned,
) {
    let world = World::new("bin/boxery");
    world.place(Binary::Fails);
    put(&world.path("work/hook"), "echo {}; echo why >&2; exit 2");
    let output = world.run(&[shell, flags], pinned);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{}\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "why\n");
}

#[rstest]
fn a_hook_that_answers_is_left_alone(
    #[values("/bin/sh", "/bin/dash", "/bin/bash", "/usr/bin/zsh")] shell: &str,
    #[values(Pinned::No, Pinned::ByFile, Pinned::ByVariable)] pinned: Pinned,
) {
    let world = World::new("bin/boxery");
    world.place(Binary::Fails);
    put(
        &world.path("work/hook"),
        "read -r line; echo \"$# $1 $2 $line\"",
    );
    let output = world.run(&[shell, "-uc"], pinned);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "2 run claude-code \n"
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
