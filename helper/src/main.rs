//! Answers one question: how does a command run here, on the VM?
//!
//! Start at [`serve`], which speaks `wire` on stdin and stdout, one for each
//! connection, and starts a [`supervise`] for each run. A run belongs to its
//! supervisor alone: it lives on when the connection and its `serve` are gone,
//! and any later `serve` finds it by its name in the [`folder`] of runs.
//!
//! Invariant: a run is started at most once, and its supervisor ends only when
//! none of its processes is left, or it says how many are.

mod children;
mod clock;
mod copy;
mod folder;
mod forward;
mod git;
mod group;
mod jobs;
mod keep;
mod leave;
mod login;
mod machine;
mod old;
mod own;
mod ports;
mod prepare;
mod process;
mod proxy;
mod sandbox;
mod serve;
mod session;
mod stdio;
mod supervise;
mod sync;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use group::Group;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let own = arguments.next().unwrap_or_default();
    let arguments: Vec<OsString> = arguments.collect();
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    if let [verb, mark, command @ ..] = arguments.as_slice()
        && verb == "setup"
    {
        return prepare::run(mark.as_ref(), command).unwrap_or_else(|error| {
            stdio::complain(&error);
            ExitCode::FAILURE
        });
    }
    let done = match words.as_slice() {
        ["serve"] => serve::run(own),
        ["supervise"] => supervise::run(None),
        ["supervise", group] => supervise::run(Group::at(PathBuf::from(group))),
        ["group-open", pid] => group::open(pid),
        ["group-close", pid] => group::close(pid),
        ["copy"] => copy::run(),
        ["print-login", file] => login::print(file.as_ref()),
        ["version"] => stdio::write_all(version().as_bytes()),
        _ => Err(std::io::Error::other("usage: boxery-helper serve")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            stdio::complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn version() -> String {
    let [a, b, c, d, ..] = boxery_wire::BUILD;
    let build = u32::from_be_bytes([a, b, c, d]);
    format!("boxery-helper {} {build:08x}\n", env!("CARGO_PKG_VERSION"))
}

/// The environment that this process was started with.
fn environment() -> Vec<(Vec<u8>, Vec<u8>)> {
    std::env::vars_os()
        .map(|(name, value)| (name.into_vec(), value.into_vec()))
        .collect()
}
