//! A connection to the helper of one VM, and its streams.

use std::sync::Arc;
use std::time::Duration;

use boxery_wire::{self as wire, Reply};
use bytes::{Bytes, BytesMut};
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::boot::{HelperPipe, open_helper};
use crate::run::begin;
use crate::{Ask, ChannelEnd, HostKey, Pipe, PipeChoice, RemoteError, Route};

/// How long a helper that was started may take to greet.
const GREETING: Duration = Duration::from_secs(30);
/// How long its channel may take to say why it ended.
const ENDING: Duration = Duration::from_secs(2);
/// How long what is still to be said may take when a connection is closed.
const CLOSING: Duration = Duration::from_secs(3);
const CHUNK: usize = 128 * 1024;

/// An open connection. Dropping it closes it, and every stream with it, once what
/// was to be said is said.
pub(crate) struct Link {
    connection: wire::Connection,
    kind: PipeChoice,
    host_key: Option<HostKey>,
    folder: String,
    /// Tells whoever moves the bytes that nobody wants them any more.
    _closing: oneshot::Sender<()>,
    /// Open until nobody moves them any more.
    moved: watch::Receiver<()>,
}

/// What greeted: the connection, where the helper lies, and who moves the bytes.
struct Greeted {
    connection: wire::Connection,
    folder: String,
    drive: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Link {
    /// Connect along `route`, and start the helper there.
    pub(crate) async fn open(route: &Route, ask: Ask<'_>) -> Result<Self, RemoteError> {
        let link = Self::over(route.open_pipe(ask).await?).await?;
        if let Some(known) = &route.machine_id {
            link.check_machine(known).await?;
        }
        Ok(link)
    }

    /// Make sure that the VM is the machine it was: nothing is asked of another one.
    async fn check_machine(&self, known: &str) -> Result<(), RemoteError> {
        let stream = self.connection.open().map_err(|_| RemoteError::Lost)?;
        let stream = Stream(Kind::Lone(stream));
        let (reply, _) = timeout(GREETING, begin(&stream, &wire::Request::Hello))
            .await
            .unwrap_or(Err(RemoteError::Lost))?;
        stream.finish().await;
        match reply {
            Reply::Hello(machine) if machine.machine_id == known => Ok(()),
            Reply::Hello(machine) => Err(RemoteError::OtherMachine {
                known: known.to_owned(),
                found: machine.machine_id,
            }),
            Reply::Started
            | Reply::Attached { .. }
            | Reply::Failed(_)
            | Reply::Jobs(_)
            | Reply::Ended(_)
            | Reply::Ports(_)
            | Reply::SetUp(_)
            | Reply::Left(_)
            | Reply::Target(_)
            | Reply::Source(_) => Err(RemoteError::Helper {
                detail: "it didn't say which machine it is on".to_owned(),
            }),
        }
    }

    /// Start the helper at the end of `pipe`.
    pub(crate) async fn over(pipe: Pipe) -> Result<Self, RemoteError> {
        let greeted = open_helper(&pipe, greet).await?;
        let (kind, host_key) = (pipe.kind(), pipe.host_key());
        let drive = greeted.drive;
        let (closing, closed) = oneshot::channel::<()>();
        let (moving, moved) = watch::channel(());
        let connection = greeted.connection.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = drive => {}
                () = async {
                    drop(closed.await);
                    // An answer says that everything before it was taken.
                    drop(timeout(CLOSING, connection.ping()).await);
                    connection.close();
                    tokio::time::sleep(CLOSING).await;
                } => {}
            }
            pipe.close().await;
            drop(moving);
        });
        Ok(Self {
            connection: greeted.connection,
            kind,
            host_key,
            folder: greeted.folder,
            _closing: closing,
            moved,
        })
    }

    /// Begin a stream.
    pub(crate) fn stream(self: &Arc<Self>) -> Result<Stream, RemoteError> {
        let stream = self.connection.open().map_err(|_| RemoteError::Lost)?;
        Ok(Stream(Kind::Own {
            stream,
            _link: Arc::clone(self),
        }))
    }

    /// Whether it is still there, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        self.connection.end().is_none()
    }

    /// Resolves once it is closed, which begins when it and its streams are dropped.
    pub(crate) fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut moved = self.moved.clone();
        async move { while moved.changed().await.is_ok() {} }
    }

    /// `native` or `system`.
    pub(crate) fn kind(&self) -> PipeChoice {
        self.kind
    }

    /// The server's key.
    pub(crate) fn host_key(&self) -> Option<HostKey> {
        self.host_key.clone()
    }

    /// The helper in words: its build, and where it lies on the VM.
    pub(crate) fn describe(&self) -> String {
        let [a, b, c, d, ..] = wire::BUILD;
        let build = u32::from_be_bytes([a, b, c, d]);
        format!("build {build:08x} in {}", self.folder)
    }
}

/// Make sure that it is our helper.
async fn greet(helper: HelperPipe) -> Result<Greeted, RemoteError> {
    let HelperPipe {
        reader,
        mut writer,
        folder,
        alive,
    } = helper;
    let mut reader = BufReader::with_capacity(CHUNK, reader);
    let greeting = wire::greet(wire::Side::Laptop, &mut reader, &mut writer);
    let refused = match timeout(GREETING, greeting).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("it didn't greet in {} s", GREETING.as_secs())),
    };
    if let Some(why) = refused {
        drop(writer);
        let said = alive.said();
        return Err(match timeout(ENDING, alive.ended()).await {
            Ok(ChannelEnd::Failed(error)) => error,
            Ok(ChannelEnd::Status(_) | ChannelEnd::Signal(_)) | Err(_) => RemoteError::Helper {
                detail: if said.is_empty() { why } else { said },
            },
        });
    }
    let (connection, drive) = wire::Connection::new(wire::Side::Laptop, reader, writer);
    let drive = async move {
        let end = drive.await;
        tracing::debug!(%end, "connection over");
        // What was written last is still on its way.
        drop(timeout(ENDING, alive.ended()).await);
    };
    Ok(Greeted {
        connection,
        folder,
        drive: Box::pin(drive),
    })
}

/// A stream to a helper, over a connection of our own or through the daemon.
/// Dropping it without [`Stream::finish`] tells the helper that nobody is there.
pub(crate) struct Stream(Kind);

enum Kind {
    /// One that is done before its connection is anybody's.
    Lone(wire::Stream),
    Own {
        stream: wire::Stream,
        /// The connection lives as long as its streams.
        _link: Arc<Link>,
    },
    Daemon {
        reader: tokio::sync::Mutex<OwnedReadHalf>,
        writer: tokio::sync::Mutex<OwnedWriteHalf>,
    },
}

impl Stream {
    /// One that the daemon carries.
    pub(crate) fn from_daemon(socket: UnixStream) -> Self {
        let (reader, writer) = socket.into_split();
        Self(Kind::Daemon {
            reader: tokio::sync::Mutex::new(reader),
            writer: tokio::sync::Mutex::new(writer),
        })
    }

    /// Send a message. Must not be dropped before it is done.
    pub(crate) async fn send(&self, message: &impl Serialize) -> Result<(), RemoteError> {
        let bytes = wire::encode(message).map_err(|error| RemoteError::BadRequest {
            what: error.to_string(),
        })?;
        self.send_bytes(bytes.into()).await
    }

    /// Send bytes. Must not be dropped before it is done.
    pub(crate) async fn send_bytes(&self, bytes: Bytes) -> Result<(), RemoteError> {
        let sent = match &self.0 {
            Kind::Own { stream, .. } | Kind::Lone(stream) => stream.send(bytes).await.ok(),
            Kind::Daemon { writer, .. } => writer.lock().await.write_all(&bytes).await.ok(),
        };
        sent.ok_or(RemoteError::Lost)
    }

    /// The next bytes; `None` at the end of the stream, orderly or not. May be
    /// dropped at any time.
    pub(crate) async fn recv(&self) -> Option<Bytes> {
        match &self.0 {
            Kind::Own { stream, .. } | Kind::Lone(stream) => stream.recv().await.ok().flatten(),
            Kind::Daemon { reader, .. } => {
                let mut bytes = BytesMut::with_capacity(CHUNK);
                match reader.lock().await.read_buf(&mut bytes).await {
                    Ok(1..) => Some(bytes.freeze()),
                    Ok(0) | Err(_) => None,
                }
            }
        }
    }

    /// Say that no more is sent, and wait until what was sent is on its way.
    pub(crate) async fn finish(&self) {
        match &self.0 {
            Kind::Own { stream, .. } | Kind::Lone(stream) => stream.finish(),
            Kind::Daemon { writer, .. } => drop(writer.lock().await.shutdown().await),
        }
    }
}
