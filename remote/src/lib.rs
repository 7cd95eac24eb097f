//! Answers one question: how is a VM reached?
//!
//! Start at [`Way::open`], which leads to the VM's helper, and at [`run()`], which
//! runs one command there. A way goes through the [`daemon`], which keeps one
//! connection per VM, or over one of its own. A connection is opened by a [`Pipe`]
//! as the user's own `ssh` would: *native* (SSH in this process) or *system* (a
//! child `ssh`). What is known of the laptop comes in as a [`Laptop`]: nothing here
//! reads the environment.
//!
//! Invariant: no host key is ever trusted that the user's known hosts or
//! boxery's own don't name, and a command that could not be started in the VM
//! is an error, never a command started elsewhere.

mod boot;
mod carry;
pub mod copy;
pub mod daemon;
pub mod doctor;
pub mod embedded;
mod error;
mod forward;
mod image;
pub mod jobs;
mod known_hosts;
mod laptop;
mod link;
pub mod pipe;
mod ports;
mod random;
mod route;
mod run;
mod scratch;
mod ssh_config;
pub mod sync;
mod target;
mod way;

pub use boxery_wire::{GitUser, Keep, Size, StateId};
pub use error::RemoteError;
pub use forward::Forward;
pub use image::{HelperImage, helper_image};
pub use known_hosts::{HostKey, KnownHosts, Verdict, accept, replace};
pub use laptop::{Ask, Laptop};
pub use pipe::{Channel, ChannelEnd, Pipe, PipeChoice};
pub use ports::{Announced, Offer, PortChoice, WantedPorts, Whose};
pub use route::{Route, RouteEnd};
pub use run::{
    Cancel, Captured, Input, Listener, Output, RunEnd, RunExit, RunIo, RunNote, RunRequest,
    capture, run,
};
pub use ssh_config::{HostOptions, Plan};
pub use target::Target;
pub use way::{Through, Way};
