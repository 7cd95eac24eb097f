//! Answers one question: what was asked, what was answered, and why?
//!
//! Start at [`Log`]. An [`Event`] is what a caller says; [`Log::append`] makes a
//! line of it, chained to the line before; [`Log::entries`] reads lines back,
//! and [`Log::check`] finds the first one that was changed, dropped, reordered,
//! doubled or cut.
//!
//! Invariant: a line that was written is never changed, joined or removed here.
//! What a killed writer left unfinished is closed by a line end and told by an
//! event of its own.
//!
//! On disk: one segment per day, `YYYY-MM-DD.jsonl` (UTC), and a file `head`
//! that names the last line. Each line ends with `,"hash":"…"}`, the SHA-256 of
//! the line without that part, so the chain can be checked with standard tools:
//!
//! ```sh
//! sed -n 5p 2026-05-04.jsonl | jq -cj 'del(.hash)' | sha256sum   # its own .hash
//! sed -n 4p 2026-05-04.jsonl | jq -r .hash                       # its .prev
//! ```

mod append;
mod chain;
mod check;
mod event;
mod log;
mod read;

pub use chain::sha256_hex;
pub use check::{CheckReport, Note, Problem, ProblemKind};
pub use event::{Entry, Event, Gap, Kind, Tier, time_text};
pub use log::{Appended, Log, RecordError};
pub use read::{Entries, Filter};
