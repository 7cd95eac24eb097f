//! A link that can be cut: it carries bytes between a client and the server.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The link.
pub(crate) struct Relay {
    pub(crate) port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    streams: Mutex<Vec<TcpStream>>,
    /// Nobody gets through.
    down: AtomicBool,
    /// Cut once so many bytes have passed, up or down.
    limit: AtomicU64,
    passed: AtomicU64,
    connections: AtomicU64,
}

impl Relay {
    /// A link to `port` of this machine.
    pub(crate) fn start(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let own = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            limit: AtomicU64::new(u64::MAX),
            ..State::default()
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                if shared.down.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else {
                    continue;
                };
                shared.connections.fetch_add(1, Ordering::SeqCst);
                for (from, to) in [(&client, &server), (&server, &client)] {
                    from.set_nodelay(true).unwrap();
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let shared = Arc::clone(&shared);
                    std::thread::spawn(move || carry(from, to, &shared));
                }
                shared.streams.lock().unwrap().extend([client, server]);
            }
        });
        Self { port: own, state }
    }

    /// Cut what is open.
    pub(crate) fn cut(&self) {
        self.state.cut();
    }

    /// Cut what is open once `bytes` more have passed.
    pub(crate) fn cut_after(&self, bytes: u64) {
        let passed = self.state.passed.load(Ordering::SeqCst);
        self.state.limit.store(passed + bytes, Ordering::SeqCst);
    }

    /// Let nobody through, or everybody again.
    pub(crate) fn set_down(&self, down: bool) {
        self.state.down.store(down, Ordering::SeqCst);
    }

    /// How many connections there were.
    pub(crate) fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::SeqCst)
    }
}

impl State {
    fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, state: &State) {
    let mut chunk = vec![0; 16 * 1024];
    loop {
        let read = match from.read(&mut chunk) {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        let passed = state.passed.fetch_add(read as u64, Ordering::SeqCst) + read as u64;
        if passed >= state.limit.load(Ordering::SeqCst) {
            state.limit.store(u64::MAX, Ordering::SeqCst);
            state.cut();
            break;
        }
        if to.write_all(&chunk[..read]).is_err() {
            break;
        }
    }
    drop(to.shutdown(Shutdown::Both));
    drop(from.shutdown(Shutdown::Both));
}
