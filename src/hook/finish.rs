//! The one place that writes a reply.

use std::io;
use std::process::ExitCode;

use boxery_agents::Reply;

/// The exit status that blocks the call in every agent that has one, whatever
/// the reply holds.
const BLOCK: u8 = 2;

/// Write `reply` and say how the process ends. A reply that can't be written
/// ends with the status that blocks.
pub(crate) fn write_reply(reply: &Reply) -> ExitCode {
    ExitCode::from(write_reply_status(reply))
}

/// Like [`write_reply`], with the bare number.
pub(crate) fn write_reply_status(reply: &Reply) -> u8 {
    let written = put(io::stderr(), &reply.stderr).and(put(io::stdout(), &reply.stdout));
    match written {
        Ok(()) => reply.exit,
        Err(_) => BLOCK,
    }
}

fn put(mut stream: impl io::Write, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

/// A denial without an agent's own form: for a call whose agent isn't known.
pub(crate) fn bare_denial(reason: &str) -> Reply {
    Reply {
        stdout: String::new(),
        stderr: format!("{reason}\n"),
        exit: BLOCK,
    }
}
