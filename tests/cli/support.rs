//! A home of its own for the binary under test.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// The binary under test.
pub(crate) const BOXERY: &str = env!("CARGO_BIN_EXE_boxery");

/// A scratch home with a project in it; everything is removed with it.
pub(crate) struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    /// An empty home and an empty project.
    pub(crate) fn new() -> Self {
        Self::new_in(&std::env::temp_dir().display().to_string())
    }

    /// The same below `folder`, which takes this user's files.
    pub(crate) fn new_in(folder: &str) -> Self {
        let folder = TempDir::new_in(folder).unwrap();
        for name in ["home", "project"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    /// The home folder.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("home")
    }

    /// The project folder.
    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("project")
    }

    /// Write the user's configuration.
    pub(crate) fn configure(&self, text: &str) {
        let folder = self.home().join(".config/boxery");
        std::fs::create_dir_all(&folder).unwrap();
        let mut file = std::fs::File::create(folder.join("config.toml")).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// `program` in the project, with an environment made from nothing.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("LANG", "C.UTF-8")
            .current_dir(self.project())
            .stdin(Stdio::null());
        command
    }

    /// The binary, with `arguments`.
    pub(crate) fn boxery<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(
        &self,
        arguments: I,
    ) -> Command {
        let mut command = self.command(BOXERY);
        command.args(arguments);
        command
    }

    /// Run the binary; exit status, standard output and standard error as one text,
    /// with the scratch folder's path spelled `[SCRATCH]`.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        self.render(&self.boxery(arguments).output().unwrap())
    }

    /// An ended program as one text.
    pub(crate) fn render(&self, output: &Output) -> String {
        let mut text = format!("exit: {}\n", output.status.code().map_or(-1, |code| code));
        for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            let _ = writeln!(text, "----- {name}");
            text.push_str(&String::from_utf8_lossy(bytes));
            if !text.ends_with('\n') {
                text.push('\n');
            }
        }
        text.replace(&scratch(self.folder.path()), "[SCRATCH]")
    }
}

fn scratch(path: &Path) -> String {
    path.canonicalize().unwrap().display().to_string()
}
