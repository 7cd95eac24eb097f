//! A project, a copy and the state of their syncs, all on this disk.

#![expect(
    clippy::unwrap_used,
    reason = "test support: a failure here is the test's failure"
)]
#![expect(clippy::disallowed_methods, reason = "test trees need no crash safety")]

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use boxery_sync::{
    Applied, Applying, Base, Change, Direction, EntryPath, Folding, Greeting, Guard, Identity,
    Plan, Protected, Root, STAGE, Scan, ScanOptions, Side, Source, Stage, Standing, StatIndex,
    Step, Take, Terms, Tree, Trees, apply, check, reconcile,
};
use camino::Utf8Path;
use tempfile::TempDir;

/// How a sync of the pair is done.
pub(crate) struct Manner {
    pub(crate) direction: Direction,
    pub(crate) takes: Vec<Take>,
    pub(crate) allowed: usize,
    pub(crate) protected: Protected,
    pub(crate) never_sent: &'static str,
    pub(crate) laptop_folds: Folding,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            direction: Direction::TwoWay,
            takes: Vec::new(),
            allowed: 0,
            protected: Protected::default(),
            never_sent: "\0",
            laptop_folds: Folding::NONE,
        }
    }
}

/// What came of a sync.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) plan: Plan,
    pub(crate) laptop: Applied,
    pub(crate) vm: Applied,
    /// What was found in a stage and known from nowhere.
    pub(crate) kept: Vec<String>,
}

/// Why a sync wasn't done.
#[derive(Debug)]
pub(crate) enum Stopped {
    Killed,
    Guard(Guard),
    Foreign,
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        assert_eq!(
            error.to_string(),
            KILLED,
            "only what the test wants happens"
        );
        Self::Killed
    }
}

pub(crate) const KILLED: &str = "killed here";

pub(crate) struct Pair {
    pub(crate) laptop: TempDir,
    pub(crate) vm: TempDir,
    pub(crate) state: TempDir,
    pub(crate) copy: Greeting,
}

pub(crate) fn folder() -> TempDir {
    // In memory: the model makes millions of files.
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

pub(crate) fn tree_of(folder: &Path) -> Tree {
    let root = Utf8Path::from_path(folder).unwrap();
    let scan = Scan::read(root, &ScanOptions::default()).unwrap();
    Tree::of(&scan.snapshot)
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self {
            laptop: folder(),
            vm: folder(),
            state: folder(),
            copy: Greeting {
                identity: Identity {
                    marker: "1".to_owned(),
                    machine: "m".to_owned(),
                },
                epoch: 0,
            },
        }
    }

    pub(crate) fn at(&self, side: Side, path: &str) -> PathBuf {
        self.folder(side).join(path)
    }

    pub(crate) fn folder(&self, side: Side) -> &Path {
        match side {
            Side::Laptop => self.laptop.path(),
            Side::Vm => self.vm.path(),
        }
    }

    pub(crate) fn write(&self, side: Side, path: &str, content: &str) -> &Self {
        let path = self.at(side, path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn read(&self, side: Side, path: &str) -> Option<String> {
        fs::read_to_string(self.at(side, path)).ok()
    }

    pub(crate) fn make_executable(&self, side: Side, path: &str) -> &Self {
        fs::set_permissions(self.at(side, path), fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    pub(crate) fn sync(&mut self) -> Outcome {
        self.sync_as(&Manner::default(), &mut |_| Ok(())).unwrap()
    }

    /// One sync, as the verb does it, with `probe` called at each step of it.
    pub(crate) fn sync_as(
        &mut self,
        manner: &Manner,
        probe: &mut dyn FnMut(Step) -> io::Result<()>,
    ) -> Result<Outcome, Stopped> {
        let mut base = Base::read(self.state.path())?;
        let index_file = self.state.path().join("index");
        let project = Utf8Path::from_path(self.laptop.path()).unwrap();
        let options = ScanOptions::default();
        let index = StatIndex::read(&index_file);
        let (scan, index) = Scan::read_indexed(project, &options, &index).unwrap();
        index.write(&index_file).unwrap();
        let trees = (Tree::of(&scan.snapshot), tree_of(self.vm.path()));
        let standing = base.standing(&self.copy);
        match standing {
            Standing::Known | Standing::New => {}
            Standing::Moved => base.forget(),
            Standing::Foreign => return Err(Stopped::Foreign),
        }
        base.recover(&trees.0, &trees.1);
        let plan = reconcile(
            Trees {
                base: base.tree(),
                laptop: &trees.0,
                vm: &trees.1,
            },
            &Terms {
                direction: manner.direction,
                has_base: standing == Standing::Known,
                protected: &manner.protected,
                never_taken: &|_| false,
                never_sent: &|path| path.as_bytes().ends_with(manner.never_sent.as_bytes()),
                takes: &manner.takes,
                laptop_folds: manner.laptop_folds,
                vm_folds: Folding::NONE,
            },
        );
        check(&plan, base.tree(), &trees.0, &trees.1, manner.allowed).map_err(Stopped::Guard)?;
        let mut known = base.contents();
        for tree in [&trees.0, &trees.1] {
            let contents = tree.iter().filter_map(|(_, state)| state.content());
            known.extend(contents.map(|(digest, _)| digest));
        }
        probe(Step::Begin)?;
        if plan.has_changes() {
            base.intend(&self.copy, &plan)?;
        }
        probe(Step::Begin)?;
        let roots = (
            Root::open(self.laptop.path()).unwrap(),
            Root::open(self.vm.path()).unwrap(),
        );
        let mut stages = (Stage::open(&roots.0)?, Stage::open(&roots.1)?);
        let mut kept = stages
            .0
            .sweep(&roots.0, false, |digest| known.contains(digest))?;
        kept.extend(
            stages
                .1
                .sweep(&roots.1, false, |digest| known.contains(digest))?,
        );
        stage(&stages.1, &roots.0, &plan.vm, probe)?;
        stage(&stages.0, &roots.1, &plan.laptop, probe)?;
        let mut applying = Applying {
            known: &|_| None,
            modes: true,
            probe,
        };
        let vm = apply(&roots.1, &mut stages.1, &plan.vm, &mut applying)?;
        let laptop = apply(&roots.0, &mut stages.0, &plan.laptop, &mut applying)?;
        probe(Step::Begin)?;
        let epoch = base.next_epoch(&self.copy, &plan);
        self.copy.epoch = epoch;
        probe(Step::Begin)?;
        if plan.moves_base() || !base.is_settled() || standing != Standing::Known {
            let identity = self.copy.identity.clone();
            base.commit(identity, epoch, &plan, &laptop, &vm)?;
        }
        probe(Step::Begin)?;
        kept.extend(
            stages
                .0
                .sweep(&roots.0, true, |digest| known.contains(digest))?,
        );
        kept.extend(
            stages
                .1
                .sweep(&roots.1, true, |digest| known.contains(digest))?,
        );
        stages.0.close(&roots.0)?;
        stages.1.close(&roots.1)?;
        assert!(!self.at(Side::Laptop, STAGE).exists());
        Ok(Outcome {
            plan,
            laptop,
            vm,
            kept,
        })
    }
}

/// Bring the content that `changes` need into `stage`.
fn stage(
    stage: &Stage,
    source: &Root,
    changes: &[Change],
    probe: &mut dyn FnMut(Step) -> io::Result<()>,
) -> Result<(), Stopped> {
    for change in changes.iter().filter(|change| !change.is_mode_only()) {
        let Some((digest, size)) = change.to.content() else {
            continue;
        };
        if stage.has(digest, size) {
            continue;
        }
        let Some(mut content) = Source::open(source, &change.path, &change.to).unwrap() else {
            continue;
        };
        let mut incoming = stage.begin(digest, size).unwrap();
        content.skip(incoming.position()).unwrap();
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).unwrap();
        let (first, second) = bytes.split_at(bytes.len() / 2);
        incoming.push(first).unwrap();
        probe(Step::Begin)?;
        incoming.push(second).unwrap();
        incoming.finish().unwrap();
    }
    Ok(())
}

pub(crate) fn entry(path: &str) -> EntryPath {
    EntryPath::parse(path.as_bytes()).unwrap()
}
