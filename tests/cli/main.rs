//! The binary as a user and as an agent would use it.

mod completions;
mod hook;
mod pin;
mod roundtrip;
mod scene;
mod support;
