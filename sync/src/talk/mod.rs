//! One sync as a conversation: the laptop asks, the copy's side answers.
//!
//! What a message means is here; how it travels is the caller's. The laptop decides
//! everything, so the copy's side needs no rules, no git and no state but its index:
//! it lists folders, hashes files, takes and gives content, and applies what it is told.

#[cfg(feature = "laptop")]
mod content;
#[cfg(feature = "laptop")]
mod drive;
mod far;
#[cfg(feature = "laptop")]
mod listing;
#[cfg(feature = "laptop")]
mod since;

use std::io;

use serde::{Deserialize, Serialize};

#[cfg(feature = "laptop")]
pub use drive::{DriveError, Job, Progress, Report, drive, look};
pub use far::serve;
#[cfg(feature = "laptop")]
pub use since::changed_since;

use crate::plan::Change;
use crate::{Digest, EntryPath, State};

/// From this size on whoever takes content says first how much of it is there.
pub const RESUMED: u64 = 1024 * 1024;

/// Bytes of content in one message.
const PIECE: usize = 128 * 1024;

/// How many paths are in one message at most.
const BATCH: usize = 1000;

/// What a copy's marker says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Marked {
    /// It is this project's copy.
    Ours,
    /// Its first sending broke off.
    Unfinished,
    /// It is the copy of something else.
    Other,
    /// There is no folder, or an empty one.
    Nothing,
    /// The folder holds something and has no marker.
    NoCopy,
}

/// Something in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its name in the folder.
    #[serde(with = "serde_bytes")]
    pub name: Vec<u8>,
    /// What it is.
    pub what: What,
}

/// What lies in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A folder.
    Folder,
    /// A link or a file that is known already.
    Known(State),
    /// A file that has to be hashed.
    File,
    /// Neither: never copied.
    Special,
}

/// From the laptop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// Which copy are you? [`Answer::Greeting`].
    Greet {
        /// The marker of this project's copies.
        marker: String,
        /// Make the copy if nothing is there.
        create: bool,
    },
    /// What is in these folders? One [`Answer::Folder`] after the other for each of
    /// them, the last one of each with `more` false.
    List(Vec<Option<EntryPath>>),
    /// What are these files? One [`Answer::Hashed`].
    Hash(Vec<EntryPath>),
    /// Open the stage. [`Answer::Leftovers`].
    Stage,
    /// Clear up: the content of these digests is known elsewhere. [`Answer::Kept`].
    Sweep {
        /// Which of the leftovers are known.
        known: Vec<Digest>,
        /// Whether staged content goes too.
        all: bool,
    },
    /// Content comes. [`Answer::Have`] if its size is at least [`RESUMED`].
    Put {
        /// Its digest.
        digest: Digest,
        /// How much it is in all.
        size: u64,
    },
    /// Bytes of it.
    Data(#[serde(with = "serde_bytes")] Vec<u8>),
    /// It is complete.
    PutEnd,
    /// Give content. [`Answer::Data`] until [`Answer::GetEnd`].
    Get {
        /// Of what.
        path: EntryPath,
        /// As what.
        state: State,
        /// How much of it is here.
        position: u64,
    },
    /// Changes to be made, to be continued.
    Changes(Vec<Change>),
    /// Make them. [`Answer::Applied`].
    Apply,
    /// The sync is complete under this number. [`Answer::Done`].
    Publish(u64),
    /// Tell changes in these folders from now on. [`Answer::Watching`].
    Watch(Vec<Option<EntryPath>>),
    /// Wait until something changed in them. [`Answer::Woken`], which also comes as
    /// soon as something else is asked.
    Await,
    /// Leave the stage. [`Answer::Done`]; nothing follows.
    Close,
}

/// From the copy's side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// To [`Ask::Greet`].
    Greeting {
        /// What the marker says.
        marked: Marked,
        /// The machine's id.
        machine: String,
        /// The number of the last complete sync.
        epoch: u64,
        /// Whether the disk takes `a` and `A` for one name.
        folds_case: bool,
        /// Whether it takes two forms of one character for one name.
        folds_unicode: bool,
    },
    /// To [`Ask::List`]. `None` is a folder that isn't there any more.
    Folder {
        /// What is in it.
        entries: Option<Vec<Listed>>,
        /// Whether more of this folder follows.
        more: bool,
    },
    /// To [`Ask::Hash`], in the same order; `None` is no file any more.
    Hashed(Vec<Option<State>>),
    /// To [`Ask::Stage`]: what an earlier sync left half-way, by its digest.
    Leftovers(Vec<Digest>),
    /// To [`Ask::Sweep`]: where that was put which nobody knows.
    Kept(Vec<String>),
    /// To [`Ask::Put`].
    Have(u64),
    /// To [`Ask::Get`].
    Data(#[serde(with = "serde_bytes")] Vec<u8>),
    /// All of it has come, or nothing of the kind is there any more.
    GetEnd,
    /// To [`Ask::Apply`]: what wasn't made; everything else was.
    Applied {
        /// With the reason.
        left: Vec<(EntryPath, crate::Left)>,
        /// Folders that stay because of what lies in them.
        occupied: Vec<EntryPath>,
    },
    /// To [`Ask::Watch`].
    Watching {
        /// Whether any of them wasn't watched before.
        new: bool,
        /// Why they can't be watched, if they can't.
        why_not: Option<String>,
    },
    /// To [`Ask::Await`]: whether something changed.
    Woken(bool),
    /// To [`Ask::Publish`] and [`Ask::Close`].
    Done,
    /// It can't go on.
    Trouble {
        /// With what.
        what: String,
        /// The system's error number, 0 for none.
        errno: i32,
    },
}

/// How messages travel.
pub trait Line {
    /// Send one, in order.
    fn send(&mut self, ask: &Ask) -> io::Result<()>;
    /// Wait for the next one.
    fn receive(&mut self) -> io::Result<Answer>;
}
