//! The end of boxery on this VM: its programs and what runs left there.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::folder::Folders;
use crate::login::Login;
use crate::old;

/// Remove this program, others like it beside it, and the folders of runs, unless runs
/// go on: how many do.
pub(crate) fn run(program: &Path, folders: &Folders, login: &Login) -> u32 {
    let running = folders.running();
    if running > 0 {
        return running;
    }
    // This process goes on with the files that it has open.
    old::remove_all(program);
    folders.remove();
    // Where the start looked for a place for this program. Only what is empty goes.
    let user = &login.user;
    let mut places: Vec<PathBuf> = ["/var/tmp", "/tmp", "/dev/shm"]
        .map(|folder| Path::new(folder).join(format!("boxery-{}", user.name)))
        .to_vec();
    places.extend([".cache/boxery", ".boxery"].map(|name| user.home.join(name)));
    for name in ["XDG_CACHE_HOME", "XDG_RUNTIME_DIR"] {
        let folder = login.variable(name);
        places
            .extend(folder.map(|folder| PathBuf::from(OsStr::from_bytes(&folder)).join("boxery")));
    }
    places.extend(program.parent().map(Path::to_owned));
    for place in places {
        fs::remove_dir(place).ok();
    }
    0
}
