//! `boxery jobs tail`.

use boxery_remote::{Output, jobs};

use super::Named;
use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;
use crate::reach;

/// Print what a job has printed
///
/// Standard output and standard error come back apart.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    named: Named,
    /// Go on until the job ends
    #[arg(long, short)]
    follow: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    reach::block_on(async {
        let (name, way, job) = args.named.find(app).await?;
        let stdout: Output = Box::pin(tokio::io::stdout());
        let stderr: Output = Box::pin(tokio::io::stderr());
        let (_, skipped) = jobs::tail(&way, job, args.follow, stdout, stderr)
            .await
            .map_err(|error| reach::failure(&name, error))?;
        if skipped > 0 {
            app.ui
                .note(format_args!("{skipped} bytes in the middle were not kept"));
        }
        Ok(Exit::Done)
    })?
}
