//! The copy's side of a sync: the crate `sync` over a conversation.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::path::Path;

use boxery_wire::copy::Talk;

/// Answer the laptop until it closes. Nothing outside of `copy` is touched.
pub(crate) fn serve(talk: Talk, copy: &Path) -> io::Result<()> {
    let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let talk = RefCell::new(talk);
    boxery_sync::talk::serve(
        copy,
        machine.trim(),
        || talk.borrow_mut().hear(),
        |answer| talk.borrow_mut().say(answer),
        |descriptor| talk.borrow().wait(descriptor),
    )
}
