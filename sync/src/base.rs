//! The last common state of a project and its copy on one VM, and what is under way.
//!
//! It is kept on the laptop. Before a sync changes anything it writes down what it
//! intends; then a crash can't make its own half-done work look like a person's.
//!
//! Invariant: a state that is lost, damaged or not of this VM is none. It never
//! stands in for "everything was deleted".

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::apply::{Applied, goes_first};
use crate::plan::{Change, Plan, Side};
use crate::store::{self, Durability};
use crate::{Digest, EntryPath, State, Tree};

/// Which copy on which machine it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// What the copy's marker says.
    pub marker: String,
    /// The VM's machine id.
    pub machine: String,
}

/// What the copy says of itself at the beginning of a sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// Which it is.
    pub identity: Identity,
    /// The number of the last sync that was completed there; 0 for none.
    pub epoch: u64,
}

/// How the copy stands to the last common state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is the one of last time.
    Known,
    /// There was no sync yet, or what is known of it is lost.
    New,
    /// It isn't at the point it was left at, as after a restore from a backup: what
    /// differs is neither newer nor older.
    Moved,
    /// It is another copy, or lies on another machine: nothing is read from it.
    Foreign,
}

#[derive(Debug, Serialize, Deserialize)]
struct BaseFile {
    /// How often it was written.
    commits: u64,
    identity: Identity,
    epoch: u64,
    entries: Vec<(EntryPath, State)>,
    /// What that sync couldn't complete.
    half_done: Vec<(Side, Change)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct IntentFile {
    /// How often the base had been written then: later ones settle them.
    after: u64,
    intents: Vec<(Side, Change)>,
}

/// The last common state.
#[derive(Debug)]
pub struct Base {
    folder: PathBuf,
    commits: u64,
    known: Option<(Identity, u64)>,
    tree: Tree,
    intents: Vec<(Side, Change)>,
}

impl Base {
    /// Read what is in `folder`, which has to be there. A file that can't be read at
    /// all is an error; a damaged one is none.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let base: Option<BaseFile> = undamaged(store::read(&folder.join("base")))?;
        let intents: Option<IntentFile> = undamaged(store::read(&folder.join("intents")))?;
        let mut found = Self {
            folder: folder.to_owned(),
            commits: 0,
            known: None,
            tree: Tree::default(),
            intents: Vec::new(),
        };
        if let Some(base) = base {
            found.commits = base.commits;
            found.known = Some((base.identity, base.epoch));
            found.tree = base.entries.into_iter().collect();
            found.intents = base.half_done;
        }
        // Those of a sync that was completed are settled.
        let of_this = |file: &IntentFile| file.after == found.commits && found.commits > 0;
        if let Some(file) = intents.filter(of_this) {
            found.intents = file.intents;
        }
        Ok(found)
    }

    /// The number of the last sync; 0 for none.
    pub fn epoch(&self) -> u64 {
        self.known.as_ref().map_or(0, |(_, epoch)| *epoch)
    }

    /// How the copy that greets stands to it.
    pub fn standing(&self, copy: &Greeting) -> Standing {
        let Some((identity, epoch)) = &self.known else {
            return Standing::New;
        };
        if *identity != copy.identity {
            return Standing::Foreign;
        }
        // A sync that was broken off may have been complete but for this file.
        let next = !self.intents.is_empty() && copy.epoch == epoch + 1;
        if copy.epoch == *epoch || next {
            Standing::Known
        } else {
            Standing::Moved
        }
    }

    /// The epoch that the copy gets when `plan` is carried out.
    pub fn next_epoch(&self, copy: &Greeting, plan: &Plan) -> u64 {
        match (self.standing(copy), plan.has_changes()) {
            (Standing::Known, true) => self.epoch() + 1,
            (Standing::New | Standing::Moved | Standing::Foreign, true) => {
                self.epoch().max(copy.epoch) + 1
            }
            (Standing::Known, false) => copy.epoch,
            // A copy that is made anew has none, and must not look like this one.
            (Standing::New | Standing::Moved | Standing::Foreign, false) => copy.epoch.max(1),
        }
    }

    /// Whether nothing of a sync that was broken off is open.
    pub fn is_settled(&self) -> bool {
        self.intents.is_empty()
    }

    /// Forget it: the copy has moved.
    pub fn forget(&mut self) {
        self.tree = Tree::default();
        self.intents.clear();
    }

    /// The last common state, as far as the two trees don't show what a sync did that
    /// was broken off: there its own work is the base.
    pub fn recover(&mut self, laptop: &Tree, vm: &Tree) {
        for (side, change) in &self.intents {
            let now = match side {
                Side::Laptop => laptop.at(&change.path),
                Side::Vm => vm.at(&change.path),
            };
            let between = goes_first(change).then_some(State::Absent);
            if now == change.from || now == change.to || Some(now) == between {
                self.tree.set(change.path.clone(), now);
            }
        }
    }

    /// The tree of the last common state.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The content that is in it or was under way: what of it is left in a stage was
    /// no person's.
    pub fn contents(&self) -> HashSet<Digest> {
        let intents = self.intents.iter();
        let states = self.tree.iter().map(|(_, state)| state);
        states
            .chain(intents.flat_map(|(_, change)| [change.from, change.to]))
            .filter_map(|state| state.content())
            .map(|(digest, _)| digest)
            .collect()
    }

    /// Write down what is going to be done at the copy that greeted, on top of what
    /// was and isn't settled.
    pub fn intend(&mut self, copy: &Greeting, plan: &Plan) -> io::Result<()> {
        if self.known.is_none() {
            // The intents belong to a base, and to none that is lost later.
            let nothing = (Plan::default(), Applied::default());
            let (plan, applied) = &nothing;
            self.commit(copy.identity.clone(), copy.epoch, plan, applied, applied)?;
        }
        for side in [Side::Laptop, Side::Vm] {
            let changes = plan.changes(side).iter().cloned();
            self.intents.extend(changes.map(|change| (side, change)));
        }
        self.write_intents()
    }

    fn write_intents(&self) -> io::Result<()> {
        let file = IntentFile {
            after: self.commits,
            intents: self.intents.clone(),
        };
        store::write(&self.folder.join("intents"), &file, Durability::OnDisk)
    }

    /// The sync is complete, and the copy has been told that its epoch is `epoch`:
    /// what was done is common now.
    pub fn commit(
        &mut self,
        identity: Identity,
        epoch: u64,
        plan: &Plan,
        laptop: &Applied,
        vm: &Applied,
    ) -> io::Result<()> {
        for (path, state) in &plan.agreed {
            self.tree.set(path.clone(), *state);
        }
        let mut intents = Vec::new();
        for (side, applied) in [(Side::Laptop, laptop), (Side::Vm, vm)] {
            let left: HashSet<&EntryPath> = applied.left.iter().map(|(path, _)| path).collect();
            for change in plan.changes(side) {
                if left.contains(&change.path) {
                    // It may be half done.
                    intents.push((side, change.clone()));
                } else {
                    self.tree.set(change.path.clone(), change.to);
                }
            }
        }
        // One file, so that no crash comes between the base and what is half done.
        let file = BaseFile {
            commits: self.commits + 1,
            identity: identity.clone(),
            epoch,
            entries: self.tree.iter().map(|(p, s)| (p.clone(), s)).collect(),
            half_done: intents.clone(),
        };
        store::write(&self.folder.join("base"), &file, Durability::OnDisk)?;
        self.commits += 1;
        self.known = Some((identity, epoch));
        self.intents = intents;
        Ok(())
    }

    /// Remove all that is known in `folder`, as when the copy is gone.
    pub fn remove(folder: &Path) -> io::Result<()> {
        for name in ["base", "intents", "index"] {
            match fs::remove_file(folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }
}

fn undamaged<T>(read: io::Result<Option<T>>) -> io::Result<Option<T>> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        read => read,
    }
}
