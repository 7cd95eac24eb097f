//! The command's stdin: what came from the laptop and hasn't been taken.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use boxery_wire::STDIN_WINDOW;

/// How often the laptop is told.
const TOLD: u64 = 256 * 1024;

/// Bytes on their way to the command.
#[derive(Debug, Default)]
pub(super) struct Input {
    to: Option<OwnedFd>,
    is_terminal: bool,
    waiting: VecDeque<u8>,
    received: u64,
    told: u64,
    ended: bool,
}

impl Input {
    pub(super) fn new(to: Option<OwnedFd>, is_terminal: bool) -> Self {
        Self {
            to,
            is_terminal,
            ..Self::default()
        }
    }

    /// How much came in all, and whether that is all.
    pub(super) fn received(&self) -> (u64, bool) {
        (self.received, self.ended)
    }

    /// Take what the laptop sent; false when it may not send so much.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        self.received += bytes.len() as u64;
        if self.ended || self.received - self.told > STDIN_WINDOW {
            return false;
        }
        if self.to.is_some() {
            self.waiting.extend(bytes);
            self.write();
        }
        true
    }

    /// Nothing more comes.
    pub(super) fn finish(&mut self) {
        if !self.ended {
            self.ended = true;
            if self.is_terminal {
                // The character that means the end of a file to a terminal.
                self.waiting.push_back(4);
            }
            self.write();
        }
    }

    /// What to wait for until it can be written to.
    pub(super) fn wants(&self) -> Option<&OwnedFd> {
        self.to.as_ref().filter(|_| !self.waiting.is_empty())
    }

    /// Give the command what it takes.
    pub(super) fn write(&mut self) {
        while let Some(to) = &self.to {
            let (front, _) = self.waiting.as_slices();
            if front.is_empty() {
                break;
            }
            match rustix::io::write(to, front) {
                Ok(length) => drop(self.waiting.drain(..length)),
                Err(rustix::io::Errno::AGAIN) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(_nobody_reads) => self.close(),
            }
        }
        if self.ended && self.waiting.is_empty() && !self.is_terminal {
            self.close();
        }
    }

    /// Nobody reads it: what still comes goes nowhere.
    pub(super) fn close(&mut self) {
        self.to = None;
        self.waiting = VecDeque::new();
    }

    /// How much the command took in all, when it is time to tell.
    pub(super) fn news(&mut self) -> Option<u64> {
        let taken = self.received - self.waiting.len() as u64;
        if taken < self.told + TOLD {
            return None;
        }
        self.told = taken;
        Some(taken)
    }
}
