//! Answers one question: who keeps the connections to the VMs between commands?
//!
//! One process per user and state folder, started on demand by [`connect`]. It
//! opens at most one connection per VM and hands streams of it to clients: after
//! the greeting a client's socket *is* a stream to the helper, so that the daemon
//! knows nothing of runs. Beside that it offers the ports on which runs listen, for as
//! long as they do. It queues nothing and asks nobody anything.
//!
//! Invariants: only the same user is served, on both ends by the peer's id; one
//! daemon holds the lock; a client that goes away closes its stream at once, and
//! only its own. Without it everything works, by connections that end with their
//! caller: a [`guard()`] of its own has them, or the caller itself.

mod client;
mod greeting;
mod guard;
mod offers;
mod pool;
mod relay;
mod serve;
mod site;

pub(crate) use client::ports;
pub use client::{NoDaemon, connect, status, stop};
pub(crate) use greeting::Telling;
pub use greeting::{Build, Connection, Offered, Status};
pub use guard::guard;
pub(crate) use guard::{Guardian, outlives_us};
pub(crate) use pool::Pool;
pub use serve::serve;
pub use site::Site;
