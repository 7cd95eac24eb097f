//! The binary as a user and as an agent would use it.

mod completions;
mod copies;
mod demo;
mod ending;
mod help;
mod hook;
mod hook_escapes;
mod install;
mod pin;
mod roundtrip;
mod scene;
mod sshd;
mod support;
mod vm;
