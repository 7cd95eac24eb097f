//! The VM on this machine, for trying things: an SSH server on the loopback
//! interface with a root folder of its own.
//!
//! Start at [`EmbeddedVm::ensure`], which starts the server when it isn't there.
//! On Linux, where the `unshare` program may make namespaces, its commands see a
//! root folder of their own (the machine's programs read-only, an empty home and
//! `/tmp`) and end with the server; elsewhere they only start in another home.
//! It is no security boundary either way.

mod channel;
mod keeper;
mod server;
mod state;

pub use keeper::keep;
pub use server::serve;
pub use state::EmbeddedVm;
pub(crate) use state::start_of;
