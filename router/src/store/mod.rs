//! The small private files in which one hook call leaves word for the next.

mod alarm;
mod call;
mod private;
mod proof;
mod seen;
mod spool;
mod ticket;

pub use alarm::{Alarm, Alarms};
pub use call::{CallKey, CallNote, CallOutcome, Calls};
pub use private::StoreError;
pub(crate) use private::sha256_hex;
pub use proof::{ExecutableId, Proof, Proofs};
pub use seen::{LastSeen, Seen};
pub use spool::Spool;
pub use ticket::{JudgedBy, Ticket, TicketName, Tickets};
