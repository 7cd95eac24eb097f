//! What a bash tells at its end: its folder, and what it had exported.
//!
//! [`PRELOADED`] is loaded into it and writes to memory that is shared with us; its
//! source, `keep/src/lib.rs`, says how. Where it can't be loaded (a static bash, a
//! policy of the system), [`works_in`] finds that out before any command meets it.

#![expect(
    unsafe_code,
    reason = "between fork and exec two descriptors are made inheritable"
)]

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::MemfdFlags;
use tokio::time::timeout;

use crate::children::Children;
use note::{
    NOTE_FOLDER, NOTE_FOLDER_LENGTH, NOTE_PATH, NOTE_SIZE, NOTE_STATE, NOTE_VARIABLES,
    NOTE_VARIABLES_LENGTH, NOTE_WANTED, NOTE_WRITTEN,
};

#[path = "../keep/src/note.rs"]
#[expect(dead_code, reason = "the other end needs the rest")]
mod note;

/// The shared object, made by `build.rs`.
const PRELOADED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/keep.so"));
/// Descriptors from here on: numbers that scripts don't use themselves.
const FIRST: i32 = 220;
/// How long a bash may take to do nothing.
const PATIENCE: Duration = Duration::from_secs(5);

/// Variables, by name.
pub(crate) type Variables = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a bash told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    /// The folder in which it ended.
    pub(crate) folder: Vec<u8>,
    /// What it had exported, if that was asked for and could be had.
    pub(crate) exported: Option<Variables>,
}

/// The memory that a bash writes to.
#[derive(Debug)]
pub(crate) struct Note(File);

/// What a bash is started with so that it tells.
#[derive(Debug)]
pub(crate) struct Preload {
    library: OwnedFd,
    memory: OwnedFd,
}

impl Preload {
    /// Make both ends. `exports`: whether variables are wanted.
    pub(crate) fn new(exports: bool) -> io::Result<(Self, Note)> {
        let memory = |name: &str| rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC);
        let mut library = File::from(memory("keep")?);
        library.write_all(PRELOADED)?;
        let note = File::from(memory("note")?);
        note.set_len(NOTE_SIZE as u64)?;
        note.write_all_at(&[u8::from(exports)], NOTE_WANTED as u64)?;
        let library = rustix::io::fcntl_dupfd_cloexec(&library, FIRST)?;
        let next = library.as_raw_fd() + 1;
        let memory = rustix::io::fcntl_dupfd_cloexec(&note, next)?;
        if memory.as_raw_fd() != next {
            return Err(io::Error::other("no two numbers side by side are free"));
        }
        Ok((Self { library, memory }, Note(note)))
    }

    /// Have `command`, whose environment holds the user's own `LD_PRELOAD` if
    /// there is one, load it. Must live until the command was started.
    pub(crate) fn apply(&self, command: &mut Command, own: Option<&[u8]>) {
        let mut list = OsString::from(format!("/proc/self/fd/{}", self.library.as_raw_fd()));
        if let Some(own) = own {
            list.push(":");
            list.push(OsStr::from_bytes(own));
        }
        command.env("LD_PRELOAD", list);
        let numbers = [self.library.as_raw_fd(), self.memory.as_raw_fd()];
        // SAFETY: the closure runs between fork and exec of a process with one
        // thread. It makes system calls only, on descriptors that `self` holds open
        // until the command has been started.
        unsafe {
            command.pre_exec(move || {
                for number in numbers {
                    let fd = BorrowedFd::borrow_raw(number);
                    rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())?;
                }
                Ok(())
            });
        }
    }
}

impl Note {
    /// What was told; `None` after a bash that was killed or became another program
    /// by its own wish.
    pub(crate) fn read(&self) -> Option<Told> {
        let mut head = [0; NOTE_FOLDER];
        self.0.read_exact_at(&mut head, 0).ok()?;
        let number = |at: usize| head[at..].first_chunk().map(|n| u32::from_ne_bytes(*n));
        if number(NOTE_STATE)? != NOTE_WRITTEN {
            return None;
        }
        let length = usize::try_from(number(NOTE_FOLDER_LENGTH)?).ok()?;
        let folder = self.bytes(NOTE_FOLDER, length.min(NOTE_PATH))?;
        let used = usize::try_from(number(NOTE_VARIABLES_LENGTH)?).ok()?;
        let has_variables = head[NOTE_WANTED] != 0 && used <= NOTE_SIZE - NOTE_VARIABLES;
        let exported = if has_variables {
            Some(parse(&self.bytes(NOTE_VARIABLES, used)?))
        } else {
            None
        };
        Some(Told { folder, exported })
    }

    fn bytes(&self, at: usize, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.0.read_exact_at(&mut bytes, at as u64).ok()?;
        Some(bytes)
    }
}

/// `NAME=VALUE`, each with a NUL behind it.
fn parse(bytes: &[u8]) -> Variables {
    bytes
        .split(|byte| *byte == 0)
        .filter_map(|line| {
            let equals = line.iter().position(|byte| *byte == b'=')?;
            Some((line[..equals].to_vec(), line[equals + 1..].to_vec()))
        })
        .collect()
}

/// Whether `bash` tells where it ends: it is started once, to do nothing.
pub(crate) async fn works_in(bash: &Path, variables: &Variables, children: &Children) -> bool {
    ask(bash, variables, children)
        .await
        .is_ok_and(|told| told.is_some_and(|told| told.folder == b"/"))
}

async fn ask(bash: &Path, variables: &Variables, children: &Children) -> io::Result<Option<Told>> {
    let (preload, note) = Preload::new(false)?;
    let mut command = Command::new(bash);
    command
        .args(["-c", ":"])
        .env_clear()
        .envs(
            variables
                .iter()
                .map(|(name, value)| (OsStr::from_bytes(name), OsStr::from_bytes(value))),
        )
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let own = variables.get(b"LD_PRELOAD".as_slice());
    preload.apply(&mut command, own.map(Vec::as_slice));
    let child = command.spawn()?;
    let ended = children.watch(child.id());
    drop(preload);
    match timeout(PATIENCE, ended).await {
        Ok(_) => Ok(note.read()),
        Err(_) => Ok(None),
    }
}
