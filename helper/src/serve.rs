//! One connection of a laptop.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use boxery_wire::{
    Blob, Connection, Decoder, End, Failure, FromRun, JobState, Loss, Reply, Request, Run, RunId,
    Side, Stream, WireError, encode, greet,
};
use rustix::process::Pid;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::sync::OnceCell;
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::{Instant, sleep, timeout};

use crate::children::Children;
use crate::folder::{self, Claim, Folders};
use crate::group::{Group, Groups};
use crate::login::Login;
use crate::proxy::{self, Client};
use crate::stdio::Pipe;
use crate::supervise::{Begin, Found, Journal, nowhere};
use crate::{forward, jobs, keep, leave, machine, old, own, ports, prepare, process};

/// How long a run waits for what it may do without: a group.
const GROUPS: Duration = Duration::from_millis(300);
/// How often and at which distance the groups of runs are looked at that are just ending.
const LAST_LOOKS: u32 = 20;
const LAST_LOOK: Duration = Duration::from_millis(10);
/// How long a supervisor that has no run any more may take to end.
const CLOSING: Duration = Duration::from_secs(1);
/// What of the pipe is read at once.
const BUFFER: usize = 128 * 1024;
/// How long a run that was just claimed may take to be reachable.
const BEGINNING: Duration = Duration::from_secs(5);
/// How often a supervisor is asked that says nothing: one that ends just then.
const ATTEMPTS: u32 = 3;
/// How much later than a run's time is up its supervisor is woken, should it sleep.
const LATE: Duration = Duration::from_millis(500);
/// How long a run has the processor to itself before the next one is prepared for.
const BREATH: Duration = Duration::from_millis(20);

/// Speak with the laptop until the pipe ends. `own` is the name that this program
/// was started by.
pub(crate) fn run(own: OsString) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(LocalSet::new().run_until(speak(own)))
}

async fn speak(own: OsString) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(BUFFER, Pipe::stdin()?);
    let mut writer = Pipe::stdout()?;
    let server = Rc::new(Server::new(own));
    own::check(&server.program)?;
    let children = server.children.clone();
    tokio::task::spawn_local(async move { children.reap().await });
    let early = Rc::clone(&server);
    let beginning = tokio::task::spawn_local(async move {
        tokio::join!(early.groups(), early.login());
        early.prepare();
        for (run, group) in early.folders.orphaned() {
            group.finish().await;
            Group::forget(&run);
        }
        early.folders.forget();
        old::remove(&early.program);
    });
    greet(Side::Vm, &mut reader, &mut writer)
        .await
        .map_err(io::Error::other)?;
    let (connection, drive) = Connection::new(Side::Vm, reader, writer);
    let accept = accept(&server, &connection);
    let end = tokio::select! {
        end = drive => end,
        end = accept => end,
    };
    // Whom it is about to end is ended first.
    drop(timeout(CLOSING, beginning).await);
    server.close().await;
    match end {
        WireError::Closed => Ok(()),
        error => Err(io::Error::other(error)),
    }
}

async fn accept(server: &Rc<Server>, connection: &Connection) -> WireError {
    loop {
        match connection.accept().await {
            Ok(stream) => {
                let server = Rc::clone(server);
                tokio::task::spawn_local(async move {
                    // A stream that fails is dropped, and its client sees that.
                    drop(server.answer(&stream).await);
                });
            }
            Err(error) => return error,
        }
    }
}

/// The process that has charge of a run, or waits for one.
struct Supervisor {
    stream: UnixStream,
    pid: Option<Pid>,
    /// Resolves when it and its group are gone.
    gone: JoinHandle<()>,
}

/// Wakes a process when its time comes, unless it is dropped before.
struct Waker(JoinHandle<()>);

impl Drop for Waker {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn wake_after(patience: Duration, pid: Option<Pid>) -> Waker {
    Waker(tokio::task::spawn_local(async move {
        sleep(patience).await;
        process::wake(pid);
    }))
}

struct Server {
    program: PathBuf,
    folders: Folders,
    children: Children,
    login: OnceCell<Login>,
    /// Where runs get groups, if they can have some.
    groups: OnceCell<Option<Groups>>,
    /// The bash that tells where it ends, if the user's does.
    teller: OnceCell<Option<PathBuf>>,
    /// A supervisor that waits for a run.
    spare: RefCell<Option<Supervisor>>,
    _in_use: old::InUse,
}

impl Server {
    fn new(own: OsString) -> Self {
        // Where there is no /proc, the name that we were started by has to do.
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from(own));
        Self {
            folders: Folders::new(&Login::given().user.home),
            children: Children::default(),
            login: OnceCell::new(),
            groups: OnceCell::new(),
            teller: OnceCell::new(),
            spare: RefCell::new(None),
            _in_use: old::hold(&program),
            program,
        }
    }

    /// The login environment, captured when it is first asked for.
    async fn login(&self) -> &Login {
        self.login
            .get_or_init(|| async {
                let login = match self.folders.open() {
                    Ok(folder) => {
                        Login::capture(&self.children, self.program.as_os_str(), &folder).await
                    }
                    Err(_) => Login::given(),
                };
                // From now on: what start-up files left running isn't ours.
                let own = rustix::process::getpid();
                let _: rustix::io::Result<()> = rustix::process::set_child_subreaper(Some(own));
                login
            })
            .await
    }

    /// Where runs get groups: asked for once, at the beginning.
    async fn groups(&self) -> Option<&Groups> {
        let opened = self.groups.get_or_init(|| async {
            let state = self.folders.open().ok()?;
            Groups::open(&self.program, &state, &self.children).await
        });
        opened.await.as_ref()
    }

    /// The connection is over: leave no group behind that nobody needs.
    async fn close(&self) {
        let spare = self.spare.borrow_mut().take();
        if let Some(Supervisor { stream, gone, .. }) = spare {
            drop(stream);
            drop(timeout(CLOSING, gone).await);
        }
        if let Some(Some(groups)) = self.groups.get() {
            // A supervisor that ends at this moment takes it that its group is looked
            // after; one that goes on looks after it itself.
            for _ in 0..LAST_LOOKS {
                if groups.remove_own() {
                    break;
                }
                sleep(LAST_LOOK).await;
            }
            groups.close(&self.program);
        }
    }

    /// The user's bash, if it tells where it ends: tried when it is first asked for.
    async fn teller(&self) -> Option<&Path> {
        let found = self.teller.get_or_init(|| async {
            let login = self.login().await;
            let bash = machine::find("bash", &login.variable("PATH").unwrap_or_default())?;
            let tells = keep::works_in(&bash, &login.variables, &self.children).await;
            tells.then_some(bash)
        });
        found.await.as_deref()
    }

    async fn answer(&self, stream: &Stream) -> Result<(), WireError> {
        let mut decoder = Decoder::default();
        let request = loop {
            if let Some(request) = decoder.message::<Request>()? {
                break request;
            }
            match stream.recv().await? {
                Some(bytes) => decoder.push(&bytes),
                None => return Ok(()),
            }
        };
        let reply = match request {
            Request::Hello => {
                let login = self.login().await;
                Reply::Hello(Box::new(machine::describe(login, self.folders.open())))
            }
            Request::Jobs => Reply::Jobs(jobs::list(&self.folders)),
            Request::IsSetUp { script } => {
                let state = self.folders.open();
                Reply::SetUp(state.is_ok_and(|state| prepare::is_done(&state, script)))
            }
            Request::Ports => Reply::Ports(ports::list(&self.folders)),
            Request::Leave => {
                // Until then it may make a folder.
                let login = self.login().await;
                Reply::Left(leave::run(&self.program, &self.folders, login))
            }
            Request::Put { .. } | Request::Get { .. } | Request::Sync { .. } => {
                return self.copy(stream, decoder, &request).await;
            }
            Request::WatchPorts { whose } => {
                return ports::watch(stream, &self.folders, &whose).await;
            }
            Request::Forward { port, whose } => {
                let addresses = match whose {
                    Some(whose) => ports::addresses(&self.folders, &whose, port),
                    None => forward::loopback(port),
                };
                return forward::run(stream, &addresses).await;
            }
            Request::Run(run) => return self.start(stream, decoder, run).await,
            Request::Attach { run, .. } => {
                return self
                    .reach(stream, decoder, run, &request, Client::Owner)
                    .await;
            }
            Request::Tail { run, .. } | Request::Wait { run } | Request::Stop { run } => {
                return self
                    .reach(stream, decoder, run, &request, Client::Guest)
                    .await;
            }
        };
        stream.send_message(&reply).await?;
        stream.finish();
        Ok(())
    }

    /// Start a run, unless it was started before.
    async fn start(
        &self,
        stream: &Stream,
        decoder: Decoder,
        run: Box<Run>,
    ) -> Result<(), WireError> {
        self.login().await;
        // Rather without a group than late.
        drop(timeout(GROUPS, self.groups()).await);
        let id = run.run;
        let folder = match self.folders.claim(id) {
            Ok(Claim::New(folder)) => folder,
            Ok(Claim::Old) => {
                let request = Request::Run(run);
                return self
                    .reach(stream, decoder, id, &request, Client::Owner)
                    .await;
            }
            Err(detail) => return fail(stream, Failure::NoState { detail }).await,
        };
        let prepared = ports::save_session(&folder, &run.session).and_then(|()| self.take_spare());
        let Supervisor {
            stream: mut supervisor,
            pid,
            ..
        } = match prepared {
            Ok(supervisor) => supervisor,
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(0);
                let what = "start a supervisor".to_owned();
                return fail(stream, Failure::System { what, errno }).await;
            }
        };
        let path = |path: &Path| Blob::from(path.as_os_str().as_bytes());
        let teller = match run.keep {
            Some(_) => self.teller().await.map(path),
            None => None,
        };
        let patience = run.timeout.map(Duration::from_millis);
        let begin: Begin = (path(&folder), teller, Request::Run(run));
        // A blocking write: the supervisor reads it at once, and it may be long.
        io::Write::write_all(&mut supervisor, &encode(&begin)?)?;
        let mut decoder = decoder;
        // One that was stopped wouldn't see that the time is up.
        let _waker = patience.map(|patience| wake_after(patience + LATE, pid));
        let client = Client::Owner;
        let mut pass_on = pin!(proxy::run(stream, &mut decoder, supervisor, client, pid));
        // Starting the next supervisor doesn't hold up a short run.
        let said = if let Ok(said) = timeout(BREATH, &mut pass_on).await {
            said
        } else {
            self.prepare();
            pass_on.await
        };
        self.prepare();
        if !said? {
            return fail(stream, Failure::Lost(folder::loss(&folder))).await;
        }
        stream.finish();
        Ok(())
    }

    /// Have a supervisor wait for the next run.
    fn prepare(&self) {
        let mut spare = self.spare.borrow_mut();
        if spare.is_none() {
            *spare = self.supervisor().ok();
        }
    }

    fn take_spare(&self) -> io::Result<Supervisor> {
        let spare = self.spare.borrow_mut().take();
        spare.map_or_else(|| self.supervisor(), Ok)
    }

    /// Start a supervisor, in a group of its own.
    fn supervisor(&self) -> io::Result<Supervisor> {
        let (ours, control) = UnixStream::pair()?;
        let command = |group: Option<&Path>| {
            let mut command = self.command("supervise", control.try_clone()?)?;
            command.args(group);
            Ok(command)
        };
        let (pid, group) = match self.groups.get() {
            Some(Some(groups)) => groups.start(command)?,
            Some(None) | None => (command(None)?.spawn()?.id(), None),
        };
        let ended = self.children.watch(pid);
        let gone = tokio::task::spawn_local(async move {
            drop(ended.await);
            if let Some(group) = group {
                // Killed, it has ended nobody.
                group.finish().await;
            }
        });
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        Ok(Supervisor {
            stream: ours,
            pid,
            gone,
        })
    }

    /// Have a process of its own copy.
    async fn copy(
        &self,
        stream: &Stream,
        decoder: Decoder,
        request: &Request,
    ) -> Result<(), WireError> {
        self.login().await;
        let mut copier = match self.copier() {
            Ok(copier) => copier,
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(0);
                let what = "start a copy".to_owned();
                return fail(stream, Failure::System { what, errno }).await;
            }
        };
        io::Write::write_all(&mut copier, &encode(request)?)?;
        copier.set_nonblocking(true)?;
        let mut copier = tokio::net::UnixStream::from_std(copier)?;
        let (from, mut to) = copier.split();
        to.write_all(&decoder.into_rest()).await?;
        forward::pass_on(stream, from, to).await
    }

    fn copier(&self) -> io::Result<UnixStream> {
        let (ours, control) = UnixStream::pair()?;
        let child = self.command("copy", control)?.spawn()?;
        drop(self.children.watch(child.id()));
        Ok(ours)
    }

    /// This program as a process that speaks over `control`.
    fn command(&self, what: &str, control: UnixStream) -> io::Result<Command> {
        // The running file itself, though its name may be gone.
        let itself = Path::new("/proc/self/exe");
        let program = if itself.exists() {
            itself
        } else {
            &self.program
        };
        let variables = self.login.get().map(|login| &login.variables);
        let mut command = Command::new(program);
        command
            .arg(what)
            .env_clear()
            .envs(
                variables
                    .into_iter()
                    .flatten()
                    .map(|(name, value)| (OsStr::from_bytes(name), OsStr::from_bytes(value))),
            )
            .stdin(Stdio::from(OwnedFd::from(control)))
            .stdout(nowhere()?)
            .stderr(nowhere()?);
        Ok(command)
    }

    /// Bring a stream to the supervisor of a run that was started before.
    async fn reach(
        &self,
        stream: &Stream,
        decoder: Decoder,
        run: RunId,
        request: &Request,
        client: Client,
    ) -> Result<(), WireError> {
        let Some(folder) = self.folders.find(run) else {
            return fail(stream, Failure::Lost(Loss::Unknown)).await;
        };
        let mut decoder = decoder;
        for _ in 0..ATTEMPTS {
            let Some(mut supervisor) = connect(&folder).await else {
                return self.without_supervisor(stream, run, &folder, request).await;
            };
            let peer = rustix::net::sockopt::socket_peercred(&supervisor);
            let pid = peer.ok().map(|peer| peer.pid);
            process::wake(pid);
            let asked = io::Write::write_all(&mut supervisor, &encode(request)?);
            if asked.is_ok() && proxy::run(stream, &mut decoder, supervisor, client, pid).await? {
                stream.finish();
                return Ok(());
            }
            // It was about to end, and has noted by now how.
        }
        fail(stream, Failure::Lost(folder::loss(&folder))).await
    }

    /// Answer for a supervisor that is gone.
    async fn without_supervisor(
        &self,
        stream: &Stream,
        run: RunId,
        folder: &Path,
        request: &Request,
    ) -> Result<(), WireError> {
        let job = jobs::read(folder);
        let loss = folder::loss(folder);
        if loss == Loss::Broken {
            // Killed, it ended nobody.
            process::kill_marked(&format!("BOXERY_RUN={run}"));
            if let Some(group) = Group::of(folder) {
                group.finish().await;
                Group::forget(folder);
            }
        }
        let end = job.map(|job| match job.state {
            JobState::Running => boxery_wire::Outcome::Lost(loss),
            JobState::Background(outcome) | JobState::Ended(outcome) => outcome,
        });
        match (request, end) {
            (Request::Tail { .. }, Some(outcome)) => tail(stream, folder, outcome).await,
            (Request::Wait { .. } | Request::Stop { .. }, Some(outcome)) => {
                let background = 0;
                stream
                    .send_message(&Reply::Ended(End {
                        outcome,
                        background,
                    }))
                    .await?;
                stream.finish();
                Ok(())
            }
            (Request::Run(_), Some(_)) => {
                stream.send_message(&Reply::Started).await?;
                stream.finish();
                Ok(())
            }
            _ => fail(stream, Failure::Lost(loss)).await,
        }
    }
}

/// Send what an ended job left.
async fn tail(
    stream: &Stream,
    folder: &Path,
    outcome: boxery_wire::Outcome,
) -> Result<(), WireError> {
    stream.send_message(&Reply::Started).await?;
    let mut log = Journal::open_log(folder);
    let (mut position, mut buffer, mut ended) = (0, Vec::new(), false);
    loop {
        match log.read_message(position, &mut buffer)? {
            Found::Bytes(length) => {
                position += length as u64;
                let mut decoder = Decoder::default();
                decoder.push(&buffer);
                ended = matches!(decoder.message(), Ok(Some(FromRun::End(_))));
                stream.send(std::mem::take(&mut buffer)).await?;
            }
            Found::Gap(next) => {
                stream
                    .send_message(&FromRun::Skipped(next - position))
                    .await?;
                position = next;
            }
            Found::End => break,
        }
    }
    if !ended {
        let background = 0;
        stream
            .send_message(&FromRun::End(End {
                outcome,
                background,
            }))
            .await?;
    }
    stream.finish();
    Ok(())
}

/// The supervisor of a run, also when the run is only just beginning.
async fn connect(folder: &Path) -> Option<UnixStream> {
    let patience = Instant::now() + BEGINNING;
    loop {
        match folder::connect(folder) {
            Ok(stream) => return Some(stream),
            Err(_) if folder::is_beginning(folder) && Instant::now() < patience => {
                sleep(Duration::from_millis(10)).await;
            }
            Err(_) => return None,
        }
    }
}

async fn fail(stream: &Stream, failure: Failure) -> Result<(), WireError> {
    stream.send_message(&Reply::Failed(failure)).await?;
    stream.finish();
    Ok(())
}
