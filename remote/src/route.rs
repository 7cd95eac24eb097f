//! Which way leads to a VM: what the configuration says of it, and this laptop's
//! side. The same for whoever walks it, this process or the daemon.

use std::process::Command;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use crate::embedded::EmbeddedVm;
use crate::{Ask, Laptop, Pipe, PipeChoice, RemoteError};

/// The way to one VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The VM's name, for what a person is told.
    pub vm: String,
    /// Where it is.
    pub end: RouteEnd,
    /// The pipe that the user wants.
    pub choice: PipeChoice,
    /// This laptop.
    pub laptop: Laptop,
    /// The id of the machine that it has to be, where that is known.
    pub machine_id: Option<String>,
}

/// Where a VM is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouteEnd {
    /// At the end of an SSH connection to this target.
    Ssh(String),
    /// On this machine.
    Embedded {
        /// Its folder.
        folder: Utf8PathBuf,
        /// The program that starts its server, and its arguments.
        starter: Vec<String>,
    },
}

impl Route {
    /// Open a connection; `ask` is called for the passphrase of an encrypted key.
    pub async fn open_pipe(&self, ask: Ask<'_>) -> Result<Pipe, RemoteError> {
        match &self.end {
            RouteEnd::Ssh(target) => {
                Pipe::open(&target.parse()?, self.choice, &self.laptop, ask).await
            }
            RouteEnd::Embedded { folder, starter } => {
                let (program, words) = starter.split_first().ok_or(RemoteError::BadRequest {
                    what: "nothing starts the VM on this machine".to_owned(),
                })?;
                let mut starter = Command::new(program);
                starter.args(words);
                EmbeddedVm::new(folder.clone())
                    .open(self.choice, &self.laptop, &mut starter)
                    .await
            }
        }
    }
}
