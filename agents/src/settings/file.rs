//! The file around the text: links, modes, locks, and the one rename.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use fs2::FileExt as _;

use super::edit::{self, HookEntry, Rest};
use super::error::SettingsError;

/// Longer files are no settings.
const LONGEST: u64 = 16 << 20;
/// As many links as Linux follows.
const MOST_LINKS: usize = 40;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// What an edit would do to a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The file, as it was named.
    pub path: Utf8PathBuf,
    /// The file that the links lead to.
    real: Utf8PathBuf,
    /// `None`: there is no file.
    before: Option<Vec<u8>>,
    /// `None`: there will be none.
    after: Option<Vec<u8>>,
    /// Folders that are made for the file, or were made and go with it.
    folders: Vec<Utf8PathBuf>,
}

impl Plan {
    /// Puts `entry` into the file.
    ///
    /// # Errors
    ///
    /// When the file can't be read, or can't be edited so that it could be undone.
    pub fn install(path: &Utf8Path, entry: &HookEntry) -> Result<Self, SettingsError> {
        let mut plan = Self::read(path)?;
        let content = |problem| content_error(path, problem);
        let Some(before) = &plan.before else {
            plan.folders = missing_folders(&plan.real);
            if plan.real != path && !plan.folders.is_empty() {
                return Err(place(path, "is a link into a folder that doesn't exist"));
            }
            let text = edit::fresh(entry, plan.folders.len()).map_err(content)?;
            plan.after = Some(text.into_bytes());
            return Ok(plan);
        };
        let (bom, text) = parse_bytes(before).map_err(content)?;
        let had_own = edit::has_own(text, entry.agent).map_err(content)?;
        let new = edit::install(text, entry).map_err(content)?;
        let back = edit::uninstall(&new, entry.agent).map_err(content)?;
        if !edit::is_installed(&new, entry) || !had_own && back != Rest::Text(text.to_owned()) {
            return Err(SettingsError::NotReversible {
                path: path.to_owned(),
            });
        }
        plan.after = Some([bom, new.as_bytes()].concat());
        Ok(plan)
    }

    /// Takes every entry of the agent's out of the file.
    ///
    /// # Errors
    ///
    /// When the file can't be read.
    pub fn uninstall(path: &Utf8Path, agent: &str) -> Result<Self, SettingsError> {
        let mut plan = Self::read(path)?;
        let Some(before) = &plan.before else {
            return Ok(plan);
        };
        let content = |problem| content_error(path, problem);
        let (bom, text) = parse_bytes(before).map_err(content)?;
        match edit::uninstall(text, agent).map_err(content)? {
            Rest::Text(rest) => plan.after = Some([bom, rest.as_bytes()].concat()),
            Rest::NoFile { folders } => {
                plan.after = None;
                let above = plan.real.ancestors().skip(1).take(folders);
                plan.folders = above.map(Utf8Path::to_owned).collect();
            }
        }
        Ok(plan)
    }

    fn read(path: &Utf8Path) -> Result<Self, SettingsError> {
        let real = follow(path)?;
        let before = read_file(&real).map_err(|error| reading(path, error))?;
        Ok(Self {
            path: path.to_owned(),
            real,
            after: before.clone(),
            before,
            folders: Vec::new(),
        })
    }

    /// Whether nothing would change.
    pub fn is_unchanged(&self) -> bool {
        self.before == self.after
    }

    /// What would change, as a unified diff; empty when nothing would.
    pub fn diff(&self) -> String {
        let text = |bytes: &Option<Vec<u8>>| {
            String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
        };
        let name = |bytes: &Option<Vec<u8>>| match bytes {
            Some(_) => self.path.to_string(),
            None => "/dev/null".to_owned(),
        };
        let (before, after) = (text(&self.before), text(&self.after));
        if self.is_unchanged() {
            return String::new();
        }
        similar::TextDiff::from_lines(&before, &after)
            .unified_diff()
            .header(&name(&self.before), &name(&self.after))
            .to_string()
    }

    /// Does it, in one rename.
    ///
    /// # Errors
    ///
    /// When the file can't be written, or is no longer what the plan was made for.
    pub fn apply(&self) -> Result<(), SettingsError> {
        if self.is_unchanged() {
            return Ok(());
        }
        match &self.after {
            None => self.remove(),
            Some(after) if self.before.is_none() => {
                let made = self.make_folders()?;
                let written = self.write(after);
                if written.is_err() {
                    remove_folders(&made);
                }
                written
            }
            Some(after) => self.write(after),
        }
    }

    fn make_folders(&self) -> Result<Vec<Utf8PathBuf>, SettingsError> {
        let mut made = Vec::new();
        for folder in self.folders.iter().rev() {
            match fs::create_dir(folder) {
                Ok(()) => made.insert(0, folder.clone()),
                Err(error) => {
                    remove_folders(&made);
                    return Err(self.writing(error));
                }
            }
        }
        Ok(made)
    }

    fn write(&self, after: &[u8]) -> Result<(), SettingsError> {
        let folder = self.folder();
        let _lock = self.lock()?;
        let old = self.check_unchanged()?;
        let mut temporary = tempfile::Builder::new()
            .prefix(".boxery-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(|error| self.writing(error))?;
        let prepared = temporary
            .write_all(after)
            .and_then(|()| match &old {
                Some(old) => take_over(temporary.as_file(), old),
                None => Ok(()),
            })
            .and_then(|()| temporary.as_file().sync_all());
        prepared.map_err(|error| self.writing(error))?;
        self.check_unchanged()?;
        let renamed = match old {
            Some(_) => temporary.persist(&self.real),
            None => temporary.persist_noclobber(&self.real),
        };
        match renamed {
            Ok(_) => {}
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(self.changed());
            }
            Err(error) => return Err(self.writing(error.error)),
        }
        sync_folder(folder).map_err(|error| self.writing(error))
    }

    fn remove(&self) -> Result<(), SettingsError> {
        let _lock = self.lock()?;
        self.check_unchanged()?;
        fs::remove_file(&self.real).map_err(|error| self.writing(error))?;
        sync_folder(self.folder()).map_err(|error| self.writing(error))?;
        remove_folders(&self.folders);
        Ok(())
    }

    /// Keeps other installs of boxery out while it is held; leaves no file behind.
    fn lock(&self) -> Result<File, SettingsError> {
        let folder = File::open(self.folder()).map_err(|error| self.writing(error))?;
        folder
            .lock_exclusive()
            .map_err(|error| self.writing(error))?;
        Ok(folder)
    }

    /// The file's metadata, when it is still what the plan was made for.
    fn check_unchanged(&self) -> Result<Option<fs::Metadata>, SettingsError> {
        let now = read_file(&self.real).map_err(|error| reading(&self.path, error))?;
        if now != self.before || follow(&self.path)? != self.real {
            return Err(self.changed());
        }
        let Some(metadata) = fs::symlink_metadata(&self.real)
            .ok()
            .filter(|_| now.is_some())
        else {
            return Ok(None);
        };
        if metadata.mode() & 0o222 == 0 {
            return Err(SettingsError::ReadOnly {
                path: self.path.clone(),
            });
        }
        if metadata.nlink() > 1 {
            return Err(place(
                &self.path,
                "has a second name (a hard link), which an atomic write would cut off",
            ));
        }
        Ok(Some(metadata))
    }

    fn folder(&self) -> &Utf8Path {
        self.real.parent().unwrap_or(Utf8Path::new("/"))
    }

    fn writing(&self, source: io::Error) -> SettingsError {
        SettingsError::Write {
            path: self.path.clone(),
            source,
        }
    }

    fn changed(&self) -> SettingsError {
        SettingsError::Changed {
            path: self.path.clone(),
        }
    }
}

/// Mode and owner of the file that is replaced.
fn take_over(new: &File, old: &fs::Metadata) -> io::Result<()> {
    let own = new.metadata()?;
    if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
        let (user, group) = (
            rustix::fs::Uid::from_raw(old.uid()),
            rustix::fs::Gid::from_raw(old.gid()),
        );
        rustix::fs::fchown(new, Some(user), Some(group))?;
    }
    new.set_permissions(Permissions::from_mode(old.mode() & 0o7777))
}

/// The file that a chain of links leads to; it need not exist.
fn follow(path: &Utf8Path) -> Result<Utf8PathBuf, SettingsError> {
    let mut real = path.to_owned();
    for _ in 0..MOST_LINKS {
        if !fs::symlink_metadata(&real).is_ok_and(|metadata| metadata.is_symlink()) {
            return Ok(real);
        }
        let target = real
            .read_link_utf8()
            .map_err(|error| reading(path, error))?;
        let folder = real.parent().unwrap_or(Utf8Path::new("/"));
        real = folder.join(target);
    }
    Err(place(path, "is a link that leads to itself"))
}

/// `None` when there is no file.
fn read_file(path: &Utf8Path) -> io::Result<Option<Vec<u8>>> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !metadata.is_file() {
        return Err(io::Error::other("it isn't a regular file"));
    }
    if metadata.len() > LONGEST {
        return Err(io::Error::other("it is larger than any settings"));
    }
    fs::read(path).map(Some)
}

/// The byte order mark, if any, and the text behind it.
fn parse_bytes(bytes: &[u8]) -> Result<(&[u8], &str), String> {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err("it is UTF-16".to_owned());
    }
    let (bom, text) = match bytes.strip_prefix(BOM) {
        Some(text) => (BOM, text),
        None => (&[] as &[u8], bytes),
    };
    match std::str::from_utf8(text) {
        Ok(text) => Ok((bom, text)),
        Err(error) => Err(format!("it isn't UTF-8 at byte {}", error.valid_up_to())),
    }
}

/// The folders above a file that don't exist, the innermost first.
fn missing_folders(path: &Utf8Path) -> Vec<Utf8PathBuf> {
    path.ancestors()
        .skip(1)
        .take_while(|folder| !folder.as_str().is_empty() && !folder.exists())
        .map(Utf8Path::to_owned)
        .collect()
}

/// Those that are empty; the first that isn't ends it.
fn remove_folders(folders: &[Utf8PathBuf]) {
    for folder in folders {
        if fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

fn sync_folder(folder: &Utf8Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn reading(path: &Utf8Path, source: io::Error) -> SettingsError {
    SettingsError::Read {
        path: path.to_owned(),
        source,
    }
}

fn place(path: &Utf8Path, problem: &str) -> SettingsError {
    SettingsError::Place {
        path: path.to_owned(),
        problem: problem.to_owned(),
    }
}

fn content_error(path: &Utf8Path, problem: String) -> SettingsError {
    SettingsError::Content {
        path: path.to_owned(),
        problem,
    }
}
