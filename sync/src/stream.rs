//! The copy's side: a tar stream, hashed in constant memory.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read};

use tar::{Archive, EntryType};

use crate::scan::link_entry;
use crate::{Digest, Entry, EntryKind, EntryPath, Rules, Sieve, Snapshot, SyncError};

/// A copy as its tar stream showed it.
#[derive(Debug)]
pub struct CopyTree {
    /// What counts, by the laptop's rules.
    pub snapshot: Snapshot,
    /// How many entries the rules left out, such as build outputs.
    pub left_out: usize,
    /// Bytes of content that were read.
    pub bytes: u64,
}

/// Read a copy's tar stream to its end under the laptop's `rules`.
///
/// What the laptop ignores is left out, so that what only a build on the VM made
/// is no drift.
pub fn read_tar(stream: impl Read, rules: &Rules) -> Result<CopyTree, SyncError> {
    let mut source = Watched {
        inner: stream,
        ended: false,
    };
    let mut sieve = Sieve::new(rules);
    let mut tree = Tree::default();
    let mut total = 0;
    let mut archive = Archive::new(&mut source);
    let mut buffer = vec![0; 128 * 1024];
    for item in archive.entries().map_err(SyncError::Stream)? {
        let mut item = item.map_err(SyncError::Stream)?;
        let kind = item.header().entry_type();
        let Some(path) = entry_path(&item.path_bytes())? else {
            continue;
        };
        let is_folder = kind.is_dir();
        if let Some(parent) = path.parent() {
            tree.occupied.insert(parent);
        }
        if !sieve.counts(&path, is_folder) {
            tree.left_out += 1;
            continue;
        }
        match kind {
            EntryType::Directory => {
                tree.add(path, EntryKind::Folder { empty: true }, 0, Digest::NONE);
            }
            EntryType::Symlink => {
                let target = item.link_name_bytes().unwrap_or_default().into_owned();
                let entry = link_entry(path, &target);
                tree.entries.insert(entry.path.clone(), entry);
            }
            EntryType::Link => tree.hard_link(path, &item.link_name_bytes().unwrap_or_default())?,
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let executable = item.header().mode().map_err(SyncError::Stream)? & 0o100 != 0;
                let mut hasher = blake3::Hasher::new();
                let mut size = 0;
                loop {
                    match item.read(&mut buffer) {
                        Ok(0) => break,
                        Ok(count) => {
                            hasher.update(&buffer[..count]);
                            size += count as u64;
                        }
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(SyncError::Stream(error)),
                    }
                }
                total += size;
                let digest = Digest(*hasher.finalize().as_bytes());
                tree.add(path, EntryKind::File { executable }, size, digest);
            }
            // Sockets aren't in a tar stream; FIFOs and devices don't count.
            _ => tree.left_out += 1,
        }
    }
    if source.ended {
        return Err(SyncError::Truncated);
    }
    // The padding behind the end mark, so that the writer isn't cut off.
    io::copy(&mut source.inner, &mut io::sink()).map_err(SyncError::Stream)?;
    Ok(tree.finish(total))
}

#[derive(Default)]
struct Tree {
    entries: HashMap<EntryPath, Entry>,
    /// The folders in which anything lies, ignored or not.
    occupied: HashSet<EntryPath>,
    left_out: usize,
}

impl Tree {
    fn add(&mut self, path: EntryPath, kind: EntryKind, size: u64, digest: Digest) {
        self.entries.insert(
            path.clone(),
            Entry {
                path,
                kind,
                size,
                digest,
            },
        );
    }

    /// A second name of a file that stood earlier in the stream.
    fn hard_link(&mut self, path: EntryPath, target: &[u8]) -> Result<(), SyncError> {
        let first = entry_path(target)?
            .and_then(|target| self.entries.get(&target))
            .cloned();
        match first {
            Some(first) => {
                self.entries.insert(path.clone(), Entry { path, ..first });
                Ok(())
            }
            // Its first name is ignored, so its content wasn't read.
            None => Err(SyncError::Read {
                path,
                source: io::Error::other("it is a hard link to a file that doesn't count"),
            }),
        }
    }

    fn finish(self, bytes: u64) -> CopyTree {
        let occupied = self.occupied;
        let entries = self.entries.into_values().map(|mut entry| {
            if let EntryKind::Folder { empty } = &mut entry.kind {
                *empty = !occupied.contains(&entry.path);
            }
            entry
        });
        CopyTree {
            snapshot: Snapshot::new(entries.collect()),
            left_out: self.left_out,
            bytes,
        }
    }
}

/// The entry that a member's name means: `./` before it and `/` behind it are
/// spelling; `None` for the top itself.
fn entry_path(name: &[u8]) -> Result<Option<EntryPath>, SyncError> {
    let mut rest = name;
    while let Some(shorter) = rest.strip_prefix(b"./") {
        rest = shorter;
    }
    while let Some(shorter) = rest.strip_suffix(b"/") {
        rest = shorter;
    }
    if rest.is_empty() || rest == b"." {
        return Ok(None);
    }
    let path = EntryPath::parse(rest).ok_or_else(|| SyncError::Outside {
        name: name.escape_ascii().to_string(),
    })?;
    Ok(Some(path))
}

/// Notes whether the stream ended under the reader. `tar::Archive` takes an end
/// between two members for the end of the archive (0.4).
struct Watched<R> {
    inner: R,
    ended: bool,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.ended |= count == 0 && !buffer.is_empty();
        Ok(count)
    }
}
