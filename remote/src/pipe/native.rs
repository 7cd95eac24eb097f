//! The native pipe: SSH in this process, by russh.
//!
//! russh's defaults that are changed here: Nagle off (44 ms per command
//! without), AES-GCM first, keepalive on, no compression. The window is 16 MiB,
//! which fills a link of 80 ms; what lies unread is bounded by the streams' own
//! windows above it.

use std::borrow::Cow;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use russh::client::{self, Handle};
use russh::keys::PublicKeyOrCertificate;
use russh::{ChannelMsg, Disconnect, Preferred, Sig, cipher, compression};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::{Channel, ChannelEnd, auth};
use crate::known_hosts::{HostKey, KnownHosts, Verdict, host_name};
use crate::{Ask, HostOptions, RemoteError};

/// How much may lie unread between server and caller.
const WINDOW: u32 = 16 * 1024 * 1024;

/// How often a session is asked for, and how long between.
const OPENINGS: u32 = 20;
const TIDYING: Duration = Duration::from_millis(50);

/// An open SSH connection.
pub struct NativePipe {
    handle: Handle<Trust>,
    options: HostOptions,
    host_key: HostKey,
}

impl std::fmt::Debug for NativePipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativePipe")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl NativePipe {
    /// Connect, check the host key and authenticate.
    pub async fn open(
        options: HostOptions,
        ask: Ask<'_>,
        keep_keys: bool,
    ) -> Result<Self, RemoteError> {
        let (mut handle, host_key) = Self::connect(&options).await?;
        let limit = options.connect_timeout.max(Duration::from_secs(30));
        // A person who types a passphrase has all the time there is.
        let authenticated = if ask.is_some() {
            auth::authenticate(&mut handle, &options, ask, keep_keys).await
        } else {
            timeout(
                limit,
                auth::authenticate(&mut handle, &options, ask, keep_keys),
            )
            .await
            .unwrap_or_else(|_| Err(timed_out(&options, limit, "authentication")))
        };
        authenticated?;
        Ok(Self {
            handle,
            options,
            host_key,
        })
    }

    /// Connect and check the host key only.
    pub(crate) async fn connect(
        options: &HostOptions,
    ) -> Result<(Handle<Trust>, HostKey), RemoteError> {
        let known = KnownHosts::of(options)?;
        let stream = connect_tcp(options).await?;
        let mut preferred = Preferred {
            cipher: Cow::Borrowed(&[
                cipher::AES_256_GCM,
                cipher::AES_128_GCM,
                cipher::CHACHA20_POLY1305,
                cipher::AES_256_CTR,
                cipher::AES_192_CTR,
                cipher::AES_128_CTR,
            ]),
            compression: Cow::Borrowed(&[compression::NONE]),
            ..Preferred::DEFAULT
        };
        // Ask for a kind of key that is known, as OpenSSH does.
        let kinds = known.kinds();
        let is_known = |algorithm: &russh::keys::Algorithm| {
            kinds.iter().any(|kind| {
                kind == algorithm || (kind.clone().is_rsa() && algorithm.clone().is_rsa())
            })
        };
        let mut keys = preferred.key.to_vec();
        keys.sort_by_key(|algorithm| !is_known(algorithm));
        preferred.key = Cow::Owned(keys);
        let config = client::Config {
            nodelay: true,
            window_size: WINDOW,
            channel_buffer_size: 32,
            keepalive_interval: Some(options.keepalive),
            keepalive_max: options.keepalive_max,
            preferred,
            ..client::Config::default()
        };
        let seen = Arc::new(Mutex::new(Seen::default()));
        let trust = Trust {
            known,
            name: host_name(&options.host, options.port),
            seen: Arc::clone(&seen),
        };
        let limit = options.connect_timeout;
        let connected = timeout(
            limit,
            client::connect_stream(Arc::new(config), stream, trust),
        )
        .await;
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(refusal) = seen.refusal.take() {
            return Err(refusal);
        }
        let handle = connected
            .map_err(|_| timed_out(options, limit, "SSH handshake"))?
            .map_err(|error| ssh_error(options, &error))?;
        let host_key = seen.key.take().ok_or_else(|| RemoteError::Ssh {
            address: options.address(),
            detail: "the server showed no host key".to_owned(),
        })?;
        Ok((handle, host_key))
    }

    /// Start `command` with the login shell.
    pub async fn exec(&self, command: &str) -> Result<Channel, RemoteError> {
        let failed = |error: russh::Error| ssh_error(&self.options, &error);
        let channel = self.open_session().await.map_err(failed)?;
        channel.exec(true, command).await.map_err(failed)?;
        let (mut reader, writer) = channel.split();
        let stdin = writer.make_writer();
        let (stdout, stdout_reader) = mpsc::channel(8);
        let (stderr, stderr_reader) = mpsc::channel(8);
        let (end, end_reader) = oneshot::channel();
        let address = self.options.address();
        tokio::spawn(async move {
            let mut end = Some(end);
            let mut how = None;
            loop {
                let message = tokio::select! {
                    message = reader.wait() => message,
                    // Nobody waits for this command any more.
                    () = async { match end.as_mut() {
                        Some(end) => end.closed().await,
                        None => std::future::pending().await,
                    } } => break,
                };
                match message {
                    None | Some(ChannelMsg::Close) => break,
                    Some(ChannelMsg::Data { data }) => drop(stdout.send(data).await),
                    Some(ChannelMsg::ExtendedData { data, ext: 1 }) => {
                        drop(stderr.send(data).await);
                    }
                    Some(ChannelMsg::ExitStatus { exit_status }) => {
                        how = Some(ChannelEnd::Status(exit_status));
                    }
                    Some(ChannelMsg::ExitSignal { signal_name, .. }) => {
                        how = Some(ChannelEnd::Signal(signal_text(&signal_name)));
                    }
                    Some(ChannelMsg::Failure) => {
                        how = Some(ChannelEnd::Failed(RemoteError::Ssh {
                            address: address.clone(),
                            detail: "the server refused to start a command".to_owned(),
                        }));
                        break;
                    }
                    Some(_) => {}
                }
            }
            drop((stdout, stderr));
            drop(writer.close().await);
            if let Some(end) = end.take() {
                drop(end.send(how.unwrap_or(ChannelEnd::Failed(RemoteError::Lost))));
            }
        });
        Ok(Channel {
            stdin: Box::pin(stdin),
            stdout: Box::pin(ByteReader::new(stdout_reader)),
            stderr: Box::pin(ByteReader::new(stderr_reader)),
            end: Box::pin(async move {
                end_reader
                    .await
                    .unwrap_or(ChannelEnd::Failed(RemoteError::Lost))
            }),
        })
    }

    /// A server that allows one session only may refuse the next while it tidies up
    /// behind the last.
    async fn open_session(&self) -> Result<russh::Channel<client::Msg>, russh::Error> {
        let mut tries = 0;
        loop {
            match self.handle.channel_open_session().await {
                Err(russh::Error::ChannelOpenFailure(_)) if tries < OPENINGS => {
                    tries += 1;
                    tokio::time::sleep(TIDYING).await;
                }
                opened => return opened,
            }
        }
    }

    /// Say goodbye; the server ends what still runs on this connection.
    pub async fn close(&self) {
        let goodbye = self.handle.disconnect(Disconnect::ByApplication, "", "");
        drop(timeout(Duration::from_secs(1), goodbye).await);
    }

    /// Where it leads.
    pub fn options(&self) -> &HostOptions {
        &self.options
    }

    /// The server's key.
    pub fn host_key(&self) -> &HostKey {
        &self.host_key
    }
}

async fn connect_tcp(options: &HostOptions) -> Result<TcpStream, RemoteError> {
    let limit = options.connect_timeout;
    let addresses: Vec<_> = timeout(
        limit,
        tokio::net::lookup_host((options.host.as_str(), options.port)),
    )
    .await
    .map_err(|_| timed_out(options, limit, "name lookup"))?
    .map_err(|_| RemoteError::Resolve {
        host: options.host.clone(),
    })?
    .collect();
    let mut last = RemoteError::Resolve {
        host: options.host.clone(),
    };
    for address in addresses {
        last = match timeout(limit, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                drop(stream.set_nodelay(true));
                limit_silence(&stream, options);
                return Ok(stream);
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                RemoteError::Refused {
                    address: options.address(),
                }
            }
            Ok(Err(error)) => RemoteError::Unreachable {
                address: options.address(),
                detail: error.to_string(),
            },
            Err(_) => timed_out(options, limit, "TCP connection"),
        };
    }
    Err(last)
}

/// russh asks for a sign of life only while it isn't writing. What it writes into a dead
/// connection is given as much time by the kernel, instead of a quarter of an hour.
#[cfg(target_os = "linux")]
fn limit_silence(stream: &TcpStream, options: &HostOptions) {
    let times = u32::try_from(options.keepalive_max).unwrap_or(u32::MAX);
    let limit = options.keepalive.saturating_mul(times);
    let limit = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
    // Without it a dead connection is found later.
    let _: rustix::io::Result<()> = rustix::net::sockopt::set_tcp_user_timeout(stream, limit);
}

/// Other systems have no such limit.
#[cfg(not(target_os = "linux"))]
fn limit_silence(_: &TcpStream, _: &HostOptions) {}

fn timed_out(options: &HostOptions, limit: Duration, step: &'static str) -> RemoteError {
    RemoteError::Timeout {
        address: options.address(),
        seconds: limit.as_secs(),
        step,
    }
}

/// What russh's error means here. Text of the server's is cut to one line.
pub(super) fn ssh_error(options: &HostOptions, error: &russh::Error) -> RemoteError {
    let detail = match error {
        russh::Error::HUP | russh::Error::Disconnect => {
            "the server closed the connection".to_owned()
        }
        other => other.to_string(),
    };
    RemoteError::Ssh {
        address: options.address(),
        detail,
    }
}

fn signal_text(signal: &Sig) -> String {
    match signal {
        Sig::Custom(name) => name.clone(),
        other => format!("{other:?}"),
    }
}

#[derive(Debug, Default)]
struct Seen {
    key: Option<HostKey>,
    refusal: Option<RemoteError>,
}

/// Judges the server's key by the known hosts.
#[derive(Debug)]
pub(crate) struct Trust {
    known: KnownHosts,
    name: String,
    seen: Arc<Mutex<Seen>>,
}

impl client::Handler for Trust {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        shown: &PublicKeyOrCertificate,
    ) -> Result<bool, russh::Error> {
        let host = self.name.clone();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let PublicKeyOrCertificate::PublicKey { key, .. } = shown else {
            seen.refusal = Some(RemoteError::HostKeyAuthority { host });
            return Ok(false);
        };
        let shown = HostKey::new(&host, key);
        let fingerprint = shown.fingerprint.clone();
        seen.refusal = Some(match self.known.judge(key) {
            Verdict::Known => {
                seen.key = Some(shown);
                return Ok(true);
            }
            Verdict::Unknown => RemoteError::HostKeyUnknown {
                host,
                algorithm: shown.algorithm,
                fingerprint,
                line: shown.line,
            },
            Verdict::Changed(known) => RemoteError::HostKeyChanged {
                host,
                algorithm: shown.algorithm,
                line: shown.line,
                fingerprint,
                known,
            },
            Verdict::Revoked => RemoteError::HostKeyRevoked { host, fingerprint },
            Verdict::Authority => RemoteError::HostKeyAuthority { host },
        });
        Ok(false)
    }
}

/// Chunks as a byte stream.
struct ByteReader {
    chunks: mpsc::Receiver<Bytes>,
    rest: Bytes,
}

impl ByteReader {
    fn new(chunks: mpsc::Receiver<Bytes>) -> Self {
        Self {
            chunks,
            rest: Bytes::new(),
        }
    }
}

impl AsyncRead for ByteReader {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(self.chunks.poll_recv(context)) {
                Some(chunk) => self.rest = chunk,
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest[..length]);
        self.rest.advance(length);
        Poll::Ready(Ok(()))
    }
}
