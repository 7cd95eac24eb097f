//! `boxery daemon status`.

use boxery_remote::daemon;

use crate::app::App;
use crate::error::Failure;
use crate::exit::Exit;
use crate::reach;

/// Tell whether the daemon runs, and which connections it keeps
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit, Failure> {
    let status = reach::block_on(daemon::status(&reach::daemon_site(app)))??;
    let Some(status) = status else {
        if args.json {
            app.ui.line("null");
        } else {
            app.ui.line("no daemon runs; the next command starts one");
        }
        return Ok(Exit::No);
    };
    if args.json {
        app.ui.line(serde_json::to_string(&status)?);
        return Ok(Exit::Done);
    }
    app.ui.line(format_args!(
        "version {}, process {}, up {} s, {} clients",
        status.version, status.pid, status.seconds, status.clients
    ));
    if !status.connections.is_empty() {
        let mut rows = vec![["VM", "PIPE", "STREAMS"].map(str::to_owned).to_vec()];
        for connection in status.connections {
            let streams = connection.streams.to_string();
            rows.push(vec![connection.vm, connection.pipe, streams]);
        }
        app.ui.table(&rows);
    }
    if !status.ports.is_empty() {
        let mut rows = vec![["VM", "PORT", "HERE"].map(str::to_owned).to_vec()];
        for offer in status.ports {
            let here = format!("127.0.0.1:{}", offer.local);
            rows.push(vec![offer.vm, offer.port.to_string(), here]);
        }
        app.ui.table(&rows);
    }
    Ok(Exit::Done)
}
