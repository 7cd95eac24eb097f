//! The first copy of a project that was just pinned.

use std::sync::Arc;

use boxery_pin::{PathMap, VmName};
use boxery_sync::Side;

use super::around::LARGE;
use super::changes::moved;
use super::engine::{sync_failure, synchronise};
use super::pair::{Creation, Pair, Wish};
use super::show::{Show, size};
use crate::app::App;
use crate::error::Failure;
use crate::reach;
use crate::ui::counted;

/// Tell what of the project goes to `vm` and what stays here, ask if it is large, and
/// send it.
pub(crate) fn first_copy(app: &App, vm: &VmName, map: &PathMap) -> Result<(), Failure> {
    let pair = Arc::new(Pair::new(app, vm, map)?);
    let scan = pair.scan().map_err(sync_failure)?;
    let (files, bytes) = (scan.snapshot.files(), scan.snapshot.bytes());
    app.ui.say(format_args!(
        "to {vm} go {}, {}; ignored files stay here",
        counted(files, "file"),
        size(bytes)
    ));
    // A program there may ask for them, and their names are what people look for.
    for path in scan.left_out(is_like_env) {
        app.ui.say(format_args!("stays here: {path}"));
    }
    if bytes > LARGE && app.ui.confirm("Send it now?") != Some(true) {
        app.ui
            .say(format_args!("not sent; `boxery sync {vm}` does that"));
        return Ok(());
    }
    let wish = Wish {
        making: Creation::Asked,
        ..Wish::default()
    };
    let config = app.config()?;
    let report = reach::block_on(async {
        let way = reach::open(app, vm, config.vm(vm)?).await?;
        synchronise(app, &pair, &way, &wish, Show::Bar.tell(app.ui)).await
    });
    app.ui.progress(None);
    let sent = moved(&report??, Side::Vm);
    app.ui.say(format_args!(
        "sent {}, {} to `{}` on {vm}",
        counted(sent.files, "file"),
        size(sent.bytes),
        map.folder
    ));
    Ok(())
}

/// `.env`, `.env.local`, `prod.env`; `.envrc` is a program of the user's.
fn is_like_env(name: &[u8]) -> bool {
    name == b".env" || name.starts_with(b".env.") || name.ends_with(b".env")
}
