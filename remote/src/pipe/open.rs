//! Opening a pipe, and the little that pipes share.

use crate::{Ask, Channel, HostOptions, Laptop, Pipe, PipeChoice, Plan, RemoteError, Target};

use super::{NativePipe, SystemPipe};

impl Pipe {
    /// Open a connection to `target` as the user's own `ssh` would. `ask` is
    /// called for the passphrase of an encrypted key.
    pub async fn open(
        target: &Target,
        choice: PipeChoice,
        laptop: &Laptop,
        ask: Ask<'_>,
    ) -> Result<Self, RemoteError> {
        let plan = Plan::resolve(target, choice, laptop).await?;
        Self::open_plan(target, plan, laptop, ask).await
    }

    /// Open a connection as `plan` says.
    pub async fn open_plan(
        target: &Target,
        plan: Plan,
        laptop: &Laptop,
        ask: Ask<'_>,
    ) -> Result<Self, RemoteError> {
        match plan {
            Plan::Native(options) => Ok(Self::Native(
                NativePipe::open(options, ask, laptop.keep_keys).await?,
            )),
            Plan::System { options, .. } => Ok(Self::System(SystemPipe::new(
                target.clone(),
                options,
                laptop,
                ask.is_some(),
            )?)),
        }
    }

    /// Start `command` with the login shell at the other end.
    pub async fn exec(&self, command: &str) -> Result<Channel, RemoteError> {
        match self {
            Self::Native(pipe) => pipe.exec(command).await,
            Self::System(pipe) => pipe.exec(command),
        }
    }

    /// Say goodbye.
    pub(crate) async fn close(&self) {
        match self {
            Self::Native(pipe) => pipe.close().await,
            // It ends with its channel.
            Self::System(_) => {}
        }
    }

    /// `native` or `system`.
    pub fn kind(&self) -> PipeChoice {
        match self {
            Self::Native(_) => PipeChoice::Native,
            Self::System(_) => PipeChoice::System,
        }
    }

    /// Where it leads.
    pub fn options(&self) -> &HostOptions {
        match self {
            Self::Native(pipe) => pipe.options(),
            Self::System(pipe) => pipe.options(),
        }
    }

    /// The fingerprint of the server's key, where this pipe knows it yet.
    pub fn host_key(&self) -> Option<crate::HostKey> {
        match self {
            Self::Native(pipe) => Some(pipe.host_key().clone()),
            Self::System(pipe) => pipe.host_key(),
        }
    }
}
