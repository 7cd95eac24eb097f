//! A repository on the laptop and its copy's on a VM, over a real SSH server.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test that can't set its scene up fails at once, and needs no crash safety"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sshd::Vm;
use crate::support::Sandbox;

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Laptop,
    Vm,
}

impl Side {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Laptop => Self::Vm,
            Self::Vm => Self::Laptop,
        }
    }
}

/// What of a repository must be the same on both sides.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Where HEAD points.
    pub(crate) head: String,
    /// Branches, tags and notes.
    pub(crate) refs: String,
    /// The index.
    pub(crate) index: String,
    /// What `git status` says.
    pub(crate) status: String,
}

/// Both.
pub(crate) struct Repositories {
    pub(crate) sandbox: Sandbox,
    pub(crate) vm: Vm,
    /// The project, which need not be the sandbox's.
    pub(crate) project: PathBuf,
}

/// Two commits, two branches and a tag.
pub(crate) const STORY: &str = "
    git init -q .
    printf 'one\\n' > a; printf 'two\\n' > b; mkdir -p lib; printf 'deep\\n' > lib/c
    printf 'target/\\n' > .gitignore
    git add .; git commit -qm first; git tag v1; git branch other
    printf 'more\\n' >> a; git commit -qam second
";

impl Repositories {
    /// A project that `script` makes, and a VM without a copy of it.
    pub(crate) fn new(pipe: &str, script: &str) -> Self {
        Self::behind(pipe, script, Sandbox::new(), Vm::start_over)
    }

    /// The same with another VM.
    pub(crate) fn behind(
        pipe: &str,
        script: &str,
        sandbox: Sandbox,
        start: impl FnOnce(&Sandbox, &str, &str) -> Vm,
    ) -> Self {
        let vm = start(&sandbox, "", pipe);
        fs::write(
            sandbox.home().join(".gitconfig"),
            "[user]\n\tname = Ann\n\temail = ann@example.com\n[init]\n\tdefaultBranch = main\n\
             [advice]\n\tdetachedHead = false\n[protocol \"file\"]\n\tallow = always\n",
        )
        .unwrap();
        let project = sandbox.project();
        let both = Self {
            sandbox,
            vm,
            project,
        };
        both.sh(Side::Laptop, script);
        both
    }

    /// The project or the copy.
    pub(crate) fn folder(&self, side: Side) -> PathBuf {
        match side {
            Side::Laptop => self.project.clone(),
            Side::Vm => self.vm.copy(),
        }
    }

    fn command(&self, program: &str, folder: &Path) -> Command {
        let mut command = self.sandbox.command(program);
        command.current_dir(folder);
        if self.vm.agent().exists() {
            command.env("SSH_AUTH_SOCK", self.vm.agent());
        }
        command
    }

    /// Run a script on one side, which must succeed, and say what it said.
    pub(crate) fn sh(&self, side: Side, script: &str) -> String {
        self.sh_in(&self.folder(side), script)
    }

    /// Run a script in a folder, which must succeed, and say what it said.
    pub(crate) fn sh_in(&self, folder: &Path, script: &str) -> String {
        let mut command = self.command("bash", folder);
        let output = command.args(["-ec", script]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success(),
            "{script}\n{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        text
    }

    /// The binary, in the project.
    pub(crate) fn boxery(&self, words: &[&str]) -> Command {
        let mut command = self.command(crate::support::BOXERY, &self.project);
        command.args(words);
        command
    }

    /// Run the binary; exit status, standard output and standard error as one text.
    pub(crate) fn run(&self, words: &[&str]) -> String {
        let output = self.boxery(words).output().unwrap();
        self.sandbox.render(&output)
    }

    /// Make both the same; nothing may stay apart.
    pub(crate) fn sync(&self) -> String {
        let said = self.sync_apart();
        assert!(said.starts_with("exit: 0"), "{said}");
        said
    }

    /// Make both the same, as far as that goes.
    pub(crate) fn sync_apart(&self) -> String {
        let said = self.run(&["sync", "dev"]);
        self.check();
        said
    }

    /// The same of two sides of which not both are repositories.
    pub(crate) fn sync_quiet(&self) -> String {
        let said = self.run(&["sync", "dev"]);
        assert!(said.starts_with("exit: 0"), "{said}");
        said
    }

    /// Both are sound, and nothing of ours is left lying in them.
    pub(crate) fn check(&self) {
        for side in [Side::Laptop, Side::Vm] {
            let said = self.sh(side, "git fsck --no-dangling --no-progress 2>&1 | grep -v -e ^notice: -e zeroPaddedFilemode || :");
            assert_eq!(said, "", "{side:?}");
            let left = self.sh(
                side,
                "ls -d \"$(git rev-parse --git-dir)\"/boxery-* .boxery-git 2>/dev/null || :",
            );
            assert_eq!(left, "", "{side:?}");
        }
    }

    /// How one side stands.
    pub(crate) fn standing(&self, side: Side) -> Standing {
        Standing {
            head: self.sh(side, "git symbolic-ref -q HEAD || git rev-parse HEAD"),
            refs: self.sh(side, "git for-each-ref refs/heads refs/tags refs/notes"),
            index: self.sh(side, "git ls-files -s"),
            status: self.sh(side, "git status --porcelain"),
        }
    }

    /// Both stand alike; says how.
    pub(crate) fn same(&self) -> Standing {
        let (laptop, vm) = (self.standing(Side::Laptop), self.standing(Side::Vm));
        assert_eq!(laptop, vm);
        laptop
    }

    /// A reference of the laptop's, empty for none.
    pub(crate) fn kept(&self, name: &str) -> String {
        let script = format!("git rev-parse -q --verify {name} || :");
        self.sh(Side::Laptop, &script).trim().to_owned()
    }

    /// The commit at HEAD of one side.
    pub(crate) fn head(&self, side: Side) -> String {
        self.sh(side, "git rev-parse HEAD").trim().to_owned()
    }
}
