//! What a VM needs before its first command: a script of the user's, run once per
//! machine and text.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use boxery_wire::StateId;
use rustix::fs::{FlockOperation, flock};

use crate::folder;
use crate::machine;
use crate::stdio;

/// The folder of what is done, in that of the state.
const FOLDER: &str = "setup";

/// The file that says that the script `key` was run on this machine. A home may be
/// another machine's too.
fn mark(state: &Path, key: StateId) -> PathBuf {
    let machine: String = machine::id()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    state.join(FOLDER).join(format!("{machine}-{key}"))
}

/// Whether the script `key` was run here to a good end.
pub(crate) fn is_done(state: &Path, key: StateId) -> bool {
    mark(state, key).exists()
}

/// What starts the script `key` with the program `file`, up to the script's own
/// arguments. `folder` is that of the run.
pub(crate) fn words(folder: &Path, key: StateId, file: &Path) -> io::Result<[OsString; 4]> {
    let state = folder.parent().and_then(Path::parent);
    let mark = mark(state.ok_or(io::ErrorKind::NotFound)?, key);
    let own = std::env::current_exe()?;
    Ok([own.into(), "setup".into(), mark.into(), file.into()])
}

/// Be the command of such a run: wait for whoever does the same, then do it unless he
/// did, and note that it is done.
pub(crate) fn run(mark: &Path, command: &[OsString]) -> io::Result<ExitCode> {
    let folder = mark.parent().ok_or(io::ErrorKind::NotFound)?;
    let name = mark.file_name().and_then(|name| name.to_str());
    let (name, [program, arguments @ ..]) = (name.ok_or(io::ErrorKind::NotFound)?, command) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let lock = fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(folder.join(format!("{name}.lock")))?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        stdio::complain(&"another command is setting this VM up; waiting for it");
        flock(&lock, FlockOperation::LockExclusive)?;
    }
    if mark.exists() {
        return Ok(ExitCode::SUCCESS);
    }
    let status = Command::new(program).args(arguments).status()?;
    if status.success() {
        folder::replace(folder, name, b"")?;
        return Ok(ExitCode::SUCCESS);
    }
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    let code = code.and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(u8::MAX)))
}
