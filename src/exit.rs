//! What each exit status means.

use std::process::ExitCode;

/// How a verb ended; the table of `docs/ARCHITECTURE.md` and `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: yes, or done.
    Done,
    /// 1: the answer is no: drift, denied, not healthy.
    No,
    /// 2: can't say: unknown, unclear.
    CannotSay,
    /// 64: the command line is wrong (`EX_USAGE` of sysexits.h).
    Usage,
    /// 125: boxery itself failed; the command did not run, or its status is lost.
    Own,
    /// The command's own status, 128 + signal included.
    Command(u8),
}

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::No => 1,
            Self::CannotSay => 2,
            Self::Usage => 64,
            Self::Own => 125,
            Self::Command(status) => status,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
