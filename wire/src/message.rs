//! What is said on a stream.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Blob;

/// How many bytes of stdin may be sent beyond the last [`FromRun::StdinTaken`].
/// So much is held for a command that doesn't read, and nothing else waits for it.
pub const STDIN_WINDOW: u64 = 4 * 1024 * 1024;

/// The name of a run: 128 random bits, made by the laptop. A run is executed at
/// most once, however often its request is sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId(pub [u8; 16]);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The name of what is kept of a shell between calls, made by the laptop from the
/// agent, its session and its subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StateId(pub [u8; 16]);

impl fmt::Display for StateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// A text that names no run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run is named by 32 hexadecimal digits")]
pub struct NoRunId;

impl FromStr for RunId {
    type Err = NoRunId;

    fn from_str(text: &str) -> Result<Self, NoRunId> {
        if text.len() != 32
            || text
                .bytes()
                .any(|b| !matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        {
            return Err(NoRunId);
        }
        u128::from_str_radix(text, 16)
            .map(|number| Self(number.to_be_bytes()))
            .map_err(|_| NoRunId)
    }
}

/// The first message of a stream, from the laptop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Who are you? [`Reply::Hello`].
    Hello,
    /// Run a command. [`Reply::Started`], then [`ToRun`] and [`FromRun`] from
    /// offset 0; a run that was started before goes on as if attached at 0.
    Run(Box<Run>),
    /// Go on with a run at a byte of its stream. [`Reply::Attached`], then
    /// [`ToRun`] and [`FromRun`].
    Attach {
        /// The run.
        run: RunId,
        /// How many bytes of [`FromRun`] messages were taken.
        offset: u64,
    },
    /// Which jobs are there? [`Reply::Jobs`].
    Jobs,
    /// What did a job print? [`Reply::Started`], then [`FromRun`] messages up to
    /// [`FromRun::End`], or up to the end of the stream when it still runs and
    /// `follow` is false. The laptop sends nothing.
    Tail {
        /// The job.
        run: RunId,
        /// Wait for more until the job ends.
        follow: bool,
    },
    /// Wait for a job. [`Reply::Ended`].
    Wait {
        /// The job.
        run: RunId,
    },
    /// End a job or run and all of its processes. [`Reply::Ended`].
    Stop {
        /// The run.
        run: RunId,
    },
    /// Was the script of this name run here to a good end? [`Reply::SetUp`].
    IsSetUp {
        /// The script, by its digest.
        script: StateId,
    },
    /// On which TCP ports do runs and jobs listen? [`Reply::Ports`].
    Ports,
    /// Tell on which TCP ports these runs listen, now and whenever that changes.
    /// [`Reply::Started`], then [`FromPorts`]. The laptop sends nothing.
    WatchPorts {
        /// The runs.
        whose: Whose,
    },
    /// Copy files to the VM. [`Reply::Target`], then [`Item`]s up and [`Taken`]
    /// down.
    Put {
        /// Where to, from the user's home.
        path: Blob,
        /// Its name there, if `path` is a folder; without one `path` itself is meant.
        name: Option<Blob>,
        /// What it is.
        kind: Kind,
    },
    /// Copy files from the VM. [`Reply::Source`], then [`Item`]s down and
    /// [`Taken`] up.
    Get {
        /// What, from the user's home.
        path: Blob,
        /// Nothing up to this path below it, which is in place from an earlier try.
        after: Option<Blob>,
    },
    /// Make a project and its copy the same. [`Reply::Started`], then what the crate
    /// `sync` has to say: its `Ask` up and its `Answer` down.
    Sync {
        /// The copy's folder, from the user's home.
        copy: Blob,
    },
    /// Remove boxery's programs and the folders of runs, unless runs go on.
    /// [`Reply::Left`].
    Leave,
    /// Connect to a port of the VM's loopback. [`Reply::Started`], then bytes.
    Forward {
        /// The port.
        port: u16,
        /// Only to a socket on which one of these runs listens at that moment,
        /// wherever it is bound.
        whose: Option<Whose>,
    },
}

/// Runs that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whose {
    /// Those of an agent's session.
    Session(String),
    /// A run that belongs to no session.
    Run(RunId),
}

/// From the VM, to [`Request::WatchPorts`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromPorts {
    /// They listen on these now.
    Now(Vec<Port>),
    /// None of them lives any more; nothing follows.
    Over,
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its name.
    pub run: RunId,
    /// Program and arguments, any bytes but NUL. The program is looked up in the
    /// login environment's PATH. The text of a `bash -c` may be longer than an
    /// argument can be: bash then reads it from an inherited descriptor.
    pub argv: Vec<Blob>,
    /// The folder; the user's home without one.
    pub cwd: Option<Blob>,
    /// What it sees at another path than where it is; `cwd` is as it is seen.
    pub view: Option<View>,
    /// Variables to set over the login environment.
    pub env: Vec<(Blob, Blob)>,
    /// Where its stdin comes from.
    pub stdin: Stdin,
    /// How many milliseconds it may take.
    pub timeout: Option<u64>,
    /// For how many seconds it lives on while nobody is attached.
    pub grace: u64,
    /// The agent's session, empty for none.
    pub session: String,
    /// What outlives it for the session's next call, if anything does.
    pub keep: Option<Keep>,
    /// Who its user is to git, where the VM doesn't say.
    pub git: Option<GitUser>,
    /// It is the script that sets the machine up, by its digest: it waits for whoever
    /// runs the same, and is done when that was.
    pub sets_up: Option<StateId>,
    /// Nobody attaches: its output is kept on the VM, head and tail, and it has
    /// no grace.
    pub job: bool,
    /// How much output is kept for a laptop that doesn't acknowledge it; beyond,
    /// the command waits. In bytes.
    pub journal: u64,
}

/// Who a user is to git. Either may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitUser {
    /// `user.name`.
    pub name: String,
    /// `user.email`.
    pub email: String,
}

/// What of a shell outlives its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// Under which name.
    pub key: StateId,
    /// What it begins as a copy of, while nothing is kept under its own.
    pub from: Option<StateId>,
    /// The folder in which it ended: the next call that asks for the same folder as
    /// this one begins there.
    pub folder: bool,
    /// The variables that it exported, or took away.
    pub exports: bool,
}

/// A folder that a run sees at another path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The path.
    pub at: Blob,
    /// The folder, which is made where there is none.
    pub folder: Blob,
}

/// Where a command's stdin comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdin {
    /// `/dev/null`.
    Null,
    /// [`ToRun::Stdin`].
    Pipe,
    /// A terminal of this size, which also takes stdout and stderr.
    Pty(Size),
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Characters in a row.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
}

/// From a file of this size on, the taker says how much of it it has from an
/// earlier time, and the sender waits for that.
pub const RESUMED: u64 = 1024 * 1024;

/// What is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A folder and what is in it.
    Folder,
    /// A file or a link.
    Other,
}

/// Why there is nothing to copy, or no place for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Misplaced {
    /// There is nothing there.
    Absent,
    /// The folder that it would lie in isn't there.
    ParentGone,
    /// A folder is named, and there is something else.
    NoFolder,
    /// A file or link would replace a folder.
    FolderThere,
    /// A folder would replace a file or link.
    FileThere,
    /// It can't be looked at: the system's error number.
    System(i32),
}

/// A piece of a copy. Paths are relative to what is copied, which itself has the
/// empty path; a folder comes before what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Item {
    /// A folder.
    Folder {
        /// Its path.
        path: Blob,
        /// Its permissions.
        mode: u32,
    },
    /// A file; its bytes follow, in order.
    File {
        /// Its path.
        path: Blob,
        /// Its permissions.
        mode: u32,
        /// Its length.
        size: u64,
        /// When it was modified, in nanoseconds since 1970.
        modified: i64,
    },
    /// A symbolic link, as data.
    Link {
        /// Its path.
        path: Blob,
        /// Where it points.
        target: Blob,
    },
    /// Bytes of the last file.
    Data(Blob),
    /// So many zeros of the last file, which need no room.
    Hole(u64),
    /// The last file, whose bytes were sent, was changed meanwhile.
    Changed {
        /// Its path.
        path: Blob,
    },
    /// So much there is in all, before everything else; not sent for a tree that takes
    /// long to count.
    Total {
        /// Files.
        files: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// What can't be copied; a file whose bytes came in part is given up.
    Left {
        /// Its path.
        path: Blob,
        /// Why not.
        why: String,
    },
    /// That was all.
    End,
}

/// From whoever takes a copy to whoever sends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Taken {
    /// So many bytes of the last file are there: send from there on.
    Have(u64),
    /// Everything is in place.
    Done,
    /// It can't go on.
    Failed {
        /// With which path.
        path: Blob,
        /// What the system said.
        why: String,
    },
}

/// From the laptop to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToRun {
    /// Bytes for its stdin, at most [`STDIN_WINDOW`] beyond what was taken.
    Stdin(Blob),
    /// The end of its stdin.
    StdinEnd,
    /// A signal for its process group, by its number on Linux.
    Signal(u8),
    /// The terminal has another size.
    Resize(Size),
    /// End it and all of its processes now.
    Cancel,
    /// The same, and nobody comes back for what it printed: the helper's own word to
    /// a run whose client was killed.
    Abandon,
    /// So many bytes of [`FromRun`] messages were taken and passed on.
    Ack(u64),
}

/// From a run to the laptop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromRun {
    /// Bytes of its stdout.
    Stdout(Blob),
    /// Bytes of its stderr.
    Stderr(Blob),
    /// So many bytes of stdin were given to the command in all.
    StdinTaken(u64),
    /// The first of all: the folder that was kept can't be entered any more, and the
    /// command runs in the one that the call asks for.
    FolderGone(Blob),
    /// So many bytes of a job's messages were not kept.
    Skipped(u64),
    /// How it ended; nothing follows but `Released`.
    End(End),
    /// The VM knows that the client has everything, and keeps nothing for it any
    /// more. Not counted in offsets.
    Released,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Exactly one of these.
    pub outcome: Outcome,
    /// How many processes it left running; they are a job of the same name.
    pub background: u32,
}

/// Exactly one of these is the result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It ended by itself with this status.
    Exited(u8),
    /// A signal ended it.
    Signalled(u8),
    /// It was ended, with all of its processes.
    Cancelled(Why),
    /// Nobody knows how it ended.
    Lost(Loss),
}

/// Why a run was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// The client asked, or went away.
    Asked,
    /// Its time was up.
    TimedOut,
}

/// Why a run's end isn't known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Loss {
    /// Nobody was attached for longer than its grace; it was ended.
    GracePassed,
    /// The VM knows no such run: its request never came, or it is forgotten.
    Unknown,
    /// Its supervisor died.
    Broken,
    /// It ended with the VM, which was started again since.
    Restarted,
    /// The bytes that were asked for were acknowledged and are gone.
    Acknowledged,
}

/// The first message of a stream, from the VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// To [`Request::Hello`].
    Hello(Box<Machine>),
    /// It goes on as the request says.
    Started,
    /// To [`Request::Attach`].
    Attached {
        /// How many bytes of stdin had come; send on from there.
        stdin: u64,
        /// Whether the end of stdin had come.
        stdin_ended: bool,
    },
    /// To [`Request::Put`]: the absolute path that the copy gets.
    Target(Blob),
    /// To [`Request::Get`]: what it is.
    Source(Kind),
    /// To [`Request::Jobs`].
    Jobs(Vec<Job>),
    /// To [`Request::Leave`]: so many runs go on, and nothing was removed; at 0 all was.
    Left(u32),
    /// To [`Request::Wait`] and [`Request::Stop`].
    Ended(End),
    /// To [`Request::Ports`].
    Ports(Vec<Port>),
    /// To [`Request::IsSetUp`].
    SetUp(bool),
    /// It can't be done; nothing follows.
    Failed(Failure),
}

/// Why a request can't be done. Nothing was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// The folder isn't there.
    FolderGone,
    /// The folder can't be entered.
    FolderDenied,
    /// `bash` was asked for, and there is none.
    NoBash,
    /// There is no such run, or no more of it.
    Lost(Loss),
    /// No folder of the VM can hold the state of a run.
    NoState {
        /// Each folder that was tried, and why not.
        detail: String,
    },
    /// A folder can't be shown to a run at another path.
    View {
        /// Why not.
        detail: String,
    },
    /// Nothing listens on the port.
    Refused,
    /// There is nothing to copy, or no place for it.
    Misplaced(Misplaced),
    /// The system refused.
    System {
        /// What was tried.
        what: String,
        /// The system's error number.
        errno: i32,
    },
}

/// What a helper knows of its VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Of `/etc/machine-id`, else D-Bus's own; empty where there is none.
    pub machine_id: String,
    /// The kernel's release.
    pub kernel: String,
    /// Such as `x86_64`.
    pub architecture: String,
    /// The user's name; its number where it has none.
    pub user: String,
    /// The user's number.
    pub uid: u32,
    /// The user's home.
    pub home: Blob,
    /// The user's login shell.
    pub shell: Blob,
    /// PATH of the login environment.
    pub path: Blob,
    /// Why the login environment could not be captured, if so.
    pub no_login: Option<String>,
    /// The folder that holds the state of runs, or why there is none.
    pub state: Result<Blob, String>,
    /// Where `bash` is, if anywhere.
    pub bash: Option<Blob>,
    /// Whether `/proc` is there: without it only process groups can be ended.
    pub proc: bool,
    /// Milliseconds since 1970 by the VM's clock.
    pub clock: u64,
}

/// A run that outlives its call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its name.
    pub run: RunId,
    /// Program and arguments, cut to 200 bytes each.
    pub argv: Vec<Blob>,
    /// The folder it was started in.
    pub cwd: Blob,
    /// The agent's session.
    pub session: String,
    /// When it was started, in milliseconds since 1970 by the VM's clock.
    pub started: u64,
    /// How it is.
    pub state: JobState,
}

/// How a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobState {
    /// It runs.
    Running,
    /// Its command ended, and left processes behind that run.
    Background(Outcome),
    /// It ended.
    Ended(Outcome),
}

/// A TCP port that a process of a run listens on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Port {
    /// The port.
    pub port: u16,
    /// The run.
    pub run: RunId,
    /// The agent's session.
    pub session: String,
}
