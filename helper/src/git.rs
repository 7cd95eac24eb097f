//! Who the user is to git, where the VM doesn't say.
//!
//! git takes a name and an address from its configuration, from the widest scope to
//! the narrowest: the system's, the user's, the repository's; what the environment
//! names (`GIT_AUTHOR_NAME`, `GIT_CONFIG_COUNT`) wins over all of them. The
//! laptop's must win over none, so it goes into the widest one: a file that includes
//! what the system's own says, named by `GIT_CONFIG_SYSTEM` (git 2.32).

use std::io;
use std::path::{Path, PathBuf};

use boxery_wire::{GitUser, RunId};

use crate::folder;
use crate::keep::Variables;

/// The variable that names the system's configuration, and the one that turns it off.
const FILE: &[u8] = b"GIT_CONFIG_SYSTEM";
const NONE: &[u8] = b"GIT_CONFIG_NOSYSTEM";
/// Where git looks for it, depending on how it was built.
const SYSTEM: &[&str] = &[
    "/etc/gitconfig",
    "/usr/local/etc/gitconfig",
    "/home/linuxbrew/.linuxbrew/etc/gitconfig",
];

/// Have git find `user` there. `folder` is the run's own.
pub(crate) fn introduce(user: &GitUser, folder: &Path, run: RunId, environment: &mut Variables) {
    if environment.contains_key(FILE) || environment.contains_key(NONE) {
        return;
    }
    // Without it git asks who the user is, as it does without boxery.
    if let Ok(file) = write(user, folder, run) {
        use std::os::unix::ffi::OsStringExt as _;
        environment.insert(FILE.to_vec(), file.into_os_string().into_vec());
    }
}

/// The file for this user, which stays: what a command leaves running may read it.
fn write(user: &GitUser, folder: &Path, run: RunId) -> io::Result<PathBuf> {
    let state = folder.parent().and_then(Path::parent);
    let state = state.ok_or(io::ErrorKind::NotFound)?;
    let text = text(user);
    // Tells the files of several laptops apart; what stands in one is compared.
    let digest = blake3::hash(text.as_bytes()).to_hex();
    let name = format!("gitconfig-{}", &digest[..16]);
    let file = state.join(&name);
    if !std::fs::read(&file).is_ok_and(|there| there == text.as_bytes()) {
        folder::replace_by(state, &name, &format!("{name}.{run}"), text.as_bytes())?;
    }
    Ok(file)
}

fn text(user: &GitUser) -> String {
    let mut text = String::new();
    for file in SYSTEM {
        text.extend(["[include]\n\tpath = ", file, "\n"]);
    }
    text += "[user]\n";
    for (key, value) in [("name", &user.name), ("email", &user.email)] {
        if !value.is_empty() {
            text.extend(["\t", key, " = ", &quote(value), "\n"]);
        }
    }
    text
}

/// A value as git reads it back.
fn quote(value: &str) -> String {
    let mut quoted = String::from("\"");
    for character in value.chars() {
        match character {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            '\n' => quoted += "\\n",
            '\t' => quoted += "\\t",
            '\u{8}' => quoted += "\\b",
            '\0' | '\r' => {}
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
