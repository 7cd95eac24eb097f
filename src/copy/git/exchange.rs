//! One exchange: look, decide, carry, apply, and keep what is common now.

use std::collections::BTreeSet;
use std::sync::Arc;

use boxery_remote::Way;
use boxery_sync::{Digest, Direction, Side};

use super::apply::{self, Outcome};
use super::base::{self, Base, Kept};
use super::carry::{self, CarryError, Ends};
use super::decide::{Checkout, Choice, Decision, History, Sides, decide};
use super::look::{self, Looked, Repository, git};
use super::names::{Oid, RefName, Shelf, set};
use super::orders::ToVm;
use super::report::GitReport;
use super::tell::{locked, tell_moved};
use crate::app::App;
use crate::config::GitRule;
use crate::copy::pair::Pair;
use crate::error::Failure;
use crate::random;

/// How often an exchange begins again because something moved under its hands.
const ATTEMPTS: usize = 4;
/// Everything that a repository knows of other remotes travels, up to so many.
const MOST_REMOTE: usize = 5000;

/// How an exchange goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GitOptions {
    /// Which way things may move.
    pub(crate) direction: Direction,
    /// Change nothing, and say what would be done.
    pub(crate) dry_run: bool,
}

impl Default for GitOptions {
    fn default() -> Self {
        Self {
            direction: Direction::TwoWay,
            dry_run: false,
        }
    }
}

/// Bring the repository of the project and that of its copy to the same point.
///
/// Only the laptop's own trouble and a VM that can't be reached are failures; whatever
/// git minds is a note, since the files are the same without it.
pub(crate) async fn exchange(
    app: &App,
    pair: &Arc<Pair>,
    way: &Way,
    options: GitOptions,
) -> Result<GitReport, Failure> {
    let (vm, map) = (&pair.vm, &pair.map);
    if app.config()?.sync.git == GitRule::Off {
        return Ok(GitReport::default());
    }
    if map.project.join(".git").symlink_metadata().is_err() {
        return Ok(GitReport::default());
    }
    pair.make_state()?;
    let kept = Kept::open(pair.state()).await?;
    let mut base = kept.read()?;
    let before = base.clone();
    let work = Work {
        app,
        kept,
        pair,
        ends: Ends {
            project: &map.project,
            way,
            vm,
            copy: map.folder.as_str(),
        },
        options,
    };
    let mut report = None;
    for _ in 0..ATTEMPTS {
        report = work.once(&mut base).await?;
        if report.is_some() {
            break;
        }
    }
    let mut report = report.unwrap_or_else(|| {
        GitReport::note(format!(
            "git: branches kept moving here or on {vm}; the next sync tries again"
        ))
    });
    report.new_notes = report
        .notes
        .iter()
        .filter(|note| !base.said.contains(*note))
        .cloned()
        .collect();
    base.said = report.notes.iter().cloned().collect();
    if base != before && !options.dry_run {
        work.kept.write(&base)?;
    }
    Ok(report)
}

/// What an exchange is about.
pub(super) struct Work<'a> {
    /// Where things are.
    pub(super) app: &'a App,
    /// The last common state.
    kept: Kept,
    /// The project and its copy.
    pub(super) pair: &'a Arc<Pair>,
    /// The same, as a transfer takes it.
    pub(super) ends: Ends<'a>,
    /// How it goes.
    options: GitOptions,
}

impl Work<'_> {
    /// Try it once; `None` is that something moved meanwhile.
    async fn once(&self, base: &mut Base) -> Result<Option<GitReport>, Failure> {
        let vm = self.ends.vm;
        let (laptop, found) = tokio::try_join!(
            look::laptop(self.ends.project),
            self.look_at_vm(base.number)
        )?;
        let only = |what: &str| {
            Ok(Some(GitReport::note(format!(
                "git: only files move: {what}"
            ))))
        };
        let laptop = match laptop {
            Looked::Found(laptop) if laptop.partial => {
                return only("this is a partial clone, whose missing objects would be fetched");
            }
            Looked::Found(laptop) => laptop,
            Looked::Nothing => return Ok(Some(GitReport::default())),
            Looked::NoGit => return only("git is not installed here"),
            Looked::Odd(what) => return only(&format!("the project's repository: {what}")),
        };
        if base.cleared != laptop.index || laptop.index.is_none() {
            if let Some(path) = self.withheld().await? {
                return only(&format!(
                    "the policy keeps {path} from {vm}, and the repository holds it"
                ));
            }
            base.cleared.clone_from(&laptop.index);
        }
        let exclude = self.exclude(&laptop);
        let told = Digest::of(format!("{exclude}\0{:?}", laptop.settings).as_bytes()).to_string();
        let mut there = match found {
            Looked::Found(there) => Some(there),
            Looked::Nothing => None,
            Looked::NoGit => return only(&format!("git is not installed on {vm}")),
            Looked::Odd(what) => return only(&format!("the copy on {vm}: {what}")),
        };
        let is_ours = there.as_ref().is_some_and(|there| there.id.is_some());
        if self.options.dry_run && !is_ours {
            return Ok(Some(GitReport {
                notes: vec![format!("git: the copy on {vm} gets a repository")],
                ..GitReport::default()
            }));
        }
        let made = there.is_none();
        if !is_ours || (base.told != told && !self.options.dry_run) {
            let id = there.as_ref().and_then(|there| there.id.clone());
            let (id, number) = match id {
                Some(known) => known,
                None => (random::hex()?, base.number),
            };
            if let Some(why) = self.make(&laptop, &exclude, &id, number).await? {
                return only(&why);
            }
            base.told = told;
            there = match self.look_at_vm(number).await? {
                Looked::Found(there) => Some(there),
                Looked::Nothing | Looked::NoGit | Looked::Odd(_) => return Ok(None),
            };
        }
        let Some(there) = there else { return Ok(None) };
        if laptop.format != there.format {
            return only(&format!(
                "this repository's objects are {}, those on {vm} {}",
                laptop.format, there.format
            ));
        }
        let Some((id, number)) = there.id.clone() else {
            return Ok(None);
        };
        // As it was left, or at most one exchange ago, which may have been cut off
        // before it was kept.
        if made && is_blank(&there) {
            // What is in a new repository nobody put there; on disk before it gets anything.
            *base = Base {
                id: id.clone(),
                number,
                checkout: there.index.clone().map(|index| base::Checkout {
                    head: there.head.clone(),
                    at: None,
                    index,
                }),
                told: std::mem::take(&mut base.told),
                cleared: base.cleared.take(),
                ..Base::default()
            };
            self.kept.write(base)?;
        }
        let is_known = base.id == id && (number == base.number || number + 1 == base.number);
        if !is_known {
            *base = Base {
                number: base.number.max(number) + 1,
                told: std::mem::take(&mut base.told),
                said: std::mem::take(&mut base.said),
                cleared: base.cleared.take(),
                ..Base::default()
            };
        }
        self.between(base, is_known, id, laptop, there).await
    }

    async fn look_at_vm(&self, number: u64) -> Result<Looked, Failure> {
        let Ends { way, vm, copy, .. } = self.ends;
        look::vm(way, vm, copy, &self.pair.marker, number).await
    }

    /// Decide and do it, between two repositories that can be compared.
    async fn between(
        &self,
        base: &mut Base,
        is_known: bool,
        id: String,
        laptop: Box<Repository>,
        there: Box<Repository>,
    ) -> Result<Option<GitReport>, Failure> {
        let mut laptop = *laptop;
        let there = *there;
        let shelf = Shelf::new(self.ends.vm.as_str(), laptop.worktree.as_deref());
        if laptop.refs.keys().filter(|name| name.is_remote()).count() > MOST_REMOTE {
            laptop.refs.retain(|name, _| !name.is_remote());
        }
        let known = base.clone();
        let sides = Sides {
            base: is_known.then_some(&known),
            laptop: &laptop,
            vm: &there,
            direction: self.options.direction,
        };
        let mut history = History::default();
        let mut decision = decide(sides, &history);
        let mut report = GitReport::default();
        let asked = history.asked();
        if self.options.dry_run {
            self.foresee(&decision, &laptop, &there, &shelf, &mut report);
            return Ok(Some(report));
        }
        let mut fetched = BTreeSet::new();
        if let Err(error) = self
            .fetch(&decision, &laptop, &there, &shelf, &mut fetched)
            .await
        {
            return self.refused(error, &mut report).map(|()| Some(report));
        }
        if !asked.is_empty() {
            for (new, old) in asked {
                let words = ["merge-base", "--is-ancestor", old.as_str(), new.as_str()];
                let holds = git(self.ends.project, &words).await?.status.success();
                history.learn((new, old), holds);
            }
            decision = decide(sides, &history);
            let more = self.fetch(&decision, &laptop, &there, &shelf, &mut fetched);
            if let Err(error) = more.await {
                return self.refused(error, &mut report).map(|()| Some(report));
            }
        }

        // To the VM.
        let (mut laptop_now, mut vm_now) = (laptop.clone(), there.clone());
        let to_vm = ToVm::plan(&decision, &laptop, &there);
        let pushed = match to_vm.push(self.ends).await {
            Ok(()) => true,
            Err(CarryError::Moved) => return Ok(None),
            Err(error) => {
                self.refused(error, &mut report)?;
                false
            }
        };
        let mut is_checked_out = pushed && decision.checkout == Checkout::To(Side::Vm);
        if pushed {
            for (name, choice) in &decision.refs {
                if *choice == Choice::To(Side::Vm) {
                    set(&mut vm_now.refs, name, laptop.refs.get(name));
                }
            }
            if !to_vm.orders.is_empty() {
                match apply::vm(self.ends, &to_vm.orders).await? {
                    Outcome::Done => {}
                    Outcome::Moved => return Ok(None),
                    Outcome::Locked => {
                        is_checked_out = false;
                        report.notes.push(locked(self.ends.vm.as_str()));
                    }
                    Outcome::Refused(why) => {
                        is_checked_out = false;
                        report
                            .notes
                            .push(format!("git: {} can't move HEAD: {why}", self.ends.vm));
                    }
                }
            }
            if is_checked_out {
                vm_now.head = laptop.head.clone();
                vm_now.index.clone_from(&laptop.index);
            }
            vm_now.at = at(&vm_now);
        }

        // To the laptop.
        let to_laptop = self
            .to_laptop(&decision, &laptop, &there, &shelf, &mut report)
            .await?;
        let applied = if to_laptop.is_empty() {
            Outcome::Done
        } else {
            apply::laptop(self.ends, &to_laptop).await?
        };
        match applied {
            Outcome::Done => {
                for (name, choice) in &decision.refs {
                    if *choice == Choice::To(Side::Laptop) {
                        set(&mut laptop_now.refs, name, there.refs.get(name));
                    }
                }
                if decision.checkout == Checkout::To(Side::Laptop) {
                    report.laptop_index = laptop.index != there.index;
                    laptop_now.head = there.head.clone();
                    laptop_now.index.clone_from(&there.index);
                }
                laptop_now.at = at(&laptop_now);
            }
            Outcome::Moved => return Ok(None),
            Outcome::Locked => report.notes.push(locked("the laptop")),
            Outcome::Refused(why) => report
                .notes
                .push(format!("git: the laptop's branches can't be moved: {why}")),
        }
        tell_moved(&laptop, &laptop_now, Side::Laptop, &mut report);
        tell_moved(&there, &vm_now, Side::Vm, &mut report);
        self.tell_apart(&decision, &there, &shelf, &mut report);
        keep(base, id, &laptop_now, &vm_now);
        base.number += u64::from(!report.moved.is_empty());
        Ok(Some(report))
    }

    /// Fetch what the laptop is going to need and hasn't.
    async fn fetch(
        &self,
        decision: &Decision,
        laptop: &Repository,
        there: &Repository,
        shelf: &Shelf,
        fetched: &mut BTreeSet<(String, String)>,
    ) -> Result<(), CarryError> {
        let mut wanted = Vec::new();
        for (name, choice) in &decision.refs {
            let comes = match choice {
                Choice::To(Side::Laptop) | Choice::Held(Side::Laptop, _) | Choice::Conflict => true,
                Choice::To(Side::Vm) | Choice::Held(Side::Vm, _) => false,
            };
            let Some(value) = there.refs.get(name).filter(|_| comes) else {
                continue;
            };
            let place = shelf.place(name);
            let here = RefName::parse(&place).and_then(|place| laptop.refs.get(&place));
            if here != Some(value) {
                wanted.push((name.to_string(), place));
            }
        }
        if decision.checkout == Checkout::To(Side::Laptop) {
            if there.head.branch().is_none() {
                wanted.push(("HEAD".to_owned(), shelf.other("HEAD")));
            }
            if there.staged.is_some() {
                wanted.push(("refs/boxery/index".to_owned(), shelf.other("index")));
            }
        }
        wanted.retain(|one| fetched.insert(one.clone()));
        if wanted.is_empty() {
            return Ok(());
        }
        carry::fetch(self.ends, &wanted).await
    }

    /// A transfer that git refused is a note, one that the VM's connection refused a failure.
    fn refused(&self, error: CarryError, report: &mut GitReport) -> Result<(), Failure> {
        match error {
            CarryError::Reach(failure) => Err(failure),
            CarryError::Moved => {
                report.notes.push(format!(
                    "git: branches moved on {} meanwhile; the next sync tries again",
                    self.ends.vm
                ));
                Ok(())
            }
            why @ (CarryError::Partly | CarryError::Refused(_)) => {
                report.notes.push(format!("git: nothing moved: {why}"));
                Ok(())
            }
        }
    }
}

/// Whether nothing was ever done in it.
fn is_blank(repository: &Repository) -> bool {
    repository.refs.is_empty() && repository.at.is_none() && repository.staged.is_none()
}

/// The commit at HEAD.
fn at(repository: &Repository) -> Option<Oid> {
    match &repository.head {
        look::Head::Branch(branch) => repository.refs.get(branch).cloned(),
        look::Head::Detached(oid) => Some(oid.clone()),
    }
}

/// Keep what is common now; where the two differ, what was common stays.
fn keep(base: &mut Base, id: String, laptop: &Repository, vm: &Repository) {
    base.id = id;
    let mut names: BTreeSet<RefName> = laptop.refs.keys().chain(vm.refs.keys()).cloned().collect();
    names.extend(base.refs.keys().cloned());
    for name in names {
        if !(name.is_shared() || name.is_remote()) {
            continue;
        }
        let (here, there) = (laptop.refs.get(&name), vm.refs.get(&name));
        if here == there {
            set(&mut base.refs, &name, here);
        }
    }
    if let (Some(index), true) = (
        &laptop.index,
        laptop.head == vm.head && laptop.at == vm.at && laptop.index == vm.index,
    ) {
        base.checkout = Some(base::Checkout {
            head: laptop.head.clone(),
            at: laptop.at.clone(),
            index: index.clone(),
        });
    }
}
