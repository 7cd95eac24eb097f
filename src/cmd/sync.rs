//! `boxery sync`.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use boxery_pin::VmName;
use boxery_sync::talk::Report;
use boxery_sync::{Direction, EntryPath, Side, Take};
use serde_json::json;

use crate::app::App;
use crate::cmd::drift::target;
use crate::cmd::run::cancelled;
use crate::copy::{
    Creation, GitOptions, GitReport, Happened, Moved, Pair, Show, Wish, exchange, items, keep_same,
    look_at, make_all_same, moved, open_ends, size,
};
use crate::env;
use crate::error::Failure;
use crate::exit::Exit;
use crate::inside::Inside;
use crate::reach;
use crate::ui::counted;

/// Make this project and its copy on a VM the same
///
/// What changed on one side goes to the other; what changed on both stays as it is on
/// each and is named, until `--take` ends it. What isn't there yet is sent. Every change
/// is told as git does: `>` goes to the VM, `<` comes here, A added, M modified,
/// D deleted, R renamed, T of another type; `!` stays different. A sync that breaks off is
/// completed by the next one. Exit status: 0 the same now, 1 something stays different.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The VM; the pinned one by default
    #[arg(value_name = "NAME")]
    vm: Option<VmName>,
    /// Keep both the same until this is ended with Ctrl-C
    #[arg(long, conflicts_with_all = ["dry_run", "take", "allow_deletes"])]
    watch: bool,
    /// Tell what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Only send: what changed on the VM stays there
    #[arg(long, conflicts_with = "two_way")]
    mirror: bool,
    /// Send and take, which is what happens by default
    #[arg(long)]
    two_way: bool,
    /// End a conflict: the version of `laptop` or `vm` stands for PATH and all below it;
    /// may be given again
    #[arg(long, num_args = 2, value_names = ["laptop|vm", "PATH"])]
    take: Vec<String>,
    /// Delete up to so many files of this project, because they are gone on the VM
    #[arg(long, value_name = "N")]
    allow_deletes: Option<usize>,
    /// Print JSON lines: how far it is, every change, and how it ended
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    refuse_answers(args, app)?;
    let (vm, map) = target(app, args.vm.as_ref())?;
    let config = app.config()?;
    let wish = Wish {
        direction: if args.mirror {
            Direction::Mirror
        } else {
            Direction::TwoWay
        },
        takes: takes(&args.take, map.project.as_std_path())?,
        allowed: args.allow_deletes.unwrap_or(0),
        making: Creation::Asked,
    };
    let pair = Arc::new(Pair::new(app, &vm, &map)?);
    let show = Show::of(app.ui, args.json);
    let report = reach::block_on(async {
        let way = reach::open(app, &vm, config.vm(&vm)?).await?;
        let options = GitOptions {
            direction: wish.direction,
            dry_run: args.dry_run,
        };
        if args.watch {
            let mut teller = Teller::new(app, args, &pair);
            let tell = |happened| teller.tell(happened);
            tokio::select! {
                never = keep_same(app, &pair, &way, &wish, show, tell) => match never {},
                _ = cancelled() => return Ok(None),
            }
        }
        if args.dry_run {
            let found = look_at(app, &pair, &way, &wish).await?;
            let repository = exchange(app, &pair, &way, options).await?;
            return Ok(Some((found, repository)));
        }
        let ended = make_all_same(app, &pair, &way, &wish, show).await;
        ended.map(Some)
    })??;
    let Some((report, repository)) = report else {
        return Ok(Exit::Done);
    };
    let exit = if args.json {
        as_json(app, args, &pair, &report, &repository)
    } else {
        tell(app, args, &pair, &report, &repository)
    };
    Ok(
        if exit == Exit::Done && !args.dry_run && !repository.is_settled() {
            Exit::No
        } else {
            exit
        },
    )
}

/// Tells what happens under `--watch`: what goes on is told once.
struct Teller<'a> {
    app: &'a App,
    args: &'a Args,
    pair: &'a Pair,
    /// Whether a sync was told.
    began: bool,
    ends: Vec<(EntryPath, String)>,
    /// Of the repository.
    said: Vec<String>,
    failure: Option<String>,
}

impl<'a> Teller<'a> {
    fn new(app: &'a App, args: &'a Args, pair: &'a Pair) -> Self {
        Self {
            app,
            args,
            pair,
            began: false,
            ends: Vec::new(),
            said: Vec::new(),
            failure: None,
        }
    }

    fn tell(&mut self, happened: Happened) {
        match happened {
            Happened::Synced(both) => self.synced(&both.0, &both.1),
            Happened::Failed(failure) => {
                let text = failure.one_line();
                if self.failure.as_ref() != Some(&text) {
                    self.say(&format!("not the same: {text}"));
                    self.failure = Some(text);
                }
            }
            Happened::Blind(why) => self.say(&format!(
                "changes can't be watched, so both sides are compared every few seconds ({why})"
            )),
        }
    }

    fn synced(&mut self, report: &Report, repository: &GitReport) {
        let is_back = self.failure.take().is_some();
        let ends = open_ends(report, self.pair.vm.as_str());
        let said = [&repository.conflicts[..], &repository.notes[..]].concat();
        let nothing_moved = [Side::Vm, Side::Laptop]
            .iter()
            .all(|side| items(report, *side).is_empty());
        let is_as_before = ends == self.ends
            && report.kept.is_empty()
            && said == self.said
            && repository.moved.is_empty();
        if self.began && !is_back && nothing_moved && is_as_before {
            return;
        }
        if self.args.json {
            as_json(self.app, self.args, self.pair, report, repository);
        } else {
            tell(self.app, self.args, self.pair, report, repository);
        }
        (self.began, self.ends, self.said) = (true, ends, said);
    }

    fn say(&self, text: &str) {
        if self.args.json {
            self.app.ui.line(json!({"event": "note", "text": text}));
        } else {
            self.app.ui.say(text);
        }
    }
}

/// What answers a guard is for a person at a terminal.
fn refuse_answers(args: &Args, app: &App) -> Result<(), Failure> {
    let answer = match (args.take.is_empty(), args.allow_deletes) {
        (false, _) => "--take",
        (true, Some(_)) => "--allow-deletes",
        (true, None) => return Ok(()),
    };
    if let Some(inside) = Inside::look() {
        return Err(Failure::from(format!(
            "this is a shell of {}, and an agent can't give `{answer}`",
            inside.agent
        ))
        .hint("the user can, in a terminal of their own")
        .exit(Exit::No));
    }
    if !app.ui.has_terminal() {
        return Err(
            Failure::from(format!("nobody is at a terminal to give `{answer}`"))
                .hint("run it in a terminal")
                .exit(Exit::No),
        );
    }
    Ok(())
}

/// The pairs of side and path, which begin at the current folder.
fn takes(words: &[String], project: &Path) -> Result<Vec<Take>, Failure> {
    let here = env::current_folder()?;
    let here = here.canonicalize_utf8()?;
    let mut takes = Vec::new();
    for pair in words.chunks_exact(2) {
        let (side, path) = (&pair[0], &pair[1]);
        let side = match side.as_str() {
            "laptop" => Side::Laptop,
            "vm" => Side::Vm,
            other => {
                return Err(Failure::usage(format!("`{other}` is no side"))
                    .hint("the form is `--take laptop PATH` or `--take vm PATH`"));
            }
        };
        let mut whole = PathBuf::new();
        for part in here.as_std_path().join(path).components() {
            match part {
                Component::ParentDir => drop(whole.pop()),
                Component::CurDir => {}
                part => whole.push(part),
            }
        }
        let Ok(inside) = whole.strip_prefix(project) else {
            return Err(Failure::usage(format!(
                "`{path}` is not inside the project `{}`",
                project.display()
            )));
        };
        takes.push(Take {
            side,
            path: EntryPath::parse(inside.as_os_str().as_bytes()),
        });
    }
    Ok(takes)
}

fn exit(args: &Args, report: &Report) -> Exit {
    let is_whole = report.is_same() && report.guard.is_none();
    match (args.dry_run, is_whole) {
        (false, false) => Exit::No,
        (true, _) | (false, true) => Exit::Done,
    }
}

/// More changes than this of a first copy are a count.
fn is_first(report: &Report) -> bool {
    report.standing != boxery_sync::Standing::Known
}

fn tell(app: &App, args: &Args, pair: &Pair, report: &Report, repository: &GitReport) -> Exit {
    let vm = &pair.vm;
    for side in [Side::Vm, Side::Laptop] {
        // All of a first copy is new.
        if side == Side::Laptop || !is_first(report) || args.dry_run {
            for item in items(report, side) {
                app.ui.line(item);
            }
        }
    }
    let ends = open_ends(report, vm.as_str());
    for (path, why) in &ends {
        app.ui.line(format_args!("! {path}: {why}"));
    }
    for line in repository.lines(vm).iter().chain(&repository.conflicts) {
        app.ui.line(line);
    }
    for note in &repository.notes {
        app.ui.say(note);
    }
    for path in &report.unsettled {
        app.ui
            .say(format_args!("changed while it was read: {path}"));
    }
    for path in &report.skipped {
        app.ui
            .say(format_args!("stays here, since it is no file: {path}"));
    }
    for (side, place) in &report.kept {
        let side = match side {
            Side::Laptop => "here",
            Side::Vm => vm.as_str(),
        };
        app.ui.say(format_args!(
            "a sync that broke off left a file that nobody knows; it is kept on {side} as `{place}`"
        ));
    }
    if let Some(guard) = &report.guard {
        app.ui
            .say(format_args!("a sync would be held back: {guard}"));
    }
    if !ends.is_empty() {
        app.ui.say(format_args!(
            "{} different; `boxery sync {vm} --take laptop PATH` or `--take vm PATH` ends it",
            stays(ends.len())
        ));
    }
    app.ui.say(summary(args, pair, report));
    exit(args, report)
}

fn stays(count: usize) -> String {
    let verb = if count == 1 { "stays" } else { "stay" };
    format!("{} {verb}", counted(count, "path"))
}

/// The last line.
fn summary(args: &Args, pair: &Pair, report: &Report) -> String {
    let vm = &pair.vm;
    let (sent, taken) = (moved(report, Side::Vm), moved(report, Side::Laptop));
    let of = |moved: Moved| {
        let text = format!("{}, {}", counted(moved.files, "file"), size(moved.bytes));
        match moved.deleted {
            0 => text,
            deleted => format!("{text}, {deleted} deleted"),
        }
    };
    let both = match (sent == Moved::default(), taken == Moved::default()) {
        (true, true) if report.is_same() => {
            return format!(
                "the copy on {vm} is the same as the project ({})",
                counted(report.project.files(), "file")
            );
        }
        (true, true) => "nothing was moved".to_owned(),
        (false, true) => format!("sent {} to `{}` on {vm}", of(sent), pair.map.folder),
        (true, false) => format!("took {} from {vm}", of(taken)),
        (false, false) => format!(
            "sent {} to `{}` on {vm}, took {}",
            of(sent),
            pair.map.folder,
            of(taken)
        ),
    };
    if args.dry_run {
        return "nothing was changed".to_owned();
    }
    both
}

fn as_json(app: &App, args: &Args, pair: &Pair, report: &Report, repository: &GitReport) -> Exit {
    for side in [Side::Vm, Side::Laptop] {
        for item in items(report, side) {
            app.ui.line(item.to_json());
        }
    }
    for (path, why) in open_ends(report, pair.vm.as_str()) {
        app.ui
            .line(json!({"event": "open", "path": path.to_string(), "why": why}));
    }
    if *repository != GitReport::default() {
        app.ui.line(json!({
            "event": "git", "moved": repository.moved, "conflicts": repository.conflicts,
            "notes": repository.notes,
        }));
    }
    let exit = exit(args, report);
    let of = |side| {
        let Moved {
            files,
            bytes,
            deleted,
        } = moved(report, side);
        json!({"files": files, "bytes": bytes, "deleted": deleted})
    };
    let texts =
        |paths: &[EntryPath]| -> Vec<String> { paths.iter().map(ToString::to_string).collect() };
    let kept: Vec<_> = report
        .kept
        .iter()
        .map(|(side, place)| {
            let side = match side {
                Side::Laptop => "laptop",
                Side::Vm => "vm",
            };
            json!({"side": side, "path": place})
        })
        .collect();
    app.ui.line(json!({
        "event": "done", "vm": pair.vm, "project": pair.map.project, "copy": pair.map.copy,
        "same": report.is_same(), "dry_run": args.dry_run, "files": report.project.files(),
        "sent": of(Side::Vm), "taken": of(Side::Laptop),
        "unsettled": texts(&report.unsettled), "skipped": texts(&report.skipped), "kept": kept,
        "withheld": texts(&report.plan.withheld),
        "guard": report.guard.as_ref().map(ToString::to_string),
    }));
    exit
}
