//! The laptop's end of a run: sends script and frames, takes the streams apart,
//! ends the tree when it must.

use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::marks::{Mark, Marks, Piece};
use super::script::{STAGE_ONE, Script};
use super::{Cancel, Input, Output, RunEnd, RunExit, RunIo, RunRequest};
use crate::{ChannelEnd, Pipe, RemoteError};

/// How long a login shell may take to start our `/bin/sh`.
const GREETING: Duration = Duration::from_mins(1);
/// How long the end of the tree may take: TERM, 2 s, KILL.
const ENDING: Duration = Duration::from_secs(15);
/// How long a reader of our output may stall an end.
const STALL: Duration = Duration::from_millis(300);
const CHUNK: usize = 256 * 1024;
/// The VM starts a program for each frame of input.
const FRAME: usize = 1024 * 1024;
/// A read of this much says that more comes right behind.
const BULK: usize = 16 * 1024;
const NOISE: usize = 200;

enum Event {
    Mark(Mark),
    /// The other end of our own stdout or stderr is gone.
    Closed,
}

/// Run a command and pass its streams on as they come. `cancel` resolves when
/// the caller wants it ended. Whatever happens before an end is known, dropping
/// the future ends the whole tree on the VM.
#[tracing::instrument(
    name = "run.drive",
    level = "debug",
    skip_all,
    fields(program = request.argv.first().map(|p| String::from_utf8_lossy(p).into_owned()))
)]
pub async fn run(
    pipe: &Pipe,
    request: &RunRequest,
    io: RunIo,
    cancel: impl Future<Output = Cancel> + Send,
) -> Result<RunEnd, RemoteError> {
    let mark = [b"\x1e", random_word()?.as_bytes()].concat();
    let script = Script::new(request, io.stdin.is_some(), &mark, &random_word()?)?;
    let channel = pipe.exec(STAGE_ONE).await?;
    let (kill, killed) = watch::channel(false);
    let (events, mut event) = mpsc::unbounded_channel();
    let feed = feed(channel.stdin, script, io.stdin, killed.clone());
    let mut stdout = Pump::new(&mark, io.stdout, &events, &killed);
    let mut stderr = Pump::new(&mark, io.stderr, &events, &killed);
    drop(events);

    let mut feed = pin!(feed);
    let mut fed = false;
    let mut cancel = pin!(cancel);
    let mut end = channel.end;
    let mut how_ended = None;
    let mut state = State::default();
    let mut deadline = Instant::now() + GREETING;
    {
        let mut pumps =
            pin!(async { tokio::join!(stdout.run(channel.stdout), stderr.run(channel.stderr)) });
        let mut pumped = false;
        while !(state.is_over() || (pumped && event.is_empty())) {
            tokio::select! {
                Some(event) = event.recv() => match event {
                    Event::Mark(mark) => {
                        let begins = !state.began && mark == Mark::Begin;
                        state.take(mark, request)?;
                        if begins {
                            deadline = request.timeout.map_or_else(far, |limit| Instant::now() + limit);
                        }
                    }
                    Event::Closed => {
                        if state.ending.is_none() && state.ends < 2 {
                            state.ending = Some(RunExit::OutputClosed);
                            kill.send_replace(true);
                            deadline = Instant::now() + ENDING;
                        }
                    }
                },
                _ = &mut pumps, if !pumped => pumped = true,
                () = &mut feed, if !fed => fed = true,
                ended = &mut end, if how_ended.is_none() => how_ended = Some(ended),
                why = &mut cancel, if state.ending.is_none() => {
                    state.ending = Some(RunExit::Cancelled(why));
                    kill.send_replace(true);
                    deadline = Instant::now() + ENDING;
                }
                () = sleep_until(deadline) => {
                    if !state.began && state.ending.is_none() {
                        return Err(RemoteError::Timeout {
                            address: pipe.options().address(),
                            seconds: GREETING.as_secs(),
                            step: "login shell",
                        });
                    }
                    if state.ending.is_some() {
                        // The VM doesn't answer: cutting the connection ends the
                        // run there as soon as its server notices.
                        break;
                    }
                    state.ending = Some(RunExit::TimedOut);
                    kill.send_replace(true);
                    deadline = Instant::now() + ENDING;
                }
            }
        }
    }
    let (noise, bytes) = (
        [stdout.noise, stderr.noise].concat(),
        (stdout.bytes, stderr.bytes),
    );
    let exit = match (state.ending, state.code) {
        (Some(ending), _) => ending,
        (None, Some(code)) => RunExit::Code(code),
        (None, None) => {
            let ended = match how_ended {
                Some(ended) => Some(ended),
                None => timeout(Duration::from_secs(5), end).await.ok(),
            };
            return Err(why_not(ended, state.began, &noise));
        }
    };
    Ok(RunEnd {
        exit,
        left: state.left,
        stdout_bytes: bytes.0,
        stderr_bytes: bytes.1,
    })
}

fn far() -> Instant {
    Instant::now() + Duration::from_hours(30 * 365 * 24)
}

fn random_word() -> Result<String, RemoteError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| RemoteError::BadRequest {
        what: format!("this machine gives no random bytes: {error}"),
    })?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// A stream ended without the end of the command.
fn why_not(ended: Option<ChannelEnd>, began: bool, noise: &[u8]) -> RemoteError {
    match (ended, began) {
        (Some(ChannelEnd::Failed(error)), false) => match error {
            RemoteError::Lost if !noise.is_empty() => no_greeting(noise),
            error => error,
        },
        // 255 is how `ssh` ends when its connection breaks.
        (Some(ChannelEnd::Failed(_) | ChannelEnd::Status(255)) | None, true) => RemoteError::Lost,
        (Some(ChannelEnd::Status(_) | ChannelEnd::Signal(_)), true) => RemoteError::NoStatus,
        (_, false) => no_greeting(noise),
    }
}

fn no_greeting(noise: &[u8]) -> RemoteError {
    let text = String::from_utf8_lossy(noise);
    let words: Vec<&str> = text.split_whitespace().collect();
    RemoteError::NoGreeting {
        output: words.join(" ").replace(char::is_control, ""),
    }
}

#[derive(Debug, Default)]
struct State {
    began: bool,
    ends: u8,
    code: Option<u8>,
    left: Option<u32>,
    ending: Option<RunExit>,
}

impl State {
    fn take(&mut self, mark: Mark, request: &RunRequest) -> Result<(), RemoteError> {
        match mark {
            Mark::Begin => self.began = true,
            Mark::End(status) => {
                self.ends += 1;
                // Korn shells say 256+n for a signal.
                let status = if status > 256 { status - 128 } else { status };
                self.code = Some(u8::try_from(status & 0xff).unwrap_or(u8::MAX));
            }
            Mark::Swept(left) => self.left = Some(left),
            Mark::Beat => {}
            Mark::Failed(what) => {
                let path = request.cwd.clone().unwrap_or_default();
                return Err(match what.as_str() {
                    "gone" => RemoteError::FolderGone { path },
                    "denied" => RemoteError::FolderDenied { path },
                    _ => RemoteError::NoBash,
                });
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        match self.ending {
            None => self.ends >= 2,
            Some(_) => self.left.is_some(),
        }
    }
}

/// Resolves when the run is to end.
async fn wait(killed: &mut watch::Receiver<bool>) {
    drop(killed.wait_for(|killed| *killed).await);
}

/// Sends the script, then the caller's input as frames, then the end.
async fn feed(
    mut channel: Pin<Box<dyn AsyncWrite + Send>>,
    script: Script,
    mut input: Option<Input>,
    mut killed: watch::Receiver<bool>,
) {
    let mut text = script.text;
    for chunk in script.first.chunks(CHUNK) {
        text.extend(format!("d {}\n", chunk.len()).bytes());
        text.extend(chunk);
    }
    if !script.first.is_empty() && input.is_none() {
        text.extend(b"e\n");
    }
    if channel.write_all(&text).await.is_err() {
        return;
    }
    drop(channel.flush().await);
    let mut frame = Vec::new();
    loop {
        let read = async {
            match input.as_mut() {
                None => std::future::pending().await,
                Some(input) => {
                    frame.resize(FRAME, 0);
                    read_frame(input, &mut frame).await
                }
            }
        };
        tokio::select! {
            biased;
            () = wait(&mut killed) => {
                drop(channel.write_all(b"k\n").await);
                drop(channel.flush().await);
                break;
            }
            read = read => {
                let sent = match read {
                    Ok(0) | Err(_) => {
                        input = None;
                        channel.write_all(b"e\n").await
                    }
                    Ok(length) => {
                        frame.truncate(length);
                        match channel.write_all(format!("d {length}\n").as_bytes()).await {
                            Ok(()) => channel.write_all(&frame).await,
                            error => error,
                        }
                    }
                };
                if sent.is_err() || channel.flush().await.is_err() {
                    return;
                }
            }
        }
    }
    // The end of this stream would end the run: it stays open until all is over.
    std::future::pending::<()>().await;
}

/// Read what there is: little at once, much until a frame is full or it pauses.
async fn read_frame(input: &mut Input, frame: &mut [u8]) -> std::io::Result<usize> {
    let mut length = input.read(frame).await?;
    while length >= BULK && length < frame.len() {
        let more = input.read(&mut frame[length..]);
        match timeout(Duration::from_millis(2), more).await {
            Ok(Ok(0)) | Err(_) => break,
            Ok(more) => length += more?,
        }
    }
    Ok(length)
}

/// One of the command's streams on its way to the caller.
struct Pump {
    marks: Marks,
    output: Option<Output>,
    events: mpsc::UnboundedSender<Event>,
    killed: watch::Receiver<bool>,
    noise: Vec<u8>,
    bytes: u64,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Before,
    Running,
    After,
}

impl Pump {
    fn new(
        mark: &[u8],
        output: Output,
        events: &mpsc::UnboundedSender<Event>,
        killed: &watch::Receiver<bool>,
    ) -> Self {
        Self {
            marks: Marks::new(mark),
            output: Some(output),
            events: events.clone(),
            killed: killed.clone(),
            noise: Vec::new(),
            bytes: 0,
            stage: Stage::Before,
        }
    }

    async fn run(&mut self, mut from: Pin<Box<dyn AsyncRead + Send>>) {
        let mut chunk = vec![0; CHUNK];
        let mut bytes = Vec::new();
        loop {
            // A connection that breaks is an end of file without an end mark.
            let read = from.read(&mut chunk).await.unwrap_or(0);
            bytes.clear();
            let mut marks = std::mem::replace(&mut self.marks, Marks::new(b"\x1e"));
            let mut ended = Vec::new();
            let take = |piece: Piece<'_>| match piece {
                Piece::Bytes(more) => match self.stage {
                    Stage::Before => {
                        let room = NOISE.saturating_sub(self.noise.len());
                        self.noise.extend(more.iter().take(room));
                    }
                    Stage::Running => bytes.extend(more),
                    Stage::After => {}
                },
                Piece::Mark(mark) => {
                    match mark {
                        Mark::Begin => self.stage = Stage::Running,
                        Mark::End(_) => self.stage = Stage::After,
                        Mark::Failed(_) | Mark::Swept(_) | Mark::Beat => {}
                    }
                    ended.push(mark);
                }
            };
            if read == 0 {
                marks.finish(take);
            } else {
                marks.feed(&chunk[..read], take);
            }
            self.marks = marks;
            self.write(&bytes).await;
            // Told only after what stood before it was passed on.
            for mark in ended {
                drop(self.events.send(Event::Mark(mark)));
            }
            if read == 0 {
                return;
            }
        }
    }

    async fn write(&mut self, bytes: &[u8]) {
        let Some(output) = self.output.as_mut() else {
            return;
        };
        if bytes.is_empty() {
            return;
        }
        self.bytes += bytes.len() as u64;
        let mut killed = self.killed.clone();
        let write = async {
            output.write_all(bytes).await?;
            output.flush().await
        };
        let written = tokio::select! {
            written = write => written.is_ok(),
            // Who doesn't read can't keep a run from ending.
            () = async {
                wait(&mut killed).await;
                tokio::time::sleep(STALL).await;
            } => false,
        };
        if !written {
            self.output = None;
            drop(self.events.send(Event::Closed));
        }
    }
}
