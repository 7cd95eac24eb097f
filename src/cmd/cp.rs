//! `boxery cp`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use boxery_pin::{PathMap, RemotePath, VmName};
use boxery_remote::copy::{Copied, Journey, Progress, Refuse, copy};
use boxery_remote::{Cancel, RunExit, Way};
use serde_json::json;

use crate::app::App;
use crate::cmd::run::cancelled;
use crate::copy::{has_copy, size};
use crate::error::Failure;
use crate::exit::Exit;
use crate::hook::protected_for;
use crate::inside::Inside;
use crate::place::{self, Here};
use crate::reach;
use crate::ui::{Ui, counted};

/// Copy files from or to a VM
///
/// One side is NAME:PATH. There a relative PATH begins at the copy of the current
/// project if the VM has one, else at the home folder, as `NAME:~/PATH` always does;
/// `NAME:` alone is that folder. Folders go with all that is in them, into a folder that
/// is there under their own name, as `cp -r` does it; `SRC/.` is what is in SRC. Links
/// are copied as links, permissions and times are kept. A file has its name only when it
/// is whole; after a broken connection or Ctrl-C the same command goes on where it was.
///
/// Exit status: 0 everything is in place, 1 something was left out or was changed while
/// it was read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to copy
    #[arg(value_name = "SRC")]
    from: OsString,
    /// Where to
    #[arg(value_name = "DST")]
    to: OsString,
    /// Print JSON lines: how far it is, what was left out, and how it ended
    #[arg(long)]
    json: bool,
}

/// One side.
enum Side {
    Laptop(PathBuf),
    Vm(VmName, OsString),
}

impl Side {
    /// A side is on a VM when a `:` stands before the first `/`, as for `scp`.
    fn parse(text: &OsStr) -> Result<Self, Failure> {
        let bytes = text.as_bytes();
        let name = bytes.split(|byte| *byte == b'/').next().unwrap_or_default();
        let Some(colon) = name.iter().position(|byte| *byte == b':') else {
            return if bytes.is_empty() {
                Err(Failure::usage("a side of the copy is empty"))
            } else {
                Ok(Self::Laptop(PathBuf::from(text)))
            };
        };
        let name = String::from_utf8_lossy(&bytes[..colon]);
        let vm = name.parse::<VmName>().map_err(|error| {
            Failure::usage(error.to_string()).hint(format!(
                "write a file of this laptop with a `:` in its name as `./{}`",
                text.to_string_lossy()
            ))
        })?;
        let path = OsString::from_vec(bytes[colon + 1..].to_vec());
        Ok(Self::Vm(vm, path))
    }
}

/// A copy whose VM is known.
struct Plan {
    vm: VmName,
    local: PathBuf,
    remote: OsString,
    direction: Direction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let plan = match (Side::parse(&args.from)?, Side::parse(&args.to)?) {
        (Side::Laptop(local), Side::Vm(vm, remote)) => Plan {
            vm,
            local,
            remote,
            direction: Direction::Up,
        },
        (Side::Vm(vm, remote), Side::Laptop(local)) => Plan {
            vm,
            local,
            remote,
            direction: Direction::Down,
        },
        (Side::Laptop(_), Side::Laptop(_)) => {
            return Err(Failure::usage("both sides are on this laptop")
                .hint("write one of them as NAME:PATH; `cp` copies on the laptop"));
        }
        (Side::Vm(from, _), Side::Vm(to, _)) => {
            return Err(Failure::usage("both sides are on VMs").hint(if from == to {
                format!("`boxery run {from} -- cp -r SRC DST` copies there")
            } else {
                "copy to this laptop first, then from it".to_owned()
            }));
        }
    };
    let config = app.config()?;
    let vm = config.vm(&plan.vm)?;
    let here = Here::look(app)?;
    let pinned = here.pin.as_ref().is_some_and(|pin| pin.vm == plan.vm);
    let root = here.project_root(pinned)?;
    let inside = Inside::look();
    // What is no repository is a project where it was sent from.
    let map = place::path_map(app, vm, root.as_ref().unwrap_or(&here.folder))?;
    if inside.is_some() && here.pin.is_some() {
        keep_inside(&plan, &here, &map)?;
    }
    let guarded = inside.is_some() || (here.pin.is_some() && !app.ui.has_terminal());
    let refuse: Refuse = if guarded && plan.direction == Direction::Down {
        let agent = inside.as_ref().map(|inside| &inside.agent);
        let protected = protected_for(app, agent, &here.folder, root.as_deref());
        let folder = here.folder.clone();
        Arc::new(move |path| {
            let what = protected.check(&path.to_string_lossy(), Some(&folder))?;
            Some(format!("it is {what}, which only a person may copy here"))
        })
    } else {
        Arc::new(|_| None)
    };
    let (ui, as_json) = (app.ui, args.json);
    let ended = reach::block_on(async {
        let way = reach::open(app, &plan.vm, vm).await?;
        let at_copy =
            needs_base(&plan.remote) && (pinned || has_copy(app, &plan.vm, &way, &map).await?);
        let journey = plan.journey(at_copy.then(|| map.folder.as_str()), &map);
        let mut show = Show::new(ui, as_json);
        let ended = go(&way, &journey, refuse, &mut show).await;
        ui.progress(None);
        ended.map_err(|error| reach::failure(&plan.vm, error))
    })??;
    match ended {
        Ok(done) => Ok(report(app, &plan, &done, args.json)),
        Err(why) => {
            app.ui.say(
                "ended; no file is there in part, and the same command goes on where this one was",
            );
            Ok(Exit::Command(RunExit::Cancelled(why).code()))
        }
    }
}

async fn go(
    way: &Way,
    journey: &Journey,
    refuse: Refuse,
    show: &mut Show,
) -> Result<Result<Copied, Cancel>, boxery_remote::RemoteError> {
    copy(
        way,
        journey,
        refuse,
        |progress| show.tell(progress),
        cancelled(),
    )
    .await
}

/// Whether a path of the VM begins at the copy, if there is one.
fn needs_base(remote: &OsStr) -> bool {
    !matches!(remote.as_bytes().first(), Some(b'/' | b'~'))
}

impl Plan {
    fn journey(&self, base: Option<&str>, map: &PathMap) -> Journey {
        let bytes = self.remote.as_bytes();
        // Where commands see the copy, the copying process, which is none, may not.
        let seen = self
            .remote
            .to_str()
            .and_then(|path| path.parse::<RemotePath>().ok());
        let seen = seen.filter(|path| path.is_within(&map.copy));
        let below =
            seen.and_then(|path| Some(path.as_str().strip_prefix(map.copy.as_str())?.to_owned()));
        let remote = match (bytes, base) {
            _ if below.is_some() => {
                OsString::from(format!("{}{}", map.folder, below.unwrap_or_default()))
            }
            ([b'~'], _) | (b"", None) => OsString::from("."),
            ([b'~', b'/', rest @ ..], _) => OsString::from_vec([b"./", rest].concat()),
            (b"", Some(base)) => OsString::from(format!("{base}/.")),
            (_, Some(base)) => OsString::from_vec([base.as_bytes(), b"/", bytes].concat()),
            (_, None) => self.remote.clone(),
        };
        let local = self.local.clone();
        match self.direction {
            Direction::Up => Journey::Up {
                from: local,
                to: remote,
            },
            Direction::Down => Journey::Down {
                from: remote,
                to: local,
            },
        }
    }
}

/// What the hook holds an agent to while pinned, here too, where no hook may run: the
/// pinned VM, files of the project, and its copy.
fn keep_inside(plan: &Plan, here: &Here, map: &PathMap) -> Result<(), Failure> {
    let refused = |what: String| {
        Err(Failure::from(what)
            .hint("while pinned, an agent copies between the project and its copy only")
            .exit(Exit::No))
    };
    if let Some(pin) = here.pin.as_ref().filter(|pin| pin.vm != plan.vm) {
        return refused(format!("this session is pinned to VM {}", pin.vm));
    }
    let resolved = plan.local.canonicalize().or_else(|_| {
        let parent = plan
            .local
            .parent()
            .filter(|parent| *parent != Path::new(""));
        let parent = parent.unwrap_or(Path::new(".")).canonicalize()?;
        Ok::<_, std::io::Error>(parent.join(plan.local.file_name().unwrap_or_default()))
    });
    if !resolved.is_ok_and(|local| local.starts_with(&map.project)) {
        return refused(format!(
            "`{}` is not inside this project",
            plan.local.display()
        ));
    }
    let remote = plan.remote.as_bytes();
    let inside = if remote.first() == Some(&b'/') {
        let path = std::str::from_utf8(remote).ok();
        let path = path.and_then(|path| path.parse::<RemotePath>().ok());
        path.is_some_and(|path| path.is_within(&map.copy))
    } else {
        needs_base(&plan.remote) && remote.split(|b| *b == b'/').all(|part| part != b"..")
    };
    if inside {
        return Ok(());
    }
    refused(format!(
        "`{}:{}` is not inside the project's copy",
        plan.vm,
        plan.remote.to_string_lossy()
    ))
}

/// Shows how far a copy is: a bar on a terminal, or lines of JSON.
struct Show {
    ui: Ui,
    json: bool,
    began: Instant,
    told: Instant,
    reconnected: u32,
    shown: Option<(u64, u64)>,
}

/// How often lines of JSON say how far it is.
const EVERY: Duration = Duration::from_secs(1);

impl Show {
    fn new(ui: Ui, json: bool) -> Self {
        let now = Instant::now();
        Self {
            ui,
            json,
            began: now,
            told: now,
            reconnected: 0,
            shown: None,
        }
    }

    fn tell(&mut self, progress: &Progress) {
        if progress.reconnected > self.reconnected {
            self.reconnected = progress.reconnected;
            if self.json {
                self.ui
                    .line(json!({"event": "reconnect", "bytes": progress.bytes}));
            } else {
                self.ui.progress(None);
                self.ui
                    .note("the connection broke; the copy goes on where it was");
            }
        }
        if self.json {
            if self.told.elapsed() >= EVERY {
                self.told = Instant::now();
                self.ui.line(json!({
                    "event": "progress", "files": progress.files, "bytes": progress.bytes,
                    "total_files": progress.total_files, "total_bytes": progress.total_bytes,
                    "path": String::from_utf8_lossy(&progress.path),
                }));
            }
            return;
        }
        let now = (progress.files, progress.bytes);
        if self.shown != Some(now) {
            self.shown = Some(now);
            self.ui.progress(Some(&bar(progress, self.began.elapsed())));
        }
    }
}

/// `[#####.....]  50 %  3 of 7 files  1.2 MB of 2.4 MB  11.0 MB/s`.
fn bar(progress: &Progress, elapsed: Duration) -> String {
    let millis = u64::try_from(elapsed.as_millis())
        .unwrap_or(u64::MAX)
        .max(1);
    let speed = size(progress.travelled.saturating_mul(1000) / millis);
    let (files, bytes) = (progress.files, size(progress.bytes));
    let (Some(all_files), Some(all_bytes)) = (progress.total_files, progress.total_bytes) else {
        return format!("{files} files  {bytes}  {speed}/s");
    };
    let part = |whole: u64| progress.bytes.saturating_mul(whole) / all_bytes.max(1);
    let filled = usize::try_from(part(20)).unwrap_or(20).min(20);
    format!(
        "[{}{}] {:3} %  {files} of {all_files} files  {bytes} of {}  {speed}/s",
        "#".repeat(filled),
        ".".repeat(20 - filled),
        part(100).min(100),
        size(all_bytes),
    )
}

/// Tell how it ended.
fn report(app: &App, plan: &Plan, done: &Copied, as_json: bool) -> Exit {
    let progress = &done.progress;
    let whole = progress.left.is_empty() && progress.changed.is_empty();
    let text = |path: &[u8]| {
        if path.is_empty() {
            ".".to_owned()
        } else {
            String::from_utf8_lossy(path).into_owned()
        }
    };
    let target = match plan.direction {
        Direction::Up => format!("{}:{}", plan.vm, done.target.display()),
        Direction::Down => done.target.display().to_string(),
    };
    if as_json {
        let left: Vec<_> = progress
            .left
            .iter()
            .map(|(path, why)| json!({"path": text(path), "why": why}))
            .collect();
        let changed: Vec<_> = progress.changed.iter().map(|path| text(path)).collect();
        app.ui.line(json!({
            "event": "done", "target": target, "files": progress.files, "bytes": progress.bytes,
            "travelled": progress.travelled, "reconnected": progress.reconnected,
            "left": left, "changed": changed,
        }));
    } else {
        for (path, why) in &progress.left {
            let line = format!("left out: {}: {why}", text(path));
            app.ui.say(line.replace(char::is_control, "?"));
        }
        for path in &progress.changed {
            let line = format!("changed while it was copied: {}", text(path));
            app.ui.say(line.replace(char::is_control, "?"));
        }
        app.ui.say(format_args!(
            "copied {}, {} to {target}",
            counted(progress.files, "file"),
            size(progress.bytes)
        ));
    }
    if whole { Exit::Done } else { Exit::No }
}
