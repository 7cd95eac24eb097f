//! Pins on a real disk, in folders made for the test.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't set its scene up should fail at once"
)]

mod path_map;
mod process;
mod rekey;
mod resolve;
mod store;
mod support;
mod worktree;
