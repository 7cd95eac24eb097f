//! The children of a `serve`: supervisors it started, and what dead ones left it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use rustix::process::{Pid, WaitOptions, WaitStatus, wait};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::process;

/// Knows each child that this process started, and reaps every child it has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Children {
    known: Rc<RefCell<HashMap<i32, oneshot::Sender<WaitStatus>>>>,
}

impl Children {
    /// Watch a child that was just started; resolves when it ends.
    pub(crate) fn watch(&self, pid: u32) -> oneshot::Receiver<WaitStatus> {
        let (sender, ended) = oneshot::channel();
        let pid = i32::try_from(pid).unwrap_or(i32::MAX);
        self.known.borrow_mut().insert(pid, sender);
        ended
    }

    /// Reap children as they end. This process is a subreaper: what a dead
    /// supervisor left behind becomes its child, belongs to nobody and is ended.
    pub(crate) async fn reap(&self) -> io::Result<()> {
        let mut ended = signal(SignalKind::child())?;
        let mut has_orphans = false;
        loop {
            ended.recv().await;
            while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
                let known = self.known.borrow_mut().remove(&pid.as_raw_pid());
                // A supervisor that ends in order leaves nobody.
                has_orphans |= known.is_none() || status.exit_status() != Some(0);
                if let Some(known) = known {
                    let _: Result<(), WaitStatus> = known.send(status);
                }
            }
            has_orphans = has_orphans && self.sweep();
        }
    }

    /// End every child that this process didn't start; whether there was one, and
    /// its own children may be next.
    fn sweep(&self) -> bool {
        let mut found = false;
        let known = self.known.borrow();
        let own = rustix::process::getpid();
        for orphan in process::descendants(own) {
            let is_child = orphan.parent == own.as_raw_pid();
            if is_child
                && !known.contains_key(&orphan.pid)
                && let Some(pid) = Pid::from_raw(orphan.pid)
            {
                process::kill(pid);
                found = true;
            }
        }
        found
    }
}
