//! How files become [`Item`](crate::Item)s and [`Item`](crate::Item)s become files: the
//! same at both ends, so that a copy means the same in both directions.
//!
//! Start at [`send()`] and [`take()`], each on a [`Talk`]; [`find_target`] says where a copy
//! goes. All of it blocks, and belongs into a process or thread of its own.
//!
//! Invariant: below the target no link is followed, whoever puts one there, and a
//! file has its name only when it is whole.

mod folder;
mod send;
mod take;
mod talk;
mod target;

use std::io;

pub use send::send;
pub use take::take;
pub use talk::Talk;
pub use target::find_target;

/// What happened, for whoever watches a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// So much there is to copy in all.
    Total {
        /// Files.
        files: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// A file begins.
    File {
        /// Its path.
        path: &'a [u8],
        /// Its length.
        size: u64,
        /// How much of it was there from an earlier time.
        have: u64,
    },
    /// So many bytes went over the wire.
    Data(u64),
    /// So many zeros didn't have to.
    Hole(u64),
    /// Everything up to this path is in place.
    Placed(&'a [u8]),
    /// It isn't copied.
    Left {
        /// Its path.
        path: &'a [u8],
        /// Why not.
        why: &'a str,
    },
    /// It is copied, and was changed while it was read.
    Changed(&'a [u8]),
}

/// Whoever watches a copy.
pub type Watch<'a> = &'a mut (dyn FnMut(Step<'_>) + 'a);

/// Why a copy ended before everything was in place.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The conversation broke off.
    #[error("the conversation broke off")]
    Broken(#[source] io::Error),
    /// This end can't do something with a path.
    #[error("`{}`", String::from_utf8_lossy(.path))]
    Here {
        /// The path, relative to what is copied.
        path: Vec<u8>,
        /// What the system said.
        source: io::Error,
    },
    /// The other end can't.
    #[error("`{}`: {why}", String::from_utf8_lossy(.path))]
    There {
        /// The path, relative to what is copied.
        path: Vec<u8>,
        /// What the system said.
        why: String,
    },
}
