//! The binary as a user and as an agent would use it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't set its scene up should fail at once"
)]

mod argv;
mod completions;
mod copies;
mod cp;
mod daemon;
mod demo;
mod ending;
mod environment;
mod git;
mod git_edges;
mod git_scene;
mod groups;
mod guardian;
mod help;
mod hook;
mod hook_escapes;
mod hook_protects;
mod install;
mod jobs;
mod listing;
mod pin;
mod policy;
mod policy_run;
mod ports;
mod pty;
mod renew;
mod roundtrip;
mod same_path;
mod scene;
mod shell;
mod sshd;
mod state;
mod support;
mod sync;
mod sync_guards;
mod sync_run;
mod sync_watch;
mod uninstall;
mod vm;
