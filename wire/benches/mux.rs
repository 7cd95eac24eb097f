//! What this crate's own multiplexing costs beside yamux, over the same socket pair:
//! `cargo bench -p boxery-wire`.
//!
//! Each end has a thread and a runtime of its own. The rounds of both are interleaved,
//! and the table shows medians. Nothing here passes or fails.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that fails says so, and prints its figures"
)]

use std::collections::VecDeque;
use std::future::poll_fn;
use std::os::unix::net::UnixStream as Socket;
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use boxery_wire::{Connection, Side, Stream};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;
use tokio_util::compat::{FuturesAsyncReadCompatExt as _, TokioAsyncReadCompatExt as _};
use yamux::{Config, Mode};

const MIB: usize = 1024 * 1024;
/// Of one throughput round.
const BYTES: usize = 512 * MIB;
const ECHOES: usize = 3000;
const ROUNDS: usize = 5;

/// What the far end does with a stream, by its first byte.
const ECHO: u8 = 0;
const SINK: u8 = 1;
const UNREAD: u8 = 2;

/// What one round took.
#[derive(Clone, Copy)]
struct Round {
    /// A stream of its own for one byte there and back.
    open: Duration,
    /// One byte there and back on a stream that is open.
    echo: Duration,
    /// The same beside a stream that is full and that nobody reads.
    beside: Duration,
    /// [`BYTES`] on one stream.
    bulk: Duration,
}

fn main() {
    let mut own = Vec::new();
    let mut theirs = Vec::new();
    for _ in 0..ROUNDS {
        own.push(round(serve_own, |socket| Box::pin(drive_own(socket))));
        theirs.push(round(serve_yamux, |socket| Box::pin(drive_yamux(socket))));
    }
    println!("| what | boxery-wire | yamux | x |\n|---|---|---|---|");
    let row = |name: &str, of: fn(&Round) -> Duration| {
        let (own, theirs) = (median(&own, of), median(&theirs, of));
        println!(
            "| {name} | {:.1} µs | {:.1} µs | {:.2} |",
            own * 1e6,
            theirs * 1e6,
            own / theirs
        );
    };
    row("a stream of its own for one byte and back", |r| r.open);
    row("one byte and back", |r| r.echo);
    row("one byte and back beside an unread stream", |r| r.beside);
    row("512 MiB on one stream", |r| r.bulk);
}

fn median(rounds: &[Round], of: fn(&Round) -> Duration) -> f64 {
    let mut times: Vec<Duration> = rounds.iter().map(of).collect();
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

type Driven = std::pin::Pin<Box<dyn Future<Output = Round>>>;

fn round(serve: fn(Socket), drive: fn(UnixStream) -> Driven) -> Round {
    let (near, far) = Socket::pair().unwrap();
    let far: JoinHandle<()> = thread::spawn(move || serve(far));
    let round = on_runtime(async move { drive(tokio_socket(near)).await });
    far.join().unwrap();
    round
}

fn on_runtime<T>(future: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(LocalSet::new().run_until(future))
}

fn tokio_socket(socket: Socket) -> UnixStream {
    socket.set_nonblocking(true).unwrap();
    UnixStream::from_std(socket).unwrap()
}

// This crate's own.

fn serve_own(socket: Socket) {
    on_runtime(async move {
        let (reader, writer) = tokio_socket(socket).into_split();
        let (connection, drive) = Connection::new(Side::Vm, reader, writer);
        tokio::task::spawn_local(async move {
            while let Ok(stream) = connection.accept().await {
                tokio::task::spawn_local(async move { answer_own(&stream).await });
            }
        });
        drive.await;
    });
}

async fn answer_own(stream: &Stream) {
    let mut first = stream.recv().await.unwrap().unwrap();
    match first[0] {
        ECHO => {
            let mut bytes = first.split_off(1);
            loop {
                if !bytes.is_empty() && stream.send(bytes).await.is_err() {
                    return;
                }
                match stream.recv().await {
                    Ok(Some(more)) => bytes = more,
                    Ok(None) | Err(_) => return,
                }
            }
        }
        SINK => {
            while let Ok(Some(_)) = stream.recv().await {}
            stream.send(vec![0]).await.unwrap();
            stream.finish();
        }
        _ => std::future::pending().await,
    }
}

async fn drive_own(socket: UnixStream) -> Round {
    let (reader, writer) = socket.into_split();
    let (connection, drive) = Connection::new(Side::Laptop, reader, writer);
    tokio::task::spawn_local(drive);
    let open = |kind: u8| {
        let stream = connection.open().unwrap();
        async move {
            stream.send(vec![kind]).await.unwrap();
            stream
        }
    };
    let began = Instant::now();
    for _ in 0..ECHOES {
        let stream = open(ECHO).await;
        echo_own(&stream).await;
    }
    let opening = began.elapsed();
    let stream = open(ECHO).await;
    let began = Instant::now();
    for _ in 0..ECHOES {
        echo_own(&stream).await;
    }
    let echoing = began.elapsed();
    let began = Instant::now();
    let sink = open(SINK).await;
    for _ in 0..BYTES / (128 * 1024) {
        sink.send(vec![7; 128 * 1024]).await.unwrap();
    }
    sink.finish();
    sink.recv().await.unwrap();
    let bulk = began.elapsed();
    let unread = open(UNREAD).await;
    let filling =
        tokio::task::spawn_local(
            async move { while unread.send(vec![7; 128 * 1024]).await.is_ok() {} },
        );
    let began = Instant::now();
    for _ in 0..ECHOES {
        echo_own(&stream).await;
    }
    let beside = began.elapsed();
    filling.abort();
    connection.close();
    Round::of(opening, echoing, beside, bulk)
}

async fn echo_own(stream: &Stream) {
    stream.send(vec![9]).await.unwrap();
    stream.recv().await.unwrap().unwrap();
}

impl Round {
    fn of(opening: Duration, echoing: Duration, beside: Duration, bulk: Duration) -> Self {
        let each = |all: Duration| all / u32::try_from(ECHOES).unwrap();
        Self {
            open: each(opening),
            echo: each(echoing),
            beside: each(beside),
            bulk,
        }
    }
}

// yamux, with a window as wide.

fn config() -> Config {
    let mut config = Config::default();
    config.set_max_connection_receive_window(None);
    config.set_max_num_streams(4096);
    config
}

type Wish = oneshot::Sender<yamux::Stream>;

/// Drive a connection until it ends: streams that are wished for are opened, and those
/// that come are given to `come`.
async fn drive_all(
    socket: UnixStream,
    mode: Mode,
    mut wishes: mpsc::UnboundedReceiver<Wish>,
    mut come: impl FnMut(yamux::Stream),
) {
    let mut connection = yamux::Connection::new(socket.compat(), config(), mode);
    let mut waiting: VecDeque<Wish> = VecDeque::new();
    poll_fn(|context| {
        while let Poll::Ready(Some(wish)) = wishes.poll_recv(context) {
            waiting.push_back(wish);
        }
        while !waiting.is_empty() {
            match connection.poll_new_outbound(context) {
                Poll::Ready(Ok(stream)) => drop(waiting.pop_front().unwrap().send(stream)),
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        loop {
            match connection.poll_next_inbound(context) {
                Poll::Ready(Some(Ok(stream))) => come(stream),
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
}

fn serve_yamux(socket: Socket) {
    on_runtime(async move {
        let (_keep, wishes) = mpsc::unbounded_channel();
        drive_all(tokio_socket(socket), Mode::Server, wishes, |stream| {
            tokio::task::spawn_local(answer_yamux(stream.compat()));
        })
        .await;
    });
}

async fn answer_yamux(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut buffer = vec![0; 128 * 1024];
    let Ok(kind) = stream.read_u8().await else {
        return;
    };
    match kind {
        ECHO => loop {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(count) => {
                    if stream.write_all(&buffer[..count]).await.is_err() {
                        return;
                    }
                    stream.flush().await.unwrap();
                }
            }
        },
        SINK => {
            while let Ok(1..) = stream.read(&mut buffer).await {}
            stream.write_all(&[0]).await.unwrap();
            stream.flush().await.unwrap();
            stream.shutdown().await.unwrap();
        }
        _ => std::future::pending().await,
    }
}

async fn drive_yamux(socket: UnixStream) -> Round {
    let (wish, wishes) = mpsc::unbounded_channel();
    let driving = tokio::task::spawn_local(drive_all(socket, Mode::Client, wishes, drop));
    let open = |kind: u8| {
        let (tell, told) = oneshot::channel();
        wish.send(tell).unwrap();
        async move {
            let mut stream = told.await.unwrap().compat();
            stream.write_all(&[kind]).await.unwrap();
            stream
        }
    };
    let began = Instant::now();
    for _ in 0..ECHOES {
        let mut stream = open(ECHO).await;
        echo_yamux(&mut stream).await;
    }
    let opening = began.elapsed();
    let mut stream = open(ECHO).await;
    let began = Instant::now();
    for _ in 0..ECHOES {
        echo_yamux(&mut stream).await;
    }
    let echoing = began.elapsed();
    let piece = vec![7; 128 * 1024];
    let began = Instant::now();
    let mut sink = open(SINK).await;
    for _ in 0..BYTES / piece.len() {
        sink.write_all(&piece).await.unwrap();
    }
    sink.shutdown().await.unwrap();
    sink.read_u8().await.unwrap();
    let bulk = began.elapsed();
    let mut unread = open(UNREAD).await;
    let filling =
        tokio::task::spawn_local(async move { while unread.write_all(&piece).await.is_ok() {} });
    let began = Instant::now();
    for _ in 0..ECHOES {
        echo_yamux(&mut stream).await;
    }
    let beside = began.elapsed();
    filling.abort();
    driving.abort();
    Round::of(opening, echoing, beside, bulk)
}

async fn echo_yamux(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    stream.write_all(&[9]).await.unwrap();
    stream.flush().await.unwrap();
    stream.read_u8().await.unwrap();
}
