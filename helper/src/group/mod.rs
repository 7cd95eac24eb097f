//! A control group for each run, where the VM lets us have one: whoever is in it can be
//! ended, children of another user too, and though the command has killed everybody who
//! watched it.
//!
//! A [`Groups`] is the folder of the cgroup file system below the helper's own group in
//! which every run gets one. Root makes it; a user who has `sudo -n` has it made, and
//! this process moved into it, once for each connection: from then on no rights are
//! needed. A supervisor is started *in* its group, since moving a process takes the
//! kernel milliseconds; it moves out when it must end the rest, and when nobody else is
//! left to remove the group.
//!
//! Invariant: what can't be had changes nothing else. A run without a group is ended
//! by its supervisor alone.

mod fork;
mod groups;
mod one;
mod place;

pub(crate) use groups::{Groups, close, open};
pub(crate) use one::Group;
