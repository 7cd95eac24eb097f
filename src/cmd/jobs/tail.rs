//! `boxery jobs tail`.

use boxery_remote::{Output, jobs};
use tokio::io::AsyncReadExt as _;

use super::{Named, as_json};
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
    /// Print one JSON object with both streams instead
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    reach::block_on(async {
        let (name, way, job) = args.named.find(app).await?;
        if args.json {
            let (mut stdout, stdout_end) = tokio::io::duplex(1 << 16);
            let (mut stderr, stderr_end) = tokio::io::duplex(1 << 16);
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let (done, _, _) = tokio::join!(
                jobs::tail(
                    &way,
                    job,
                    args.follow,
                    Box::pin(stdout_end),
                    Box::pin(stderr_end)
                ),
                stdout.read_to_end(&mut out),
                stderr.read_to_end(&mut err),
            );
            let (outcome, skipped) = done.map_err(|error| reach::failure(&name, error))?;
            let mut object = as_json(&name, job, outcome);
            object["stdout"] = String::from_utf8_lossy(&out).into();
            object["stderr"] = String::from_utf8_lossy(&err).into();
            object["skipped_bytes"] = skipped.into();
            app.ui.line(object);
            return Ok(Exit::Done);
        }
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
