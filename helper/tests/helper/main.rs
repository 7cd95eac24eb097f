//! Drives the helper as a laptop does: the real program, over its pipes.

mod clock;
mod copy;
mod group;
mod jobs;
mod load;
mod login;
mod reattach;
mod rules;
mod runs;
mod state;
mod support;
mod sync;
mod tree;
