//! Policy files on disk, each read once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;

use boxery_policy::{FILE_NAMES, Found, Places, Reader};
use camino::{Utf8Path, Utf8PathBuf};

use crate::app::App;

/// No policy is longer.
const LARGEST: u64 = 1 << 20;

/// The disk. What was read stays as it was, so that everything that is told of a file
/// is told of the same text.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    read: RefCell<BTreeMap<String, Found>>,
}

impl Disk {
    /// Every path that was asked for, whatever lies there.
    pub(super) fn asked(self) -> Vec<Utf8PathBuf> {
        let read = self.read.into_inner();
        read.into_keys().map(Utf8PathBuf::from).collect()
    }
}

impl Reader for Disk {
    fn read(&self, path: &str) -> Found {
        let mut read = self.read.borrow_mut();
        read.entry(path.to_owned())
            .or_insert_with(|| look(Utf8Path::new(path)))
            .clone()
    }

    fn canonical(&self, path: &str) -> String {
        Utf8Path::new(path)
            .canonicalize_utf8()
            .map_or_else(|_| path.to_owned(), Utf8PathBuf::into_string)
    }
}

fn look(path: &Utf8Path) -> Found {
    // A pipe without a writer must not hold the hook up.
    let nonblock = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let opened = File::options().read(true).custom_flags(nonblock).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) => return missing_or_not(path, &error),
    };
    let meta = match file.metadata() {
        Ok(meta) => meta,
        Err(error) => return Found::Unreadable(error.to_string()),
    };
    if meta.is_dir() {
        return Found::Folder;
    }
    if !meta.is_file() {
        return Found::Unreadable("it isn't a plain file".to_owned());
    }
    let mut bytes = Vec::new();
    match file.take(LARGEST + 1).read_to_end(&mut bytes) {
        Ok(length) if length as u64 > LARGEST => {
            Found::Unreadable("it is larger than 1 MiB".to_owned())
        }
        Ok(_) => String::from_utf8(bytes).map_or_else(
            |_| Found::Unreadable("it isn't UTF-8".to_owned()),
            Found::Text,
        ),
        Err(error) => Found::Unreadable(error.to_string()),
    }
}

/// A link to nothing is a policy that can't be read: somebody meant one to hold.
fn missing_or_not(path: &Utf8Path, error: &io::Error) -> Found {
    match error.kind() {
        io::ErrorKind::NotFound if path.is_symlink() => {
            Found::Unreadable("it is a link to nothing".to_owned())
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Found::Missing,
        _ => Found::Unreadable(error.to_string()),
    }
}

/// Where the user's own policy may lie: Fence's folder, then its older places.
pub(crate) fn places(app: &App) -> Places {
    let fence = app.env.config.parent().map(|config| config.join("fence"));
    let folders = fence
        .into_iter()
        .chain([app.env.home.join("Library/Application Support/fence")]);
    let files = folders.flat_map(|folder| FILE_NAMES.map(|name| folder.join(name)));
    let hidden = FILE_NAMES.map(|name| app.env.home.join(format!(".{name}")));
    Places {
        user: files.chain(hidden).map(String::from).collect(),
    }
}
