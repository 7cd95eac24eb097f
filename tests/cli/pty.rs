//! A terminal for the binary under test: the other end of a pseudo-terminal.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set its scene up should fail at once"
)]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

/// No single answer takes longer.
const LIMIT: Duration = Duration::from_mins(1);

/// A program in a terminal of its own, and what it has written there.
pub(crate) struct Pty {
    person: File,
    /// Open, so that the terminal stays one when the program has gone.
    terminal: OwnedFd,
    child: Child,
    said: Vec<u8>,
}

impl Pty {
    /// Start `command` in a session of its own, with a terminal of 80 columns and 24
    /// rows.
    pub(crate) fn start(command: &Command) -> Self {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let terminal = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
        let end = || Stdio::from(terminal.try_clone().unwrap());
        let mut started = Command::new("setsid");
        started.arg("--ctty").arg(command.get_program());
        started.args(command.get_args()).env_clear();
        started.envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        if let Some(folder) = command.get_current_dir() {
            started.current_dir(folder);
        }
        started.stdin(end()).stdout(end()).stderr(end());
        let pty = Self {
            person: File::from(person),
            child: started.spawn().unwrap(),
            terminal,
            said: Vec::new(),
        };
        pty.resize(80, 24);
        pty
    }

    /// Give the terminal another size.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize {
            ws_col: columns,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.person, size).unwrap();
    }

    /// Type.
    pub(crate) fn say(&mut self, text: &str) {
        self.person.write_all(text.as_bytes()).unwrap();
    }

    /// Wait until the program has written `text`; what it wrote up to its end, which
    /// isn't looked at again.
    pub(crate) fn until(&mut self, text: &str) -> String {
        let deadline = Instant::now() + LIMIT;
        loop {
            let found = self
                .said
                .windows(text.len())
                .position(|window| window == text.as_bytes());
            if let Some(at) = found {
                let said: Vec<u8> = self.said.drain(..at + text.len()).collect();
                return String::from_utf8_lossy(&said).into_owned();
            }
            assert!(self.read(deadline), "no {text:?} in {}", self.shown());
        }
    }

    /// Wait for its end; everything that it wrote meanwhile.
    pub(crate) fn end(&mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        while self.read(Instant::now()) {}
        (
            status,
            String::from_utf8_lossy(&std::mem::take(&mut self.said)).into_owned(),
        )
    }

    /// How the terminal is set.
    pub(crate) fn settings(&self) -> Termios {
        tcgetattr(&self.terminal).unwrap()
    }

    /// The program's process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn shown(&self) -> String {
        self.said.escape_ascii().to_string()
    }

    fn read(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap(),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut asked = [PollFd::new(&self.person, PollFlags::IN)];
        if poll(&mut asked, Some(&left)).unwrap() == 0 {
            return false;
        }
        let mut bytes = [0; 4096];
        match self.person.read(&mut bytes) {
            Ok(length @ 1..) => {
                self.said.extend_from_slice(&bytes[..length]);
                true
            }
            Ok(0) | Err(_) => false,
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
