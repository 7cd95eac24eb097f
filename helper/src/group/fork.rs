//! Starts a process in a group: born there it costs nothing, moved there milliseconds.

#![expect(
    unsafe_code,
    reason = "the standard library starts no process in a group"
)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// `CLONE_INTO_CGROUP` of linux/sched.h, since Linux 5.7.
const INTO_CGROUP: u64 = 0x2_0000_0000;
/// What a child exits with that could not execute its program.
const NOT_EXECUTED: i32 = 127;

/// The arguments of clone3(2), in their second version with `cgroup`.
#[repr(C, align(8))]
#[derive(Default)]
struct Arguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Start `command` in the group of that folder. A program that can't be executed shows
/// as a child that ends with 127.
pub(super) fn spawn_into(group: &Path, command: &mut Command) -> io::Result<u32> {
    let folder = File::open(group)?;
    let arguments = Arguments {
        flags: INTO_CGROUP,
        exit_signal: u64::try_from(libc::SIGCHLD).unwrap_or_default(),
        cgroup: u64::try_from(folder.as_raw_fd()).unwrap_or_default(),
        ..Arguments::default()
    };
    // SAFETY: without CLONE_VM this is fork(2): the child has a copy of all memory, on the
    // same stack. This process has one thread, so that no lock is held there by another
    // that the copy doesn't have, and the child does nothing but execute a program or
    // end. `arguments` is as long as is said.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            std::ptr::from_ref(&arguments),
            size_of::<Arguments>(),
        )
    };
    match pid {
        0 => {
            drop(command.exec());
            // SAFETY: ends the child at once, without what the parent would do at its end.
            unsafe { libc::_exit(NOT_EXECUTED) }
        }
        1.. => u32::try_from(pid).map_err(io::Error::other),
        _ => Err(io::Error::last_os_error()),
    }
}
