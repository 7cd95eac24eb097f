//! `boxery demo`: the whole story on this machine, with nothing left behind.

mod agent;

pub(crate) use agent::Agent;
