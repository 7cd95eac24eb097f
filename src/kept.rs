//! What of an agent's shell outlives its call: asked for here, kept on the VM.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use boxery_remote::{Keep, Listener, RunNote, StateId};
use boxery_router::Ticket;

use crate::config::StateRule;
use crate::ui::Ui;

/// What of the agent's shell outlives this call.
pub(crate) fn keep(ticket: &Ticket, rule: StateRule) -> Option<Keep> {
    let session = ticket.session.as_ref()?.to_string();
    let key = |subagent: &str| {
        let mut text = Vec::new();
        for part in [ticket.agent.to_string().as_str(), &session, subagent] {
            text.extend(part.len().to_le_bytes());
            text.extend(part.as_bytes());
        }
        state_id(&text)
    };
    let exports = rule == StateRule::Exports;
    if !ticket.keeps_folder && !exports {
        return None;
    }
    Some(Keep {
        key: key(ticket.subagent.as_deref().unwrap_or_default()),
        // A subagent begins as a copy of the main one.
        from: ticket.subagent.as_ref().map(|_| key("")),
        folder: ticket.keeps_folder,
        exports,
    })
}

/// The name under which a VM keeps what belongs to `bytes`.
pub(crate) fn state_id(bytes: &[u8]) -> StateId {
    let digest = boxery_record::sha256_hex(bytes);
    // 64 digits: there is always a number.
    let number = u128::from_str_radix(&digest[..32], 16).unwrap_or_default();
    StateId(number.to_be_bytes())
}

/// Tells `ui` what there is to say of a run before its first byte, else whoever
/// receives.
pub(crate) fn listener(ui: Option<Ui>) -> (Listener, Receiver<String>) {
    let (tell, heard) = channel();
    let listener = Listener(Arc::new(move |note: RunNote| match ui {
        Some(ui) => ui.note(told(&note)),
        None => drop(tell.send(told(&note))),
    }));
    (listener, heard)
}

fn told(note: &RunNote) -> String {
    match note {
        RunNote::FolderGone(folder) => format!(
            "`{folder}`, where this session's last command ended, is gone; this one runs in the call's own folder"
        ),
    }
}
