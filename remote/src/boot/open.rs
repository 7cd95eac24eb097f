//! Finds, sends and starts.

use std::time::Duration;

use tokio::time::timeout;

use super::channel::{HelperPipe, Talk, new_mark};
use super::script::Start;
use super::take::{Refused, upload};
use crate::{Pipe, RemoteError, helper_image};

/// How long a login shell may take to start our `/bin/sh`.
const GREETING: Duration = Duration::from_mins(1);
/// How long sending the helper may take.
const SENDING: Duration = Duration::from_mins(10);

/// The kinds of machine that may have a helper.
const MACHINES: [&str; 2] = ["x86_64", "aarch64"];

/// What a start came to.
enum Began {
    Running(HelperPipe),
    Absent(Site),
    /// What was sent could not be put in its place.
    NotTaken,
}

/// A VM without a helper of ours.
struct Site {
    /// Such as `Linux x86_64`.
    system: String,
    /// Where one could lie.
    fit: Vec<String>,
    /// Where none can.
    unfit: Vec<String>,
}

/// Start the helper at the end of `pipe`, sending it first where it isn't. `greet`
/// makes sure that it is ours; one that isn't is replaced.
pub(crate) async fn open_helper<T>(
    pipe: &Pipe,
    greet: impl AsyncFn(HelperPipe) -> Result<T, RemoteError>,
) -> Result<T, RemoteError> {
    let names: Vec<(&str, String)> = MACHINES
        .into_iter()
        .filter_map(|machine| Some((machine, helper_image(machine).ok()?.file_name())))
        .collect();
    let mut bad = Vec::new();
    let mut unfit: Vec<String> = Vec::new();
    let mut last = None;
    // At worst every folder has a helper that doesn't start.
    for _ in 0..8 {
        let start = Start {
            names: &names,
            skip: &bad,
            sent: None,
        };
        let site = match begin(pipe, &start).await? {
            Began::Running(helper) => {
                let folder = helper.folder.clone();
                match greet(helper).await {
                    Ok(greeted) => return Ok(greeted),
                    Err(error @ RemoteError::Helper { .. }) => last = Some(error),
                    Err(error) => return Err(error),
                }
                bad.push(folder);
                continue;
            }
            Began::Absent(site) => site,
            Began::NotTaken => continue,
        };
        unfit.extend(site.unfit);
        let image = match site.system.strip_prefix("Linux ") {
            Some(machine) => helper_image(machine),
            None => Err("it needs Linux"),
        };
        let image = image.map_err(|why| RemoteError::WrongMachine {
            system: site.system.clone(),
            why: why.to_owned(),
        })?;
        let file = image.file_name();
        for folder in site.fit {
            let sent = timeout(SENDING, upload(pipe, &folder, &file, image)).await;
            let part = match sent {
                Ok(Ok(part)) => part,
                Ok(Err(Refused::Way(error))) => return Err(error),
                Ok(Err(Refused::Folder(why))) => {
                    unfit.push(format!("{folder} ({why})"));
                    continue;
                }
                Err(_) => {
                    return Err(RemoteError::Timeout {
                        address: pipe.options().address(),
                        seconds: SENDING.as_secs(),
                        step: "sending the helper",
                    });
                }
            };
            let start = Start {
                sent: Some((&folder, &part, &file)),
                ..start
            };
            match begin(pipe, &start).await? {
                Began::Running(helper) => match greet(helper).await {
                    Ok(greeted) => return Ok(greeted),
                    Err(error @ RemoteError::Helper { .. }) => {
                        last = Some(error);
                        unfit.push(format!("{folder} (it doesn't start there)"));
                    }
                    Err(error) => return Err(error),
                },
                Began::NotTaken | Began::Absent(_) => {
                    unfit.push(format!("{folder} (it can't be renamed there)"));
                }
            }
        }
        break;
    }
    Err(last.unwrap_or(RemoteError::NoFolder {
        tried: unfit.join(", "),
    }))
}

/// Run the start script.
async fn begin(pipe: &Pipe, start: &Start<'_>) -> Result<Began, RemoteError> {
    let mark = new_mark()?;
    let mut talk = Talk::start(pipe, &mark, start.text(&mark)).await?;
    let greeting = timeout(GREETING, talk.line()).await;
    let Ok(mut line) = greeting else {
        return Err(RemoteError::Timeout {
            address: pipe.options().address(),
            seconds: GREETING.as_secs(),
            step: "login shell",
        });
    };
    let mut site = Site {
        system: String::new(),
        fit: Vec::new(),
        unfit: Vec::new(),
    };
    loop {
        let Some(text) = line else {
            return Err(talk.broken().await);
        };
        let (kind, rest) = text.split_once(' ').unwrap_or((&text, ""));
        match kind {
            "X" => return Ok(Began::Running(talk.into_pipe(rest.to_owned()))),
            "M" => rest.clone_into(&mut site.system),
            "D" => site.fit.push(rest.to_owned()),
            "N" => site.unfit.push(rest.to_owned()),
            "F" => {
                talk.close().await?;
                return Ok(Began::NotTaken);
            }
            _ => {
                talk.close().await?;
                return Ok(Began::Absent(site));
            }
        }
        line = talk.line().await;
    }
}
