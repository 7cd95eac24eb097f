//! What is done with the copy before and after a command on the VM.

use std::sync::Arc;

use boxery_pin::{DriftRule, PathMap, VmName};
use boxery_remote::Way;
use boxery_sync::talk::Report;
use boxery_sync::{EntryPath, Side, Tree};

use super::changes::{items, open_ends, some_of};
use super::drift::Drift;
use super::engine::{look_at, synchronise};
use super::git::{GitOptions, exchange};
use super::pair::{Creation, Pair, Wish};
use super::show::Show;
use crate::app::App;
use crate::error::Failure;

/// A project larger than this isn't sent by itself, 500 MB.
pub(crate) const LARGE: u64 = 500_000_000;

/// A command's project and copy.
pub(crate) struct Around<'a> {
    app: &'a App,
    vm: VmName,
    /// Why nothing can be told of them, or both.
    pair: Result<Arc<Pair>, Failure>,
    rule: DriftRule,
    show: Show,
    /// The project as it was before the command; `None` where that isn't known.
    project: Option<Tree>,
    /// What was told to differ before it.
    told: Vec<(EntryPath, String)>,
}

impl<'a> Around<'a> {
    /// What `rule` wants done around a command in the copy of `map` on `vm`.
    pub(crate) fn new(
        app: &'a App,
        vm: &VmName,
        map: &PathMap,
        rule: DriftRule,
        show: Show,
    ) -> Option<Self> {
        (rule != DriftRule::Off).then(|| Self {
            app,
            vm: vm.clone(),
            pair: Pair::new(app, vm, map).map(Arc::new),
            rule,
            show,
            project: None,
            told: Vec::new(),
        })
    }

    /// Before the command's first byte: what is told of the copy, or why the command
    /// isn't started.
    pub(crate) async fn before(&mut self, way: &Way) -> Result<Vec<String>, Failure> {
        let done = match self.rule {
            DriftRule::Off => return Ok(Vec::new()),
            DriftRule::Warn | DriftRule::Deny => self.look(way).await,
            DriftRule::Sync => self.push(way).await,
        };
        let notes = match done {
            Ok(notes) => notes,
            Err(failure) if self.rule == DriftRule::Sync => vec![format!(
                "the copy on {} isn't up to date: {}",
                self.vm,
                failure.one_line()
            )],
            Err(failure) => vec![format!(
                "can't tell whether the copy on {} is the project as it is now: {}",
                self.vm,
                failure.one_line()
            )],
        };
        match (self.rule, notes.first()) {
            (DriftRule::Deny, Some(first)) => {
                Err(Failure::from(format!("the command was not run: {first}"))
                    .hint(format!("`boxery sync {}` makes both the same", self.vm)))
            }
            _ => Ok(notes),
        }
    }

    async fn look(&mut self, way: &Way) -> Result<Vec<String>, Failure> {
        let pair = self.pair()?;
        let report = look_at(self.app, &pair, way, &Wish::default()).await?;
        let drift = Drift::of(&report);
        let mut notes = Vec::new();
        if !drift.is_empty() {
            notes.push(drift.summary(&self.vm));
        }
        notes.extend(unsettled(&report));
        self.project = Some(report.project);
        Ok(notes)
    }

    async fn push(&mut self, way: &Way) -> Result<Vec<String>, Failure> {
        let report = self.make_same(way, Creation::UpTo(LARGE)).await?;
        let mut notes = self.notes(&report);
        notes.extend(self.exchange(way).await);
        self.project = Some(report.project);
        Ok(notes)
    }

    /// After the command's last byte: what it wrote is brought back where that is wanted,
    /// and what went wrong is told. Nothing here changes how the command ended.
    pub(crate) async fn after(&mut self, way: &Way) -> Vec<String> {
        let Some(project) = self.project.take() else {
            return Vec::new();
        };
        let done = match self.rule {
            DriftRule::Off => return Vec::new(),
            DriftRule::Warn | DriftRule::Deny => self.look_back(project).await,
            DriftRule::Sync => self.pull(way).await,
        };
        done.unwrap_or_else(|failure| {
            vec![format!(
                "what the command wrote may not be here yet: {}",
                failure.one_line()
            )]
        })
    }

    async fn look_back(&self, before: Tree) -> Result<Vec<String>, Failure> {
        let pair = self.pair()?;
        let changed = tokio::task::spawn_blocking(move || pair.changed_since(&before)).await??;
        Ok(meanwhile(&changed).into_iter().collect())
    }

    async fn pull(&mut self, way: &Way) -> Result<Vec<String>, Failure> {
        let report = self.make_same(way, Creation::Refused).await?;
        let sent = items(&report, Side::Vm).into_iter().map(|item| item.path);
        let sent: Vec<EntryPath> = sent.collect();
        let mut notes: Vec<String> = meanwhile(&sent).into_iter().collect();
        notes.extend(self.notes(&report));
        notes.extend(self.exchange(way).await);
        Ok(notes)
    }

    /// The repository, and what is to be told of it. A branch that comes back can have
    /// files that only count now.
    async fn exchange(&mut self, way: &Way) -> Vec<String> {
        let exchanged = match self.pair() {
            Ok(pair) => exchange(self.app, &pair, way, GitOptions::default()).await,
            Err(failure) => Err(failure),
        };
        let report = match exchanged {
            Ok(report) => report,
            Err(failure) => return vec![format!("git: nothing moved: {}", failure.one_line())],
        };
        let mut notes: Vec<String> = report.conflicts.clone();
        notes.extend(report.new_notes);
        if report.laptop_index {
            match self.make_same(way, Creation::Refused).await {
                Ok(report) => notes.extend(self.notes(&report)),
                Err(failure) => notes.push(failure.one_line()),
            }
        }
        notes
    }

    async fn make_same(&self, way: &Way, making: Creation) -> Result<Report, Failure> {
        let pair = self.pair()?;
        let wish = Wish {
            making,
            ..Wish::default()
        };
        let ended = synchronise(self.app, &pair, way, &wish, self.show.tell(self.app.ui)).await;
        if self.show == Show::Bar {
            self.app.ui.progress(None);
        }
        ended
    }

    /// What stays different and wasn't told yet.
    fn notes(&mut self, report: &Report) -> Vec<String> {
        let ends = open_ends(report, self.vm.as_str());
        let new: Vec<String> = ends
            .iter()
            .filter(|end| !self.told.contains(end))
            .map(|(path, why)| format!("{path} ({why})"))
            .collect();
        self.told.extend(ends);
        let mut notes = Vec::new();
        if !new.is_empty() {
            notes.push(format!(
                "not the same on {} and here: {}; `boxery sync {}` tells more",
                self.vm,
                some_of(&new),
                self.vm
            ));
        }
        notes.extend(unsettled(report));
        for (side, place) in &report.kept {
            let side = match side {
                Side::Laptop => "here",
                Side::Vm => self.vm.as_str(),
            };
            notes.push(format!(
                "a sync that broke off left a file that nobody knows, kept on {side} as `{place}`"
            ));
        }
        notes
    }

    fn pair(&self) -> Result<Arc<Pair>, Failure> {
        match &self.pair {
            Ok(pair) => Ok(Arc::clone(pair)),
            Err(failure) => Err(Failure::from(failure.one_line())),
        }
    }
}

fn unsettled(report: &Report) -> Option<String> {
    (!report.unsettled.is_empty())
        .then(|| format!("changed while it was read: {}", some_of(&report.unsettled)))
}

fn meanwhile(changed: &[EntryPath]) -> Option<String> {
    (!changed.is_empty()).then(|| {
        format!(
            "the project changed here while the command ran: {}",
            some_of(changed)
        )
    })
}
