//! One copy of files from or to this VM, in a process of its own, so that a slow disk
//! holds up nobody else. What it does is [`boxery_wire::copy`]'s.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use boxery_wire::copy::{Talk, Trouble, find_target, send, take};
use boxery_wire::{Blob, Failure, Kind, Misplaced, Reply, Request};

/// Serve one copy, over the socket that is our stdin.
pub(crate) fn run() -> io::Result<()> {
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let mut talk = Talk::new(UnixStream::from(control), &[]);
    let home = crate::environment()
        .into_iter()
        .find_map(|(name, value)| (name == b"HOME").then_some(value));
    let home = PathBuf::from(OsStr::from_bytes(&home.unwrap_or_else(|| b"/".to_vec())));
    let request: Request = talk.hear()?;
    let done = match request {
        Request::Get { path, after } => {
            let root = home.join(OsStr::from_bytes(&path));
            let kind = match root.symlink_metadata() {
                Ok(found) if found.is_dir() => Kind::Folder,
                Ok(_) => Kind::Other,
                Err(error) => return talk.say(&misplaced(absent(&error))),
            };
            talk.say(&Reply::Source(kind))?;
            send(&mut talk, &root, after.as_deref(), &mut |_| {})
        }
        Request::Put { path, name, kind } => {
            let name = name.as_deref().map(OsStr::from_bytes);
            let target = match find_target(&home.join(OsStr::from_bytes(&path)), name, kind) {
                Ok(target) => target,
                Err(why) => return talk.say(&misplaced(why)),
            };
            talk.say(&Reply::Target(Blob::from(target.as_os_str().as_bytes())))?;
            take(&mut talk, &target, &|_| None, &mut |_| {})
        }
        Request::Sync { copy } => {
            talk.say(&Reply::Started)?;
            return crate::sync::serve(talk, &home.join(OsStr::from_bytes(&copy)));
        }
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    };
    match done {
        // The other end was told.
        Ok(()) | Err(Trouble::Here { .. } | Trouble::There { .. }) => Ok(()),
        Err(Trouble::Broken(error)) => Err(error),
    }
}

fn misplaced(why: Misplaced) -> Reply {
    Reply::Failed(Failure::Misplaced(why))
}

fn absent(error: &io::Error) -> Misplaced {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Misplaced::Absent,
        _ => Misplaced::System(error.raw_os_error().unwrap_or(0)),
    }
}
