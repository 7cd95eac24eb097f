//! The SSH section: which hosts may be reached, and what may run there.

mod call;
mod copies;
mod judge;

pub(crate) use call::read_call;
pub(crate) use judge::SshRules;
