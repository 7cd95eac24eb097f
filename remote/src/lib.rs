//! Answers one question: how is a VM reached?
//!
//! Start at [`Pipe::open`], which opens a connection to a [`Target`] as the
//! user's own `ssh` would, and at [`run()`], which runs one command there. A pipe
//! is *native* (SSH in this process) or *system* (a child `ssh`); both give the
//! same [`Channel`]. What is known of the laptop comes in as a [`Laptop`]:
//! nothing here reads the environment.
//!
//! Invariant: no host key is ever trusted that the user's known hosts or
//! boxery's own don't name, and a command that could not be started in the VM
//! is an error, never a command started elsewhere.

pub mod doctor;
pub mod embedded;
mod error;
mod image;
mod known_hosts;
mod laptop;
pub mod pipe;
mod run;
mod ssh_config;
mod target;

pub use error::RemoteError;
pub use image::{HelperImage, helper_image};
pub use known_hosts::{HostKey, KnownHosts, Verdict, accept};
pub use laptop::{Ask, Laptop};
pub use pipe::{Channel, ChannelEnd, Pipe, PipeChoice};
pub use run::{Cancel, Captured, Input, Output, RunEnd, RunExit, RunIo, RunRequest, capture, run};
pub use ssh_config::{HostOptions, Plan};
pub use target::Target;
