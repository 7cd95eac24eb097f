//! Waits for whatever comes first, and acts on it.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use boxery_wire::{
    Blob, End, Failure, FromRun, Job, JobState, Loss, Outcome, Reply, Request, Run, ToRun, Why,
    encode,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, WaitOptions, kill_process_group, wait};

use super::client::{Client, Role, Said};
use super::command::{self, Started};
use super::input::Input;
use super::journal::Journal;
use super::phase::{Ending, GIVE_UP, LINGER, Phase, QUIET, is_forgotten, outcome};
use crate::group::Group;
use crate::session::Session;
use crate::{clock, folder, jobs, process};

/// What is read of a stream at once.
pub(super) const PIECE: usize = 64 * 1024;
/// How far the command may be ahead of a client that is there.
const AHEAD: u64 = 8 * 1024 * 1024;

/// How often a run to which nobody is connected looks for its own folder.
const LOOK: u64 = 5000;

/// A run, and everybody who has to do with it.
pub(super) struct Supervisor {
    pub(super) folder: PathBuf,
    /// What it is in with all of its processes.
    pub(super) group: Option<Group>,
    pub(super) run: Run,
    pub(super) journal: Journal,
    pub(super) log: Journal,
    pub(super) job: Job,
    pub(super) started: Started,
    /// What is kept for the session's next call.
    pub(super) session: Option<Session>,
    pub(super) input: Input,
    pub(super) signals: OwnedFd,
    pub(super) listener: UnixListener,
    pub(super) clients: Vec<Client>,
    pub(super) phase: Phase,
    /// When its time is up.
    pub(super) deadline: Option<u64>,
    /// Since when nobody is attached.
    pub(super) lonely: Option<u64>,
    pub(super) end: Option<End>,
    /// Whether its client was killed, so that nobody comes back.
    pub(super) abandoned: bool,
    /// What is read passes through it.
    pub(super) buffer: Vec<u8>,
    /// Whether no child is left.
    pub(super) childless: bool,
}

/// What a descriptor that is waited for belongs to.
#[derive(Debug, Clone, Copy)]
enum Source {
    Signals,
    Listener,
    Client(usize),
    Stdin,
    Stdout,
    Stderr,
}

impl Supervisor {
    /// Wait once and act; true when all is over.
    pub(super) fn step(&mut self) -> io::Result<bool> {
        for source in self.wait()? {
            match source {
                Source::Signals => {
                    let mut buffer = [0; 4096];
                    let _: rustix::io::Result<usize> = rustix::io::read(&self.signals, &mut buffer);
                }
                Source::Listener => self.accept(),
                Source::Client(index) => {
                    let said = self.clients[index].read(&mut self.buffer);
                    for said in said {
                        self.hear(index, said);
                    }
                }
                Source::Stdin => self.input.write(),
                Source::Stdout => _ = self.read_output(Stream::Stdout),
                Source::Stderr => _ = self.read_output(Stream::Stderr),
            }
        }
        self.reap();
        if let Some(taken) = self.input.news() {
            self.emit(&FromRun::StdinTaken(taken));
        }
        if self.clients.is_empty() && is_forgotten() {
            // Nobody can come back to it, so it lives on for nobody.
            match self.phase {
                Phase::Running | Phase::Lingering { .. } => {
                    self.end_all(Ending::Lost(Loss::Broken));
                }
                Phase::Background => self.end_all(Ending::Stopped),
                Phase::Ending { .. } => {}
                Phase::Over => return Ok(true),
            }
        }
        self.advance();
        for client in &mut self.clients {
            client.write(&mut self.journal, &mut self.log);
        }
        self.part()
    }

    /// Wait for something to do, at most until the next deadline.
    fn wait(&self) -> io::Result<Vec<Source>> {
        let mut sources = vec![Source::Signals, Source::Listener];
        let mut fds = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.listener, PollFlags::IN),
        ];
        for (index, client) in self.clients.iter().enumerate() {
            let mut flags = PollFlags::IN;
            if client.wants(&self.journal, &self.log) {
                flags |= PollFlags::OUT;
            }
            sources.push(Source::Client(index));
            fds.push(PollFd::from_borrowed_fd(client.as_fd(), flags));
        }
        if let Some(stdin) = self.input.wants() {
            sources.push(Source::Stdin);
            fds.push(PollFd::new(stdin, PollFlags::OUT));
        }
        if self.has_room() {
            let streams = [
                (Source::Stdout, &self.started.stdout),
                (Source::Stderr, &self.started.stderr),
            ];
            for (source, fd) in streams {
                if let Some(fd) = fd {
                    sources.push(source);
                    fds.push(PollFd::new(fd, PollFlags::IN));
                }
            }
        }
        let limit = self.next_deadline().map(|at| {
            let left = at.saturating_sub(clock::running()).min(60_000);
            Timespec {
                tv_sec: i64::try_from(left / 1000).unwrap_or(0),
                tv_nsec: i64::try_from(left % 1000 * 1_000_000).unwrap_or(0),
            }
        });
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(sources
            .into_iter()
            .zip(&fds)
            .filter(|(_, fd)| !fd.revents().is_empty())
            .map(|(source, _)| source)
            .collect())
    }

    fn next_deadline(&self) -> Option<u64> {
        let phase = match self.phase {
            Phase::Running => self.deadline,
            Phase::Lingering { quiet, last, .. } => self.has_room().then_some(quiet.min(last)),
            // Who was killed is looked after until he is gone.
            Phase::Ending { kill, .. } => Some(kill.max(clock::running() + 10)),
            Phase::Background | Phase::Over => None,
        };
        let look = self.clients.is_empty().then(|| clock::running() + LOOK);
        phase.into_iter().chain(self.grace_end()).chain(look).min()
    }

    /// When the grace is over, if nobody is attached to a run that wants it.
    fn grace_end(&self) -> Option<u64> {
        let ends = matches!(
            self.phase,
            Phase::Running | Phase::Lingering { .. } | Phase::Over
        );
        self.lonely
            .filter(|_| ends && !self.run.job)
            .map(|since| since.saturating_add(self.run.grace.saturating_mul(1000)))
    }

    /// Whether output can be taken: what isn't acknowledged has its limit, and while
    /// a client is there the command doesn't run far ahead of it.
    fn has_room(&self) -> bool {
        if self.run.job || self.end.is_some() {
            return true;
        }
        let owner = self.clients.iter().find_map(|client| match client.role {
            Role::Owner(position) => Some(position),
            _ => None,
        });
        let ahead = owner.is_none_or(|position| self.journal.end() - position < AHEAD);
        let kept = self.journal.end() - self.journal.start();
        ahead && kept < self.run.journal && self.journal.can_grow()
    }

    fn accept(&mut self) {
        if let Ok((stream, _)) = self.listener.accept()
            && folder::is_own(&stream).is_ok()
            && let Ok(client) = Client::new(stream)
        {
            self.clients.push(client);
        }
    }

    pub(super) fn hear(&mut self, index: usize, said: Said) {
        match said {
            Said::First(request) => self.greet(index, &request),
            Said::Then(message) => {
                if matches!(self.clients[index].role, Role::Owner(_)) {
                    self.obey(index, message);
                } else {
                    self.clients[index].gone = true;
                }
            }
        }
    }

    /// Take a client's request.
    fn greet(&mut self, index: usize, request: &Request) {
        let (role, reply) = match request {
            Request::Run(_) if !self.run.job => self.own(index, 0, Reply::Started),
            Request::Run(_) => (Role::Leaving, Some(Reply::Started)),
            Request::Attach { offset, .. } if !self.run.job => {
                let (stdin, stdin_ended) = self.input.received();
                self.own(index, *offset, Reply::Attached { stdin, stdin_ended })
            }
            Request::Tail { follow, .. } => {
                let position = 0;
                let follow = *follow;
                (Role::Tail { position, follow }, Some(Reply::Started))
            }
            Request::Wait { .. } => (Role::Wait, None),
            Request::Stop { .. } => {
                self.stop();
                (Role::Stop, None)
            }
            Request::Hello
            | Request::Attach { .. }
            | Request::Jobs
            | Request::IsSetUp { .. }
            | Request::Ports
            | Request::WatchPorts { .. }
            | Request::Leave
            | Request::Put { .. }
            | Request::Get { .. }
            | Request::Sync { .. }
            | Request::Forward { .. } => (
                Role::Leaving,
                Some(Reply::Failed(Failure::Lost(Loss::Unknown))),
            ),
        };
        let client = &mut self.clients[index];
        client.role = role;
        if let Some(reply) = reply {
            client.reply(&reply);
        }
    }

    /// Let a client go on with the run at `offset`; who had it before is let go.
    fn own(&mut self, index: usize, offset: u64, reply: Reply) -> (Role, Option<Reply>) {
        if offset < self.journal.start() || offset > self.journal.end() {
            let lost = Failure::Lost(Loss::Acknowledged);
            return (Role::Leaving, Some(Reply::Failed(lost)));
        }
        for (other, client) in self.clients.iter_mut().enumerate() {
            if other != index && matches!(client.role, Role::Owner(_)) {
                client.gone = true;
            }
        }
        (Role::Owner(offset), Some(reply))
    }

    fn obey(&mut self, index: usize, message: ToRun) {
        match message {
            ToRun::Stdin(bytes) => {
                if !self.input.push(&bytes) {
                    self.clients[index].gone = true;
                }
            }
            ToRun::StdinEnd => self.input.finish(),
            ToRun::Signal(number) => {
                if self.phase == Phase::Running
                    && let Some(signal) = Signal::from_named_raw(i32::from(number))
                    && let Some(group) = command::foreground(&self.started)
                {
                    // Whoever is gone needs no signal.
                    let _: rustix::io::Result<()> = kill_process_group(group, signal);
                }
            }
            ToRun::Resize(size) => {
                if let Some(terminal) = &self.started.terminal {
                    drop(command::resize(terminal, size));
                }
            }
            ToRun::Cancel => {
                if self.end.is_none() {
                    self.end_all(Ending::Cancelled(Why::Asked));
                }
            }
            ToRun::Abandon => {
                self.abandoned = true;
                if self.end.is_none() {
                    self.end_all(Ending::Cancelled(Why::Asked));
                }
            }
            ToRun::Ack(offset) => self.journal.acknowledge(offset),
        }
    }

    fn stop(&mut self) {
        match self.phase {
            Phase::Running | Phase::Lingering { .. } => {
                self.end_all(Ending::Cancelled(Why::Asked));
            }
            Phase::Background => self.end_all(Ending::Stopped),
            Phase::Ending { .. } | Phase::Over => {}
        }
    }

    /// Take the status of everybody who ended.
    pub(super) fn reap(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if Some(pid) == self.started.pid && self.phase == Phase::Running {
                        if status.exited() {
                            self.started.tell(&mut self.session);
                        }
                        let now = clock::running();
                        self.phase = Phase::Lingering {
                            outcome: outcome(status),
                            quiet: now + QUIET,
                            last: now + LINGER,
                        };
                    }
                }
                Ok(None) => {
                    self.childless = false;
                    return;
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => {
                    self.childless = true;
                    return;
                }
            }
        }
    }

    /// Read a stream once; false when there was nothing.
    fn read_output(&mut self, stream: Stream) -> bool {
        let from = match stream {
            Stream::Stdout => &mut self.started.stdout,
            Stream::Stderr => &mut self.started.stderr,
        };
        let Some(fd) = from else { return false };
        match rustix::io::read(&*fd, &mut self.buffer[..PIECE]) {
            Ok(0) => *from = None,
            Ok(length) => {
                let bytes = Blob::from(&self.buffer[..length]);
                self.emit(&match stream {
                    Stream::Stdout => FromRun::Stdout(bytes),
                    Stream::Stderr => FromRun::Stderr(bytes),
                });
                if let Phase::Lingering { quiet, .. } = &mut self.phase {
                    *quiet = clock::running() + QUIET;
                }
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return false,
            // A terminal that nobody has open any more.
            Err(_) => *from = None,
        }
        true
    }

    /// Keep a message where it belongs.
    pub(super) fn emit(&mut self, message: &FromRun) {
        let Ok(bytes) = encode(message) else { return };
        if self.run.job || self.end.is_some() {
            self.log.append(bytes);
        } else {
            self.journal.append(bytes);
        }
    }

    /// What the time and the state of the processes make of the phase.
    fn advance(&mut self) {
        let now = clock::running();
        if self.grace_end().is_some_and(|end| now >= end) && self.phase != Phase::Over {
            self.end_all(Ending::Lost(Loss::GracePassed));
        }
        match self.phase {
            Phase::Running => {
                if self.deadline.is_some_and(|deadline| now >= deadline) {
                    self.end_all(Ending::Cancelled(Why::TimedOut));
                }
            }
            Phase::Lingering {
                outcome,
                quiet,
                last,
            } => {
                let whole = self.started.stdout.is_none() && self.started.stderr.is_none();
                // What can't be taken now isn't lost by waiting.
                let waited = self.has_room() && (now >= quiet || now >= last);
                if whole || waited && (now >= last || !self.is_talking()) {
                    self.tell_end(outcome);
                } else if waited {
                    self.phase = Phase::Lingering {
                        outcome,
                        quiet: clock::running() + QUIET,
                        last,
                    };
                }
            }
            Phase::Ending { why, kill } => {
                if !self.childless && now >= kill {
                    self.kill_all(now - kill);
                }
                if self.childless || now >= kill + GIVE_UP {
                    self.drain();
                    match why {
                        Ending::Cancelled(why) => self.tell_end(Outcome::Cancelled(why)),
                        Ending::Lost(loss) => self.tell_end(Outcome::Lost(loss)),
                        Ending::Stopped => self.leave_background(),
                    }
                }
            }
            Phase::Background => {
                if self.childless {
                    self.drain();
                    self.leave_background();
                }
            }
            Phase::Over => {}
        }
    }

    /// Whether whom the command left behind is about to print, or just did.
    fn is_talking(&mut self) -> bool {
        // In this order: who isn't busy now has written what he had to write.
        let busy = process::is_busy(rustix::process::getpid());
        let stdout = self.read_output(Stream::Stdout);
        self.read_output(Stream::Stderr) || stdout || busy
    }

    /// Take what is left in the streams: nobody writes to them any more.
    fn drain(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            // Who could not be ended may write on.
            for _ in 0..1000 {
                if !self.read_output(stream) {
                    break;
                }
            }
        }
        self.started.stdout = None;
        self.started.stderr = None;
    }

    pub(super) fn tell_end(&mut self, outcome: Outcome) {
        self.reap();
        let background = if self.childless {
            0
        } else {
            process::count(rustix::process::getpid())
        };
        let end = End {
            outcome,
            background,
        };
        self.emit(&FromRun::End(end));
        self.end = Some(end);
        self.input.close();
        self.deadline = None;
        if background == 0 {
            self.phase = Phase::Over;
            if self.run.job {
                self.save_job(JobState::Ended(outcome));
            }
        } else {
            self.phase = Phase::Background;
            self.save_job(JobState::Background(outcome));
        }
    }

    fn leave_background(&mut self) {
        let Some(end) = self.end else { return };
        if !self.run.job {
            self.emit(&FromRun::End(End {
                background: 0,
                ..end
            }));
        }
        self.phase = Phase::Over;
        self.save_job(JobState::Ended(end.outcome));
    }

    pub(super) fn save_job(&mut self, state: JobState) {
        self.job.state = state;
        // Without its file a job runs on, unlisted.
        drop(jobs::save(&self.folder, &self.job));
    }

    /// Let go of who is served or gone; true when nothing is left to do.
    fn part(&mut self) -> io::Result<bool> {
        let over = self.phase == Phase::Over;
        let ended = self.end.is_some();
        let taken = self.abandoned || self.journal.start() == self.journal.end();
        let waits = self.run.job || self.phase != Phase::Background;
        for client in &mut self.clients {
            let done = match client.role {
                Role::Wait => ended && waits,
                Role::Stop => over,
                Role::Tail { position, follow } => {
                    position == self.log.end() && (!follow || over || (self.run.job && ended))
                }
                Role::Owner(_) => ended && taken,
                Role::New | Role::Leaving => false,
            };
            if done {
                match (client.role, self.end) {
                    (Role::Wait | Role::Stop, Some(end)) => client.reply(&Reply::Ended(end)),
                    (Role::Owner(_), _) => client.reply(&FromRun::Released),
                    (
                        Role::New | Role::Tail { .. } | Role::Leaving | Role::Wait | Role::Stop,
                        _,
                    ) => {}
                }
                client.role = Role::Leaving;
                client.write(&mut self.journal, &mut self.log);
            }
        }
        self.clients
            .retain(|client| !client.gone && !client.is_served());
        let owned = self
            .clients
            .iter()
            .any(|client| matches!(client.role, Role::Owner(_)));
        if owned {
            self.lonely = None;
        } else {
            self.lonely.get_or_insert_with(clock::running);
        }
        if !over
            || self
                .clients
                .iter()
                .any(|client| client.role == Role::Leaving)
        {
            return Ok(false);
        }
        let now = clock::running();
        if taken {
            folder::finish(&self.folder, Loss::Acknowledged)?;
        } else if self.grace_end().is_some_and(|end| now >= end) {
            folder::finish(&self.folder, Loss::GracePassed)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

#[derive(Debug, Clone, Copy)]
enum Stream {
    Stdout,
    Stderr,
}
