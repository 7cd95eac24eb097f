//! The ports on which a run listens, offered here and told at a place where a line of
//! boxery's own may stand: before the command's first byte, or after its last.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use boxery_pin::VmName;
use boxery_remote::jobs::JobId;
use boxery_remote::{
    Announced, Offer, Output, PortChoice, RunEnd, RunExit, WantedPorts, Way, Whose,
};
use tokio::io::AsyncWrite;

use crate::config::Vm;
use crate::ui::Ui;

/// A command that is over sooner is asked for no ports.
const SETTLED: Duration = Duration::from_millis(300);

/// The ports of one run, or of the session it belongs to.
pub(crate) struct Ports {
    way: Arc<Way>,
    vm: VmName,
    /// Nothing when the user wants none.
    wanted: Option<WantedPorts>,
    /// Whether the command has printed anything.
    printed: Arc<AtomicBool>,
    /// What was not told yet, because the command had printed.
    held: Rc<RefCell<BTreeSet<(u16, u16)>>>,
}

impl Ports {
    /// Those of the session, or of the run `id` where it belongs to none.
    pub(crate) fn new(way: &Arc<Way>, name: &VmName, vm: &Vm, session: &str, id: JobId) -> Self {
        let whose = if session.is_empty() {
            Whose::Run(id)
        } else {
            Whose::Session(session.to_owned())
        };
        let choice = vm.ports.clone();
        // What listens on this machine needs no way here.
        let wanted = choice != PortChoice::Off && !vm.is_embedded();
        Self {
            way: Arc::clone(way),
            vm: name.clone(),
            wanted: wanted.then_some(WantedPorts { whose, choice }),
            printed: Arc::default(),
            held: Rc::default(),
        }
    }

    /// The way to the VM.
    pub(crate) fn way(&self) -> &Way {
        &self.way
    }

    /// What a session's earlier calls left listening, told once.
    pub(crate) async fn news(&self) -> Vec<String> {
        match &self.wanted {
            Some(wanted) if matches!(wanted.whose, Whose::Session(_)) => {
                self.lines(&self.way.known_ports(wanted).await)
            }
            Some(_) | None => Vec::new(),
        }
    }

    /// What listens now, offered for as long as it does.
    pub(crate) async fn offered(&self) -> Vec<String> {
        match &self.wanted {
            Some(wanted) => self.lines(&self.way.offer_ports(wanted).await),
            None => Vec::new(),
        }
    }

    /// The same output; from its first byte on, nothing is told until the end.
    pub(crate) fn watched(&self, output: Output) -> Output {
        Box::pin(Watched {
            output,
            printed: Arc::clone(&self.printed),
        })
    }

    /// Offer what the run listens on while it runs. `tell` says so where the command
    /// hasn't printed anything.
    pub(crate) async fn beside<T>(
        &self,
        mut running: impl Future<Output = T> + Unpin,
        tell: Option<Ui>,
    ) -> T {
        let following = Box::pin(async {
            tokio::time::sleep(SETTLED).await;
            if let Some(wanted) = &self.wanted {
                let say = |now: Vec<Announced>| self.say(&now, tell);
                self.way.follow_ports(wanted, say).await;
            }
            std::future::pending::<()>().await;
        });
        tokio::select! {
            biased;
            ended = &mut running => ended,
            () = following => unreachable!("it waits for the run"),
        }
    }

    fn say(&self, now: &[Announced], tell: Option<Ui>) {
        for announced in now.iter().filter(|announced| announced.new) {
            let offer = announced.offer;
            match tell {
                Some(ui) if !self.printed.load(Ordering::SeqCst) => ui.note(self.line(offer)),
                Some(_) | None => drop(self.held.borrow_mut().insert((offer.port, offer.local))),
            }
        }
    }

    /// What the run left listening and nobody was told of.
    pub(crate) async fn closing(&self, end: RunEnd) -> Vec<String> {
        let left = matches!((end.exit, end.left), (RunExit::Code(_), Some(1..)));
        let held = self.held.take();
        match &self.wanted {
            Some(wanted) if left || !held.is_empty() => {
                let mut now = self.way.offer_ports(wanted).await;
                for announced in &mut now {
                    let offer = announced.offer;
                    announced.new |= held.contains(&(offer.port, offer.local));
                }
                self.lines(&now)
            }
            Some(_) | None => Vec::new(),
        }
    }

    fn lines(&self, now: &[Announced]) -> Vec<String> {
        let new = now.iter().filter(|announced| announced.new);
        new.map(|announced| self.line(announced.offer)).collect()
    }

    fn line(&self, offer: Offer) -> String {
        format!(
            "port {} of {} is 127.0.0.1:{} on this laptop",
            offer.port, self.vm, offer.local
        )
    }
}

/// An output that notes its first byte.
struct Watched {
    output: Output,
    printed: Arc<AtomicBool>,
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.printed.store(true, Ordering::SeqCst);
        self.output.as_mut().poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.as_mut().poll_shutdown(context)
    }
}
