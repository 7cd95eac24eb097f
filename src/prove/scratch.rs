//! A home, a configuration, a state folder and a VM that exist for one proof.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};

use boxery_pin::{DriftRule, Mode, PinFile, PinKey, PinStore, VmName};
use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

use super::interrupt::Interrupt;
use crate::env;
use crate::error::Failure;

/// The folders of a scratch user. They are removed when it is dropped, and the VM
/// in them is ended.
pub(crate) struct Scratch {
    /// Removed when dropped.
    _folder: TempDir,
    root: Utf8PathBuf,
    binary: Utf8PathBuf,
    path: OsString,
    vm: VmName,
    interrupt: Interrupt,
}

impl Scratch {
    /// New folders with nothing in them. `binary` is boxery, `vm` what the VM is called.
    pub(crate) fn new(binary: &Utf8Path, vm: &str) -> Result<Self, Failure> {
        let interrupt = Interrupt::watch()?;
        let folder = tempfile::Builder::new().prefix("boxery-").tempdir()?;
        let root = Utf8PathBuf::from_path_buf(folder.path().canonicalize()?)
            .map_err(|path| format!("the temporary folder `{}` is not UTF-8", path.display()))?;
        for name in [
            "home/.claude",
            "config",
            "state",
            "data",
            "cache",
            "tmp",
            "run",
        ] {
            fs::create_dir_all(root.join(name))?;
        }
        Ok(Self {
            _folder: folder,
            root,
            binary: binary.to_owned(),
            path: env::path().unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
            vm: vm.parse()?,
            interrupt,
        })
    }

    /// The top folder.
    pub(crate) fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// A file or folder in boxery's scratch state.
    pub(crate) fn state(&self, name: &str) -> Utf8PathBuf {
        self.root.join("state/boxery").join(name)
    }

    /// Claude's scratch settings.
    pub(crate) fn settings(&self) -> Utf8PathBuf {
        self.root.join("home/.claude/settings.json")
    }

    /// What ends with this process.
    pub(crate) fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// The VM.
    pub(crate) fn vm(&self) -> &VmName {
        &self.vm
    }

    /// A program of the scratch user, its environment built from nothing, in a
    /// process group of its own.
    pub(crate) fn command(&self, program: &Utf8Path, folder: &Utf8Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(folder)
            .env_clear()
            .env("PATH", &self.path)
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .env("HOME", self.root.join("home"))
            .env("CLAUDE_CONFIG_DIR", self.root.join("home/.claude"))
            .env("XDG_CONFIG_HOME", self.root.join("config"))
            .env("XDG_STATE_HOME", self.root.join("state"))
            .env("XDG_DATA_HOME", self.root.join("data"))
            .env("XDG_CACHE_HOME", self.root.join("cache"))
            .env("XDG_RUNTIME_DIR", self.root.join("run"))
            .env("TMPDIR", self.root.join("tmp"))
            .env("CLAUDE_CODE_TMPDIR", self.root.join("tmp"))
            .stdin(Stdio::null())
            .process_group(0);
        command
    }

    /// boxery itself as the scratch user, in `folder`.
    pub(crate) fn boxery(&self, folder: &Utf8Path, arguments: &[&str]) -> io::Result<Output> {
        self.interrupt
            .output(&mut self.boxery_command(folder, arguments))
    }

    /// boxery itself, not yet started.
    pub(crate) fn boxery_command(&self, folder: &Utf8Path, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.binary, folder);
        command.args(arguments);
        command
    }

    /// As [`Scratch::boxery`], and a failure when its exit status isn't 0.
    pub(crate) fn succeed(&self, folder: &Utf8Path, arguments: &[&str]) -> Result<Output, Failure> {
        let output = self.boxery(folder, arguments);
        self.interrupt.check()?;
        let output = output?;
        if output.status.success() {
            return Ok(output);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().next().unwrap_or("it gave no reason");
        let line = line.strip_prefix("error: ").unwrap_or(line);
        Err(format!("`boxery {}` failed: {line}", arguments.join(" ")).into())
    }

    /// Add the VM on this machine.
    pub(crate) fn add_vm(&self) -> Result<(), Failure> {
        self.succeed(&self.root, &["vm", "add", self.vm.as_str(), "--embedded"])
            .map(drop)
    }

    /// A project folder with one file, pinned in `mode`.
    pub(crate) fn add_project(&self, name: &str, mode: Mode) -> Result<Utf8PathBuf, Failure> {
        let folder = self.root.join("projects").join(name);
        fs::create_dir_all(&folder)?;
        io::Write::write_all(
            &mut fs::File::create(folder.join("README"))?,
            b"a scratch project\n",
        )?;
        self.pin(&folder, mode)?;
        Ok(folder)
    }

    /// Pin the project `folder` in `mode`.
    pub(crate) fn pin(&self, folder: &Utf8Path, mode: Mode) -> Result<(), Failure> {
        let pin = self.pin_file(folder, mode);
        Ok(PinStore::new(self.state("pins")).write(&pin)?)
    }

    /// The pin of the project `folder` in `mode`.
    pub(crate) fn pin_file(&self, folder: &Utf8Path, mode: Mode) -> PinFile {
        let key = PinKey::Project {
            root: folder.to_owned(),
        };
        let why = "a project that exists for a moment";
        PinFile {
            mode: Some(mode),
            // What a command made must not come back: then it looks as if it ran here.
            drift: Some(DriftRule::Warn),
            project: Some(folder.to_owned()),
            ..PinFile::new(key, self.vm.clone(), "boxery", why, env::now())
        }
    }

    /// Remove the pin of the project `folder`.
    pub(crate) fn unpin(&self, folder: &Utf8Path) -> Result<(), Failure> {
        let key = PinKey::Project {
            root: folder.to_owned(),
        };
        PinStore::new(self.state("pins")).remove(&key)?;
        Ok(())
    }

    /// End the VM and remove every folder; a failure when something stays.
    pub(crate) fn close(self) -> Result<(), Failure> {
        let root = self.root.clone();
        drop(self);
        if root.exists() {
            return Err(format!("cannot remove the scratch folder `{root}`").into());
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The folders go with `folder`. Without a VM there is nothing to remove,
        // and the answer is of no interest.
        let remove = ["vm", "remove", self.vm.as_str()];
        self.boxery_command(&self.root, &remove).output().ok();
    }
}
