//! The log on a real disk, in folders made for the test.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set its scene up should fail at once"
)]

mod append;
mod check;
mod read;
mod support;
mod tools;
mod torn;
