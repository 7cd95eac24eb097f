//! The line of a sync to the copy's side, which the VM's helper answers.

use std::io;

use boxery_sync::EntryPath;
use boxery_sync::talk::{Answer, Ask, Line, Marked};
use boxery_wire::{Blob, Decoder, Reply, Request};
use tokio::runtime::Handle;

use crate::link::Stream;
use crate::run::begin;
use crate::{RemoteError, Way};

/// A line to the copy in one folder of the VM. It blocks, so it belongs on a thread of
/// its own, while the runtime that opened it goes on elsewhere.
pub struct SyncLine {
    stream: Stream,
    decoder: Decoder,
    runtime: Handle,
}

/// Open the line to `copy`, a folder of the VM, relative ones from the user's home.
pub async fn open(way: &Way, copy: &str) -> Result<SyncLine, RemoteError> {
    let stream = way.stream().await?;
    let copy = Blob::from(copy);
    let (reply, decoder) = begin(&stream, &Request::Sync { copy }).await?;
    match reply {
        Reply::Started => Ok(SyncLine {
            stream,
            decoder,
            runtime: Handle::current(),
        }),
        other => Err(crate::jobs::unfit(&other)),
    }
}

impl Line for SyncLine {
    fn send(&mut self, ask: &Ask) -> io::Result<()> {
        let sent = self.runtime.block_on(self.stream.send(ask));
        sent.map_err(io::Error::other)
    }

    fn receive(&mut self) -> io::Result<Answer> {
        loop {
            if let Some(answer) = self.decoder.message().map_err(io::Error::other)? {
                return Ok(answer);
            }
            let bytes = self.runtime.block_on(self.stream.recv());
            let bytes = bytes.ok_or(io::ErrorKind::UnexpectedEof)?;
            self.decoder.push(&bytes);
        }
    }
}

/// How many folders one message names.
const BATCH: usize = 1000;

/// What came of folders that are to be watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched {
    /// All of them were watched already, or are no folders any more.
    AsBefore,
    /// One wasn't.
    New,
    /// The VM can't, for this reason.
    Refused(String),
}

/// Watches folders of a copy, in a conversation of its own.
pub struct CopyWatch {
    line: SyncLine,
    /// The VM was asked to tell, and hasn't yet.
    asked: bool,
    /// It told, while something else was asked.
    news: bool,
}

impl CopyWatch {
    /// Watch the copy with this marker in `copy`, so far without its folders. `None`
    /// if there is no such copy.
    pub async fn open(way: &Way, copy: &str, marker: &str) -> Result<Option<Self>, RemoteError> {
        let mut watch = Self {
            line: open(way, copy).await?,
            asked: false,
            news: false,
        };
        let marker = marker.to_owned();
        let greeting = Ask::Greet {
            marker,
            create: false,
        };
        watch.line.stream.send(&greeting).await?;
        match watch.answer().await? {
            Answer::Greeting { marked, .. } => Ok((marked == Marked::Ours).then_some(watch)),
            _ => Err(unasked()),
        }
    }

    /// Tell changes in these folders too (`None`: the top). Must not be dropped before
    /// it is done.
    pub async fn add(&mut self, folders: &[Option<EntryPath>]) -> Result<Watched, RemoteError> {
        let mut any_new = false;
        for folders in folders.chunks(BATCH) {
            let wish = Ask::Watch(folders.to_vec());
            self.line.stream.send(&wish).await?;
            loop {
                match self.answer().await? {
                    Answer::Watching { new, why_not: None } => {
                        any_new |= new;
                        break;
                    }
                    Answer::Watching {
                        why_not: Some(why_not),
                        ..
                    } => return Ok(Watched::Refused(why_not)),
                    Answer::Woken(news) if self.asked => {
                        self.asked = false;
                        self.news |= news;
                    }
                    _ => return Err(unasked()),
                }
            }
        }
        Ok(if any_new {
            Watched::New
        } else {
            Watched::AsBefore
        })
    }

    /// Have the VM tell when something changed since it told last, or since the folder
    /// was added. Must not be dropped before it is done.
    pub async fn arm(&mut self) -> Result<(), RemoteError> {
        if !self.asked {
            self.line.stream.send(&Ask::Await).await?;
            self.asked = true;
        }
        Ok(())
    }

    /// Wait until the VM tells. May be dropped at any time.
    pub async fn changed(&mut self) -> Result<(), RemoteError> {
        if std::mem::take(&mut self.news) {
            return Ok(());
        }
        match self.answer().await? {
            Answer::Woken(_) => {
                self.asked = false;
                Ok(())
            }
            _ => Err(unasked()),
        }
    }

    async fn answer(&mut self) -> Result<Answer, RemoteError> {
        loop {
            let found = self.line.decoder.message();
            let found = found.map_err(|error| RemoteError::Helper {
                detail: error.to_string(),
            })?;
            if let Some(answer) = found {
                return Ok(answer);
            }
            let bytes = self.line.stream.recv().await.ok_or(RemoteError::Lost)?;
            self.line.decoder.push(&bytes);
        }
    }
}

fn unasked() -> RemoteError {
    RemoteError::Helper {
        detail: "it gave an answer to another question".to_owned(),
    }
}
