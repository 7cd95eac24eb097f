//! Pipes between the connection, which is asynchronous, and readers and writers of
//! tar streams, which aren't.

use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::pin::Pin;

use boxery_remote::{Input, Output};
use tokio::net::unix::pipe;

/// A stdin for a run, and where to write it. Dropping the writer ends it.
pub(crate) fn stdin() -> io::Result<(Input, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    Ok((
        Pin::from(Box::new(pipe::Receiver::from_owned_fd(reader.into())?)),
        writer,
    ))
}

/// A stdout for a run, and where to read it.
pub(crate) fn stdout() -> io::Result<(Output, PipeReader)> {
    let (reader, writer) = io::pipe()?;
    Ok((
        Pin::from(Box::new(pipe::Sender::from_owned_fd(writer.into())?)),
        reader,
    ))
}

/// What a program on the VM said on its stderr, its start and one line of it.
#[derive(Debug, Default)]
pub(crate) struct Said {
    text: String,
}

impl Said {
    /// All of it is read, so that the program is never held up.
    pub(crate) fn read(mut stderr: PipeReader) -> Self {
        let mut kept = Vec::new();
        // What came before a failure is still worth telling.
        (&mut stderr).take(64 << 10).read_to_end(&mut kept).ok();
        io::copy(&mut stderr, &mut io::sink()).ok();
        Self {
            text: String::from_utf8_lossy(&kept).into_owned(),
        }
    }

    /// The last line that says something; GNU tar ends with one that doesn't.
    pub(crate) fn line(&self) -> String {
        let lines = self.text.lines().map(str::trim);
        let telling = |line: &&str| !line.is_empty() && !line.contains("Exiting with failure");
        lines.rev().find(telling).unwrap_or_default().to_owned()
    }

    /// Whether it is about a full disk: in the system's words, or in those of GNU
    /// tar for a short write.
    pub(crate) fn names_full_disk(&self) -> bool {
        [
            "No space left on device",
            "Disk quota exceeded",
            "Wrote only ",
        ]
        .iter()
        .any(|words| self.text.contains(words))
    }
}
