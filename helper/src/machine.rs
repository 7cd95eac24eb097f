//! What there is to know of this VM and of the user, without asking libc for names.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use boxery_wire::{Blob, Machine};

use crate::clock;
use crate::login::Login;

/// A line of `/etc/passwd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) home: PathBuf,
    pub(crate) shell: PathBuf,
}

/// The user that this process runs as: the environment's word first, since a
/// directory service may know users that `/etc/passwd` doesn't.
pub(crate) fn user(variable: impl Fn(&str) -> Option<Vec<u8>>) -> User {
    let uid = rustix::process::getuid().as_raw();
    let passwd = fs::read("/etc/passwd").unwrap_or_default();
    let known = parse_passwd(&passwd, uid);
    let path = |name: &str| {
        variable(name)
            .filter(|value| value.starts_with(b"/"))
            .map(|value| PathBuf::from(OsStr::from_bytes(&value)))
    };
    let name = variable("USER").or_else(|| variable("LOGNAME"));
    User {
        name: name
            .and_then(|name| String::from_utf8(name).ok())
            .filter(|name| !name.is_empty())
            .or_else(|| known.as_ref().map(|user| user.name.clone()))
            .unwrap_or_else(|| uid.to_string()),
        home: path("HOME")
            .or_else(|| known.as_ref().map(|user| user.home.clone()))
            .unwrap_or_else(|| PathBuf::from("/")),
        shell: known
            .map(|user| user.shell)
            .or_else(|| path("SHELL"))
            .unwrap_or_else(|| PathBuf::from("/bin/sh")),
    }
}

fn parse_passwd(text: &[u8], uid: u32) -> Option<User> {
    let path = |field: &[u8], default: &str| {
        if field.starts_with(b"/") {
            PathBuf::from(OsStr::from_bytes(field))
        } else {
            PathBuf::from(default)
        }
    };
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b':').collect();
        let [name, _, number, _, _, home, shell] = fields.as_slice() else {
            return None;
        };
        let number: u32 = std::str::from_utf8(number).ok()?.parse().ok()?;
        (number == uid).then(|| User {
            name: String::from_utf8_lossy(name).into_owned(),
            home: path(home, "/"),
            shell: path(shell, "/bin/sh"),
        })
    })
}

/// The first file named `program` in `path` that may be executed.
pub(crate) fn find(program: &str, path: &[u8]) -> Option<PathBuf> {
    path.split(|byte| *byte == b':')
        .filter(|folder| folder.starts_with(b"/"))
        .map(|folder| Path::new(OsStr::from_bytes(folder)).join(program))
        .find(|file| {
            file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
        })
}

/// The machine's own name; empty where it has none.
pub(crate) fn id() -> String {
    fs::read_to_string("/etc/machine-id")
        .or_else(|_| fs::read_to_string("/var/lib/dbus/machine-id"))
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// Everything that [`boxery_wire::Request::Hello`] asks for.
pub(crate) fn describe(login: &Login, state: Result<PathBuf, String>) -> Machine {
    let system = rustix::system::uname();
    let path = login.variable("PATH").unwrap_or_default();
    let blob = |path: PathBuf| Blob::from(path.as_os_str().as_bytes());
    Machine {
        machine_id: id(),
        kernel: system.release().to_string_lossy().into_owned(),
        architecture: system.machine().to_string_lossy().into_owned(),
        user: login.user.name.clone(),
        uid: rustix::process::getuid().as_raw(),
        home: blob(login.user.home.clone()),
        shell: blob(login.user.shell.clone()),
        bash: find("bash", &path).map(blob),
        path: path.into(),
        no_login: login.failure.clone(),
        state: state.map(blob),
        proc: Path::new("/proc/self/stat").exists(),
        clock: clock::wall(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_passwd_is_found_by_its_number() {
        let text = b"root:x:0:0::/root:/bin/bash\n#x\nbad:x:y:1::/a:/b\nann:x:7:7:A,b:/home/ann:\n";
        let want = User {
            name: "ann".to_owned(),
            home: PathBuf::from("/home/ann"),
            shell: PathBuf::from("/bin/sh"),
        };
        assert_eq!(parse_passwd(text, 7), Some(want));
        assert_eq!(parse_passwd(text, 8), None);
        assert_eq!(parse_passwd(b"\xff:\n:::::::", 0), None);
    }
}
