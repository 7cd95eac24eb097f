//! The pipe to the laptop: stdin and stdout, whatever sshd made them of.

#![expect(
    unsafe_code,
    reason = "tokio wants a promise that a descriptor stays the same"
)]

use std::fmt::Display;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// One end of a pipe or a socket.
#[derive(Debug)]
pub(crate) struct Pipe(AsyncFd<OwnedFd>);

impl Pipe {
    /// Our stdin.
    pub(crate) fn stdin() -> io::Result<Self> {
        Self::new(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?)
    }

    /// Our stdout.
    pub(crate) fn stdout() -> io::Result<Self> {
        Self::new(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?)
    }

    fn new(fd: OwnedFd) -> io::Result<Self> {
        let flags = fcntl_getfl(&fd)?;
        fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
        // SAFETY: an `OwnedFd` owns its descriptor and gives the same one each time.
        let fd = unsafe { AsyncFd::register(fd) }?;
        Ok(Self(fd))
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(context))?;
            let unfilled = buffer.initialize_unfilled();
            match ready.try_io(|fd| Ok(rustix::io::read(fd, &mut *unfilled)?)) {
                Ok(Ok(length)) => {
                    buffer.advance(length);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.0.poll_write_ready(context))?;
            match ready.try_io(|fd| Ok(rustix::io::write(fd, bytes)?)) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(done) => return Poll::Ready(done),
                Err(_would_block) => {}
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Write to stdout what a person asked for.
pub(crate) fn write_all(bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(rustix::stdio::stdout(), rest)?;
        rest = &rest[written..];
    }
    Ok(())
}

/// Tell a person why this process ends; nothing can be done if that fails.
pub(crate) fn complain(error: &dyn Display) {
    let text = format!("boxery-helper: {error}\n");
    let _: Result<usize, _> = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
}
