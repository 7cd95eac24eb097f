//! The first moments of a supervisor: what it is told, and the start of the command.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use boxery_wire::{Blob, FromRun, Job, JobState, Loss, Outcome, Reply, Request, Run};

use super::client::{Client, Role};
use super::command::{self, Around, NotStarted, Started};
use super::event::{PIECE, Supervisor};
use super::input::Input;
use super::journal::{Journal, Kind};
use super::phase::Phase;
use crate::group::Group;
use crate::session::Session;
use crate::{clock, folder, old};

/// What the first message to a new supervisor is: its folder, the bash that tells
/// where it ends, the request.
pub(crate) type Begin = (Blob, Option<Blob>, Request);

/// Be a supervisor: the control connection is stdin, the environment is the login's,
/// `group` the one that it is in, with all that it starts.
pub(crate) fn run(group: Option<Group>) -> io::Result<()> {
    let helper = rustix::process::getppid();
    if let Some(group) = &group {
        // Outside of it, it ends what it can end.
        drop(group.enter());
    }
    let done = supervise(group.clone());
    if let Some(group) = group
        && (done.is_err() || rustix::process::getppid() != helper)
    {
        // The helper that would remove it is gone or about to go.
        group.give_up();
    }
    done
}

fn supervise(group: Option<Group>) -> io::Result<()> {
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let mut first = FirstMessage::read(UnixStream::from(control))?;
    let _in_use = std::env::current_exe().map(|own| old::hold(&own));
    let folder = PathBuf::from(std::ffi::OsStr::from_bytes(&first.folder));
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    // The command's stdin is never ours.
    let nowhere = std::fs::File::open("/");
    if let Ok(nowhere) = nowhere {
        rustix::stdio::dup2_stdin(nowhere)?;
    }
    let login: BTreeMap<Vec<u8>, Vec<u8>> = crate::environment().into_iter().collect();
    let signals = command::child_signals()?;
    let listener = folder::listen(&folder)?;
    listener.set_nonblocking(true)?;
    std::env::set_current_dir(&folder)?;

    if let Some(group) = &group {
        group.note(&folder);
    }
    let mut journal = Journal::new(&folder, Kind::Journal);
    let mut over = None;
    let mut session = Session::open(&folder, &first.run);
    let around = Around {
        login: &login,
        teller: first.teller.as_deref(),
        session: session.as_mut(),
        own: &folder,
    };
    let mut started = match command::start(&first.run, around) {
        Ok(started) => started,
        Err(NotStarted::Failed(failure)) => {
            first.client.reply(&Reply::Failed(failure));
            let mut log = Journal::new(&folder, Kind::Log);
            first.client.write(&mut journal, &mut log);
            Group::forget(&folder);
            return folder::finish(&folder, Loss::Acknowledged);
        }
        Err(NotStarted::Status(status, text)) => {
            over = Some((status, text));
            Started::nothing()
        }
    };
    first.client.reply(&Reply::Started);
    first.client.role = if first.run.job {
        Role::Leaving
    } else {
        Role::Owner(0)
    };
    let now = clock::running();
    let has_terminal = started.terminal.is_some();
    let mut supervisor = Supervisor {
        log: Journal::new(&folder, Kind::Log),
        job: job(&first.run, &started.folder),
        deadline: first.run.timeout.map(|limit| now.saturating_add(limit)),
        lonely: None,
        input: Input::new(started.stdin.take(), has_terminal),
        session,
        folder,
        group,
        run: first.run,
        journal,
        started,
        signals,
        listener,
        clients: vec![first.client],
        phase: Phase::Running,
        end: None,
        abandoned: false,
        buffer: vec![0; PIECE],
        childless: false,
    };
    if supervisor.run.job {
        supervisor.save_job(JobState::Running);
    }
    if let Some(gone) = supervisor.started.gone.take() {
        supervisor.emit(&FromRun::FolderGone(gone));
    }
    if let Some((status, text)) = over {
        supervisor.emit(&FromRun::Stderr(text.as_str().into()));
        supervisor.tell_end(Outcome::Exited(status));
    }
    let said = supervisor.clients[0].said();
    for said in said {
        supervisor.hear(0, said);
    }
    while !supervisor.step()? {}
    supervisor.journal.clear();
    Group::forget(&supervisor.folder);
    Ok(())
}

fn job(run: &Run, folder: &Path) -> Job {
    let cut = |word: &Blob| Blob::from(&word[..word.len().min(200)]);
    Job {
        run: run.run,
        argv: run.argv.iter().take(20).map(cut).collect(),
        cwd: folder.as_os_str().as_bytes().into(),
        session: run.session.clone(),
        started: clock::wall(),
        state: JobState::Running,
    }
}

/// What starts a supervisor.
struct FirstMessage {
    client: Client,
    folder: Blob,
    teller: Option<PathBuf>,
    run: Run,
}

impl FirstMessage {
    fn read(stream: UnixStream) -> io::Result<Self> {
        use std::io::Read as _;
        let mut stream = stream;
        stream.set_nonblocking(false)?;
        let mut prefix = [0; 4];
        stream.read_exact(&mut prefix)?;
        let length = u32::from_le_bytes(prefix) as usize;
        if length > 2 * boxery_wire::MAX_MESSAGE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes)?;
        let begin: Begin = postcard::from_bytes(&bytes).map_err(io::Error::other)?;
        match begin {
            (folder, teller, Request::Run(run)) => Ok(Self {
                client: Client::new(stream)?,
                folder,
                teller: teller.map(|file| PathBuf::from(std::ffi::OsStr::from_bytes(&file))),
                run: *run,
            }),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}
