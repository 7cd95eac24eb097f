//! Ctrl-C and friends while scratch folders exist: end what runs in them, so that
//! the way out goes through every destructor.

use std::io;
use std::process::{Child, Command, Output};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

use crate::error::Failure;
use crate::exit::Exit;

/// The process groups that end when this process is asked to.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    groups: Vec<Pid>,
    /// The signal that asked for the end.
    signal: Option<u8>,
}

impl Interrupt {
    /// Catch SIGINT, SIGTERM and SIGHUP from now on.
    pub(crate) fn watch() -> Result<Self, Failure> {
        let interrupt = Self::default();
        let state = Arc::clone(&interrupt.0);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let kinds = [
            (SignalKind::interrupt(), 2),
            (SignalKind::terminate(), 15),
            (SignalKind::hangup(), 1),
        ];
        let (ready, watching) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            runtime.block_on(async move {
                let mut streams = Vec::new();
                for (kind, number) in kinds {
                    match signal(kind) {
                        Ok(stream) => streams.push((stream, number)),
                        Err(error) => {
                            ready.send(Err(error)).ok();
                            return;
                        }
                    }
                }
                ready.send(Ok(())).ok();
                loop {
                    let number = std::future::poll_fn(|context| {
                        for (stream, number) in &mut streams {
                            if stream.poll_recv(context).is_ready() {
                                return std::task::Poll::Ready(*number);
                            }
                        }
                        std::task::Poll::Pending
                    })
                    .await;
                    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                    state.signal.get_or_insert(number);
                    for group in state.groups.drain(..) {
                        kill_process_group(group, Signal::KILL).ok();
                    }
                }
            });
        });
        watching
            .recv()
            .unwrap_or_else(|_| Err(io::Error::other("signals can't be watched")))?;
        Ok(interrupt)
    }

    /// A failure when the end was asked for.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let signal = self.0.lock().unwrap_or_else(PoisonError::into_inner).signal;
        match signal {
            None => Ok(()),
            Some(number) => Err(
                Failure::from("interrupted; everything is removed".to_owned())
                    .exit(Exit::Command(128 + number)),
            ),
        }
    }

    /// Start `command`, which has a process group of its own.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.signal.is_some() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let child = command.spawn()?;
        state.groups.push(Pid::from_child(&child));
        Ok(child)
    }

    /// Forget the group of a child that was waited for.
    pub(crate) fn ended(&self, group: Pid) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.groups.retain(|other| *other != group);
    }

    /// Run `command` to its end and keep what it says.
    pub(crate) fn output(&self, command: &mut Command) -> io::Result<Output> {
        use std::process::Stdio;
        let child = self.spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
        let group = Pid::from_child(&child);
        let output = child.wait_with_output();
        self.ended(group);
        output
    }
}
