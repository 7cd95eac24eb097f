//! Starts the command of a run.

#![expect(
    unsafe_code,
    reason = "between fork and exec the child needs a session and a terminal of its own"
)]

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use boxery_wire::{Blob, Failure, Run, Size, Stdin};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::keep::{Note, Preload};
use crate::sandbox::View;
use crate::session::Session;
use crate::{git, machine, prepare};

/// The longest argument that Linux passes to a program, without its NUL.
const ARGUMENT: usize = 128 * 1024 - 1;
/// How much of the command's output may wait in the kernel.
const PIPE: usize = 256 * 1024;

/// A command that runs, and this end of its streams, which never block.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) pid: Option<Pid>,
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
    /// The terminal, whose output is `stdout`.
    pub(super) terminal: Option<OwnedFd>,
    /// The folder that it was started in.
    pub(super) folder: PathBuf,
    /// What it tells at its end.
    pub(super) note: Option<Note>,
    /// The folder that was kept for it, and is gone.
    pub(super) gone: Option<Blob>,
}

/// What is known of the VM and the session besides the request.
pub(super) struct Around<'a> {
    /// The environment below what the request sets.
    pub(super) login: &'a BTreeMap<Vec<u8>, Vec<u8>>,
    /// The bash that tells where it ends, if one does.
    pub(super) teller: Option<&'a Path>,
    /// What is kept from call to call.
    pub(super) session: Option<&'a mut Session>,
    /// The run's own folder.
    pub(super) own: &'a Path,
}

impl Started {
    /// No command, for one that can't be executed.
    pub(super) fn nothing() -> Self {
        Self {
            pid: None,
            stdin: None,
            stdout: None,
            stderr: None,
            terminal: None,
            folder: PathBuf::new(),
            note: None,
            gone: None,
        }
    }

    /// Keep what the command told at its end, before anybody hears of the end.
    pub(super) fn tell(&mut self, session: &mut Option<Session>) {
        let told = self.note.take().and_then(|note| note.read());
        if let (Some(session), Some(told)) = (session, told) {
            // Where it can't be kept, what was kept before stays.
            drop(session.end(told, &self.folder));
        }
    }
}

/// Why there is none.
#[derive(Debug)]
pub(super) enum NotStarted {
    /// Nothing is as the request wants it.
    Failed(Failure),
    /// As a shell says it: 127 when there is no such program, 126 when it can't be
    /// executed.
    Status(u8, String),
}

/// The three streams of a child, and our ends.
struct Streams {
    child: [OwnedFd; 3],
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: Option<OwnedFd>,
    terminal: Option<OwnedFd>,
}

/// Start the command in a session of its own.
pub(super) fn start(run: &Run, mut around: Around<'_>) -> Result<Started, NotStarted> {
    let mut environment = around.login.clone();
    let view = view(run)?;
    let (folder, gone) = folder(run, &mut around, view.as_ref())?;
    for (name, value) in &run.env {
        environment.insert(name.0.clone(), value.0.clone());
    }
    if let Some(user) = &run.git {
        git::introduce(user, around.own, run.run, &mut environment);
    }
    if let Some(session) = &mut around.session {
        session.change(&mut environment);
    }
    environment.insert(b"PWD".to_vec(), folder.clone());
    environment.insert(b"BOXERY_RUN".to_vec(), run.run.to_string().into_bytes());

    let Some(program) = run.argv.first() else {
        return Err(system("start nothing", &io::ErrorKind::InvalidInput.into()));
    };
    let file = resolve(program, &folder, &environment, view.as_ref())?;
    // Without it the state from before the call is what stays.
    let telling = match &around.session {
        Some(session) if around.teller == Some(&file) => Preload::new(session.keeps_exports()).ok(),
        Some(_) | None => None,
    };
    let mut argv: Vec<Vec<u8>> = run.argv.iter().skip(1).map(|word| word.0.clone()).collect();
    let text = long_text(program, &mut argv).map_err(|error| system("keep the command", &error))?;
    let streams = streams(run.stdin).map_err(|error| system("make the streams", &error))?;

    let mut command = if let Some(script) = run.sets_up {
        let words = prepare::words(around.own, script, &file);
        let words = words.map_err(|error| system("set the machine up", &error))?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    } else {
        let mut command = Command::new(file);
        command.arg0(OsStr::from_bytes(program));
        command
    };
    command
        .args(argv.iter().map(|word| OsStr::from_bytes(word)))
        .env_clear()
        .envs(
            environment
                .iter()
                .map(|(name, value)| (OsStr::from_bytes(name), OsStr::from_bytes(value))),
        );
    let (mut entering, mut entered) = (None, None);
    if let Some(view) = view {
        let failed = |error: io::Error| system("prepare the namespace", &error);
        let cwd = CString::new(folder.clone()).map_err(|error| failed(error.into()))?;
        let (told, tell) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        (entering, entered) = (Some((view, cwd, tell)), Some(told));
    } else {
        command.current_dir(OsStr::from_bytes(&folder));
    }
    if let Some((preload, _)) = &telling {
        let own = environment.get(b"LD_PRELOAD".as_slice());
        preload.apply(&mut command, own.map(Vec::as_slice));
    }
    let [stdin, stdout, stderr] = streams.child;
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    let has_terminal = streams.terminal.is_some();
    let keep = text.as_ref().map(std::os::fd::AsRawFd::as_raw_fd);
    // SAFETY: the closure runs between fork and exec of a process with one thread.
    // It, and what of `view` it calls, makes system calls only, allocates nothing and
    // takes no lock; `keep` is a descriptor that `text` holds open until the command
    // has been started, and `set` is written by sigemptyset before it is read.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            // This process blocks SIGCHLD, and a child would inherit that.
            let mut set = std::mem::MaybeUninit::uninit();
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut());
            // Whoever started the helper may ignore some, and a shell can't trap a
            // signal that it found ignored. The ones that can't be set stay.
            for signal in 1..=31 {
                libc::signal(signal, libc::SIG_DFL);
            }
            if has_terminal {
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
            }
            if let Some((view, cwd, tell)) = &entering {
                // The error alone wouldn't say that it isn't the program's.
                view.enter(cwd).inspect_err(|_| {
                    let _: rustix::io::Result<usize> = rustix::io::write(tell, b"!");
                })?;
            }
            if let Some(keep) = keep {
                let keep = BorrowedFd::borrow_raw(keep);
                rustix::io::fcntl_setfd(keep, rustix::io::FdFlags::empty())?;
            }
            Ok(())
        });
    }
    let spawned = command.spawn();
    // It holds our end of the pipe, whose reader would wait for it.
    drop(command);
    let child = spawned.map_err(|error| {
        let said = entered.is_some_and(|told| File::from(told).read(&mut [0]).is_ok_and(|n| n > 0));
        if said {
            let detail = format!("the VM makes no namespace: {error}");
            return NotStarted::Failed(Failure::View { detail });
        }
        not_executed(program, &error)
    })?;
    drop(text);
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok(Started {
        pid,
        stdin: streams.stdin,
        stdout: Some(streams.stdout),
        stderr: streams.stderr,
        terminal: streams.terminal,
        folder: PathBuf::from(OsStr::from_bytes(&folder)),
        note: telling.map(|(_, note)| note),
        gone,
    })
}

/// The folder to start in: the one that was kept, else the request's, else the
/// user's home. With it: one that was kept and is gone.
fn folder(
    run: &Run,
    around: &mut Around<'_>,
    view: Option<&View>,
) -> Result<(Vec<u8>, Option<Blob>), NotStarted> {
    let check = |folder: &[u8]| {
        let folder = Path::new(OsStr::from_bytes(folder));
        check_folder(&outside(view, folder))
    };
    let mut gone = None;
    if let Some(session) = &mut around.session
        && let Some(folder) = session.folder()
    {
        if check(&folder).is_ok() {
            return Ok((folder.0, None));
        }
        session.forget_folder();
        gone = Some(folder);
    }
    let home = around.login.get(b"HOME".as_slice());
    let folder = match (&run.cwd, home) {
        (Some(folder), _) => folder.0.clone(),
        (None, Some(home)) => home.clone(),
        (None, None) => b"/".to_vec(),
    };
    check(&folder)?;
    Ok((folder, gone))
}

/// What the run sees at another path than where it is.
fn view(run: &Run) -> Result<Option<View>, NotStarted> {
    let Some(wanted) = &run.view else {
        return Ok(None);
    };
    View::plan(&wanted.at, &wanted.folder)
        .map(Some)
        .map_err(|detail| NotStarted::Failed(Failure::View { detail }))
}

fn outside(view: Option<&View>, path: &Path) -> PathBuf {
    view.map_or_else(|| path.to_owned(), |view| view.outside(path))
}

fn system(what: &str, error: &io::Error) -> NotStarted {
    NotStarted::Failed(Failure::System {
        what: what.to_owned(),
        errno: error.raw_os_error().unwrap_or(0),
    })
}

fn check_folder(folder: &Path) -> Result<(), NotStarted> {
    let denied = || Err(NotStarted::Failed(Failure::FolderDenied));
    match std::fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => denied(),
        Ok(metadata) if metadata.is_dir() => {
            match rustix::fs::access(folder, rustix::fs::Access::EXEC_OK) {
                Ok(()) => Ok(()),
                Err(_) => denied(),
            }
        }
        Ok(_) | Err(_) => Err(NotStarted::Failed(Failure::FolderGone)),
    }
}

/// The file of a program, as a shell looks it up.
fn resolve(
    program: &[u8],
    folder: &[u8],
    environment: &BTreeMap<Vec<u8>, Vec<u8>>,
    view: Option<&View>,
) -> Result<PathBuf, NotStarted> {
    let name = OsStr::from_bytes(program);
    if program.contains(&b'/') {
        let file = Path::new(OsStr::from_bytes(folder)).join(name);
        let is_bash = program.ends_with(b"/bash");
        return match (outside(view, &file).exists(), is_bash) {
            (true, _) => Ok(file),
            (false, true) => Err(NotStarted::Failed(Failure::NoBash)),
            (false, false) => Err(not_found(program)),
        };
    }
    let path = environment
        .get(b"PATH".as_slice())
        .cloned()
        .unwrap_or_default();
    let found = name.to_str().and_then(|name| machine::find(name, &path));
    match found {
        Some(file) => Ok(file),
        None if program == b"bash" => Err(NotStarted::Failed(Failure::NoBash)),
        None => Err(not_found(program)),
    }
}

fn not_found(program: &[u8]) -> NotStarted {
    let name = String::from_utf8_lossy(program);
    NotStarted::Status(
        127,
        format!("boxery: {name}: command not found on the VM\n"),
    )
}

fn not_executed(program: &[u8], error: &io::Error) -> NotStarted {
    let name = String::from_utf8_lossy(program);
    match error.kind() {
        io::ErrorKind::NotFound => NotStarted::Status(
            127,
            format!("boxery: {name}: its interpreter isn't on the VM\n"),
        ),
        io::ErrorKind::ArgumentListTooLong => system("pass so long a command", error),
        _ => NotStarted::Status(126, format!("boxery: {name}: {error}\n")),
    }
}

/// Takes the text out of a `bash -c TEXT` where it is too long for an argument: bash
/// reads the same bytes from a descriptor that it inherits.
fn long_text(program: &[u8], argv: &mut [Vec<u8>]) -> io::Result<Option<OwnedFd>> {
    let is_bash = program == b"bash" || program.ends_with(b"/bash");
    let [option, text, ..] = argv else {
        return Ok(None);
    };
    if !is_bash || option != b"-c" || text.len() <= ARGUMENT {
        return Ok(None);
    }
    let fd = rustix::fs::memfd_create("command", rustix::fs::MemfdFlags::CLOEXEC)?;
    // A number that scripts don't use themselves.
    let fd = rustix::io::fcntl_dupfd_cloexec(&fd, 200)?;
    let mut file = File::from(fd);
    file.write_all(text)?;
    *text = format!(". /proc/self/fd/{}", file.as_raw_fd()).into_bytes();
    Ok(Some(file.into()))
}

fn streams(kind: Stdin) -> io::Result<Streams> {
    if let Stdin::Pty(size) = kind {
        return terminal(size);
    }
    let (input, stdin) = match kind {
        Stdin::Null | Stdin::Pty(_) => (null()?, None),
        Stdin::Pipe => {
            let (input, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
            without_waiting(&stdin)?;
            (input, Some(stdin))
        }
    };
    let output = || -> io::Result<(OwnedFd, OwnedFd)> {
        let (ours, output) = pipe_with(PipeFlags::CLOEXEC)?;
        // The system may allow less, and that is as good.
        let _: Result<usize, _> = rustix::pipe::fcntl_setpipe_size(&ours, PIPE);
        without_waiting(&ours)?;
        Ok((ours, output))
    };
    let (stdout, to_stdout) = output()?;
    let (stderr, to_stderr) = output()?;
    Ok(Streams {
        child: [input, to_stdout, to_stderr],
        stdin,
        stdout,
        stderr: Some(stderr),
        terminal: None,
    })
}

fn terminal(size: Size) -> io::Result<Streams> {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&terminal)?;
    unlockpt(&terminal)?;
    resize(&terminal, size)?;
    let name = ptsname(&terminal, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, Mode::empty())?;
    without_waiting(&terminal)?;
    let child = [slave.try_clone()?, slave.try_clone()?, slave];
    Ok(Streams {
        child,
        stdin: Some(terminal.try_clone()?),
        stdout: terminal.try_clone()?,
        stderr: None,
        terminal: Some(terminal),
    })
}

/// Give a terminal its size; who runs in it gets SIGWINCH.
pub(super) fn resize(terminal: &OwnedFd, size: Size) -> io::Result<()> {
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(tcsetwinsize(terminal, size)?)
}

fn without_waiting(fd: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    Ok(rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
}

/// An empty input, also where there is no `/dev/null`.
fn null() -> io::Result<OwnedFd> {
    match File::open("/dev/null") {
        Ok(file) => Ok(file.into()),
        Err(_) => Ok(pipe_with(PipeFlags::CLOEXEC)?.0),
    }
}

/// What a supervisor is started with for streams: nothing to read or to write to.
pub(crate) fn nowhere() -> io::Result<Stdio> {
    let file = File::options().read(true).write(true).open("/dev/null");
    match file {
        Ok(file) => Ok(file.into()),
        Err(_) => Ok(pipe_with(PipeFlags::CLOEXEC)?.1.into()),
    }
}

/// A descriptor that is readable when a child has ended.
pub(super) fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: `set` is written by sigemptyset before it is read; no thread but this
    // one exists, so the mask is the process's; signalfd gives a new descriptor or -1.
    unsafe {
        let mut set = std::mem::MaybeUninit::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        if libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// The process group that is in front in the terminal, or the command's own.
pub(super) fn foreground(started: &Started) -> Option<Pid> {
    started
        .terminal
        .as_ref()
        .and_then(|terminal| rustix::termios::tcgetpgrp(terminal.as_fd()).ok())
        .or(started.pid)
}
