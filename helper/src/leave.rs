//! The end of boxery on this VM: its programs and what runs left there.

use std::fs;
use std::path::Path;

use crate::folder::Folders;
use crate::old;

/// Remove this program, others like it beside it, and the folders of runs, unless runs
/// go on: how many do.
pub(crate) fn run(program: &Path, folders: &Folders) -> u32 {
    let running = folders.running();
    if running > 0 {
        return running;
    }
    // This process goes on with the files that it has open.
    old::remove_all(program);
    folders.remove();
    if let Some(folder) = program.parent() {
        // Only where nothing else is in it.
        fs::remove_dir(folder).ok();
    }
    0
}
