//! Copies of files from and to this VM, each in a process of its own, so that a slow
//! disk holds up nobody else.

mod put;
mod send;
mod sync;
mod talk;

pub(crate) use talk::run;
