//! The laptop's terminal as it is handed to a command on a VM.

use std::io;

use boxery_remote::Size;
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// The terminal in raw mode: every key goes to the VM. Dropping it puts the terminal
/// back as it was.
pub(crate) struct Raw {
    before: Termios,
}

impl Raw {
    /// Enter raw mode; fails where standard input is no terminal.
    pub(crate) fn enter() -> io::Result<Self> {
        let before = tcgetattr(io::stdin()).map_err(|error| match error {
            Errno::NOTTY => io::Error::other("standard input is no terminal"),
            other => other.into(),
        })?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }

    /// Its size, now and whenever it changes.
    pub(crate) fn sizes(&self) -> io::Result<watch::Receiver<Size>> {
        let (sender, sizes) = watch::channel(size());
        let mut changes = signal(SignalKind::window_change())?;
        tokio::spawn(async move {
            while changes.recv().await.is_some() && sender.send(size()).is_ok() {}
        });
        Ok(sizes)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        tcsetattr(io::stdin(), OptionalActions::Drain, &self.before).ok();
    }
}

fn size() -> Size {
    match tcgetwinsize(io::stdin()) {
        Ok(size) => Size {
            columns: size.ws_col,
            rows: size.ws_row,
        },
        Err(_) => Size {
            columns: 80,
            rows: 24,
        },
    }
}
