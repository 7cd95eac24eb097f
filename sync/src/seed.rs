//! The project as a tar stream, to make a copy from nothing.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt as _;

use tar::{Builder, EntryType, Header};

use crate::scan::{is_executable, is_settled, open};
use crate::{EntryKind, EntryPath, Scan, SyncError};

/// What was sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SeedReport {
    /// Files and links.
    pub files: usize,
    /// Bytes of their content.
    pub bytes: u64,
    /// Files that changed while they were sent: the copy's are a mixture.
    pub unsettled: Vec<EntryPath>,
    /// Files that were there at the scan and are gone.
    pub gone: Vec<EntryPath>,
}

/// Write what `scan` found to `to`, reading each file again, and flush it.
///
/// Every entry carries the time `arrival` (seconds since 1970), not the laptop's
/// own: an older time would leave `make` and `cargo` on old code. `progress` is
/// told how many bytes of content have been written.
pub fn write_seed(
    scan: &Scan,
    arrival: u64,
    to: impl Write,
    mut progress: impl FnMut(u64),
) -> Result<SeedReport, SyncError> {
    let mut builder = Builder::new(to);
    let mut report = SeedReport::default();
    let mut folders = HashSet::new();
    for entry in scan.snapshot.entries() {
        let full = scan.rules.root().as_std_path().join(entry.path.as_path());
        let failed = |source| SyncError::Read {
            path: entry.path.clone(),
            source,
        };
        for folder in entry.path.folders() {
            // Every folder has a member, so that tar replaces a link in its place
            // and never goes through it.
            if folders.insert(folder.clone()) && scan.snapshot.get(&folder).is_none() {
                append(
                    &mut builder,
                    folder_header(arrival),
                    &folder,
                    b"",
                    io::empty(),
                )?;
            }
        }
        let mut header = Header::new_gnu();
        header.set_mtime(arrival);
        match entry.kind {
            EntryKind::Folder { .. } => {
                append(
                    &mut builder,
                    folder_header(arrival),
                    &entry.path,
                    b"",
                    io::empty(),
                )?;
            }
            EntryKind::Link => {
                let target = match fs::read_link(&full) {
                    Ok(target) => target,
                    Err(error)
                        if matches!(
                            error.kind(),
                            io::ErrorKind::NotFound | io::ErrorKind::InvalidInput
                        ) =>
                    {
                        report.gone.push(entry.path.clone());
                        continue;
                    }
                    Err(source) => return Err(failed(source)),
                };
                header.set_entry_type(EntryType::Symlink);
                header.set_mode(0o777);
                header.set_size(0);
                append(
                    &mut builder,
                    header,
                    &entry.path,
                    target.as_os_str().as_bytes(),
                    io::empty(),
                )?;
                report.files += 1;
            }
            EntryKind::File { .. } => {
                let Some(file) = open(&full).map_err(failed)? else {
                    report.gone.push(entry.path.clone());
                    continue;
                };
                let before = file.metadata().map_err(failed)?;
                header.set_entry_type(EntryType::Regular);
                header.set_mode(if is_executable(&before) { 0o755 } else { 0o644 });
                header.set_size(before.len());
                let mut content = Exactly {
                    file: &file,
                    left: before.len(),
                    read: 0,
                    failure: None,
                    progress: &mut |n| progress(report.bytes + n),
                };
                append(&mut builder, header, &entry.path, b"", &mut content)?;
                let (read, failure) = (content.read, content.failure);
                if let Some(source) = failure {
                    return Err(failed(source));
                }
                if !is_settled(&before, &file.metadata().map_err(failed)?, read) {
                    report.unsettled.push(entry.path.clone());
                }
                report.files += 1;
                report.bytes += before.len();
            }
        }
    }
    builder
        .into_inner()
        .and_then(|mut to| to.flush())
        .map_err(SyncError::Send)?;
    Ok(report)
}

fn folder_header(arrival: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_mtime(arrival);
    header.set_entry_type(EntryType::Directory);
    header.set_mode(0o755);
    header.set_size(0);
    header
}

/// Append one member. Names and targets go in as they are: `tar::Builder`'s own
/// calls tidy paths up, and a link's target is data.
fn append(
    builder: &mut Builder<impl Write>,
    mut header: Header,
    path: &EntryPath,
    target: &[u8],
    content: impl Read,
) -> Result<(), SyncError> {
    for (text, kind) in [
        (target, EntryType::GNULongLink),
        (path.as_bytes(), EntryType::GNULongName),
    ] {
        if text.len() >= 100 {
            let mut long = Header::new_gnu();
            long.set_entry_type(kind);
            long.set_mode(0o644);
            long.set_size(text.len() as u64 + 1);
            fill(&mut long, b"././@LongLink", b"");
            builder
                .append(&long, text.chain(&b"\0"[..]))
                .map_err(SyncError::Send)?;
        }
    }
    fill(&mut header, path.as_bytes(), target);
    builder.append(&header, content).map_err(SyncError::Send)
}

fn fill(header: &mut Header, name: &[u8], target: &[u8]) {
    let old = header.as_old_mut();
    for (field, text) in [(&mut old.name, name), (&mut old.linkname, target)] {
        let count = text.len().min(field.len() - 1);
        field[..count].copy_from_slice(&text[..count]);
    }
    header.set_uid(0);
    header.set_gid(0);
    header.set_cksum();
}

/// As many bytes as the header promised: a file that shrank is filled with
/// zeros, one that grew is cut, and the caller says so.
struct Exactly<'a> {
    file: &'a fs::File,
    left: u64,
    read: u64,
    failure: Option<io::Error>,
    progress: &'a mut dyn FnMut(u64),
}

impl Read for &mut Exactly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        if room == 0 {
            return Ok(0);
        }
        let count = match self.file.read(&mut buffer[..room]) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => {
                // Told apart from a failure of the writer.
                self.failure = Some(error);
                0
            }
        };
        self.read += count as u64;
        let count = if count == 0 {
            buffer[..room].fill(0);
            room
        } else {
            count
        };
        self.left -= count as u64;
        (self.progress)(self.read);
        Ok(count)
    }
}
