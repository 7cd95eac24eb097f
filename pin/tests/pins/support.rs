//! A state folder and a home for one test.

use std::io::Write as _;
use std::process::Command;

use boxery_pin::{
    AgentId, Lookup, Mode, PinError, PinFile, PinKey, PinStore, ProcessId, Project, Resolved,
    SessionId, resolve,
};
use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

/// A moment long after 1970.
pub(crate) const NOW: u64 = 1_800_000_000;
/// One day in seconds.
pub(crate) const DAY: u64 = 24 * 3600;

pub(crate) struct Scene {
    _folder: TempDir,
    /// The scratch folder, links resolved.
    pub(crate) top: Utf8PathBuf,
    pub(crate) store: PinStore,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let top = Utf8Path::from_path(folder.path()).unwrap();
        let top = top.canonicalize_utf8().unwrap();
        Self {
            store: PinStore::new(top.join("state/pins")),
            top,
            _folder: folder,
        }
    }

    /// Make a folder below the scratch folder.
    pub(crate) fn folder(&self, path: &str) -> Utf8PathBuf {
        let folder = self.top.join(path);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Make a repository with one commit.
    pub(crate) fn repository(&self, path: &str) -> Utf8PathBuf {
        let folder = self.folder(path);
        git(&folder, &["init", "-q", "-b", "main"]);
        git(&folder, &["commit", "-q", "--allow-empty", "-m", "first"]);
        folder
    }

    pub(crate) fn pin(&self, key: PinKey, vm: &str) -> PinFile {
        let pin = pin(key, vm);
        self.store.write(&pin).unwrap();
        pin
    }

    /// Pin the project that `folder` belongs to, as the verb does.
    pub(crate) fn pin_project(&self, folder: &Utf8Path, vm: &str) -> PinFile {
        let project = Project::of(folder).unwrap();
        let key = PinKey::Project {
            root: project.root.clone(),
        };
        let pin = PinFile {
            project: Some(project.root),
            git_common: project.git_common,
            ..pin(key, vm)
        };
        self.store.write(&pin).unwrap();
        pin
    }

    /// Which VM a call of no agent in `folder` is pinned to.
    pub(crate) fn vm_in(&self, folder: &Utf8Path) -> Result<Option<String>, PinError> {
        let lookup = Lookup {
            folder: Some(folder),
            ..nobody()
        };
        Ok(resolve(&self.store, &lookup)?.map(|found| found.vm.to_string()))
    }

    pub(crate) fn resolve(&self, lookup: &Lookup<'_>) -> Result<Option<Resolved>, PinError> {
        resolve(&self.store, lookup)
    }

    /// The only file in the folder of pins.
    pub(crate) fn only_file(&self) -> Utf8PathBuf {
        let mut files = self.store.folder.read_dir_utf8().unwrap();
        let only = files.next().unwrap().unwrap().into_path();
        assert!(files.next().is_none());
        only
    }
}

pub(crate) fn nobody() -> Lookup<'static> {
    Lookup {
        environment: None,
        agent: None,
        session: None,
        ancestors: &[],
        folder: Some(Utf8Path::new("/")),
        now: NOW,
    }
}

pub(crate) fn pin(key: PinKey, vm: &str) -> PinFile {
    PinFile {
        mode: Some(Mode::Redirect),
        ..PinFile::new(key, vm.parse().unwrap(), "a test", "to try it", NOW)
    }
}

pub(crate) fn claude() -> AgentId {
    AgentId("claude-code".to_owned())
}

pub(crate) fn session_id(id: &str) -> SessionId {
    SessionId(id.to_owned())
}

pub(crate) fn session(id: &str) -> PinKey {
    PinKey::Session {
        agent: claude(),
        session: session_id(id),
    }
}

pub(crate) fn process(process: ProcessId) -> PinKey {
    PinKey::Process {
        agent: claude(),
        process,
    }
}

pub(crate) fn own_process() -> ProcessId {
    ProcessId::of(std::process::id()).unwrap()
}

pub(crate) fn project(root: &Utf8Path) -> PinKey {
    PinKey::Project {
        root: root.to_owned(),
    }
}

pub(crate) fn write(path: &Utf8Path, text: &str) {
    std::fs::File::create(path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

/// Run git away from the user's own configuration.
pub(crate) fn git(folder: &Utf8Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .output()
        .expect("this test needs git: apt-get install git");
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
