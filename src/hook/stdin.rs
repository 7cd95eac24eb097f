//! The payload: standard input to its end, within a bound and a deadline.

use std::io;
use std::os::fd::AsFd as _;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A payload above this is drained and counts as unreadable.
const LARGEST: usize = 16 << 20;

/// What came on standard input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    /// All of it.
    Whole(Vec<u8>),
    /// Not all of it, and why.
    Broken(&'static str),
}

/// Read standard input to its end.
pub(crate) fn read_payload(deadline: Instant) -> Payload {
    let mut content = Vec::new();
    let mut large = false;
    let mut buffer = vec![0; 64 << 10];
    let stdin = io::stdin();
    loop {
        match wait_readable(&stdin, deadline) {
            Ok(true) => {}
            Ok(false) => return Payload::Broken("it did not end within boxery's deadline"),
            Err(_) => return Payload::Broken("standard input can't be read"),
        }
        match rustix::io::read(stdin.as_fd(), &mut buffer[..]) {
            Ok(0) if large => return Payload::Broken("it is larger than 16 MiB"),
            Ok(0) => return Payload::Whole(content),
            Ok(count) if content.len() + count <= LARGEST => {
                content.extend_from_slice(&buffer[..count]);
            }
            Ok(_) => large = true,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => return Payload::Broken("standard input can't be read"),
        }
    }
}

/// Whether standard input has something to read, or its end, before the deadline.
fn wait_readable(stdin: &io::Stdin, deadline: Instant) -> Result<bool, rustix::io::Errno> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let timeout = Timespec::try_from(left).map_err(|_| rustix::io::Errno::INVAL)?;
        let mut polled = [PollFd::new(stdin, PollFlags::IN)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error),
        }
    }
}
