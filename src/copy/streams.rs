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

/// The last line that a program on the VM said. All of it is read, so that the
/// program is never held up.
pub(crate) fn read_complaint(mut said: PipeReader) -> String {
    let mut kept = Vec::new();
    // What came before a failure is still worth telling.
    (&mut said).take(64 << 10).read_to_end(&mut kept).ok();
    io::copy(&mut said, &mut io::sink()).ok();
    let text = String::from_utf8_lossy(&kept);
    text.lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .unwrap_or_default()
        .to_owned()
}
