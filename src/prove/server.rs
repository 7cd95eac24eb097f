//! The scripted model server: an agent's model, on the loopback device only.

use std::io::{self, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::Value;

use super::anthropic;
use super::http::{self, Request};
use super::script::Script;

/// A server that plays a script until it is dropped.
pub(crate) struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    script: Arc<Script>,
    ended: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

impl ModelServer {
    /// Serve `script` on a free port of 127.0.0.1.
    pub(crate) fn start(script: Arc<Script>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script,
            ended: AtomicBool::new(false),
            connections: Mutex::default(),
        });
        let accepting = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Ok(Self {
            address,
            shared,
            accepting: Some(accepting),
        })
    }

    /// What an agent takes for its model's address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.accepting.take() {
            drop(thread.join());
        }
        let connections = self
            .shared
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for connection in connections.iter() {
            connection.shutdown(std::net::Shutdown::Both).ok();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for connection in listener.incoming() {
        if shared.ended.load(Ordering::SeqCst) {
            return;
        }
        // A connection that failed before it was accepted is the client's matter.
        let Ok(connection) = connection else { continue };
        if let Ok(kept) = connection.try_clone() {
            shared
                .connections
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(kept);
        }
        let shared = Arc::clone(shared);
        // An agent may hang up at any time; its connection just ends.
        std::thread::spawn(move || serve(&connection, &shared.script).ok());
    }
}

fn serve(connection: &TcpStream, script: &Script) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut requests = BufReader::new(connection);
    let mut answers = io::BufWriter::new(connection);
    while let Some(request) = http::read_request(&mut requests, &mut &*connection)? {
        answer(&request, script, &mut answers)?;
        if !request.keep_alive {
            break;
        }
    }
    Ok(())
}

fn answer(request: &Request, script: &Script, answers: &mut impl io::Write) -> io::Result<()> {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    if request.method == "POST" && request.path.ends_with("/v1/messages") {
        let mut asked = anthropic::read_asked(&body);
        request.client.clone_into(&mut asked.client);
        let (text, calls) = script.play(&asked);
        let id = crate::random::hex()?;
        let message = anthropic::message(&id, &body, &text, &calls);
        return if body["stream"] == true {
            http::write_events(answers, &anthropic::events(&message))
        } else {
            http::write_json(answers, &message.to_string())
        };
    }
    if request.path.ends_with("/count_tokens") {
        return http::write_json(answers, r#"{"input_tokens":10}"#);
    }
    http::write_json(answers, "{}")
}
