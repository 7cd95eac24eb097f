//! The copy's tree, read over the line.

use std::collections::HashSet;

use super::drive::{DriveError, ask, receive};
use super::{Answer, Ask, BATCH, Line, Listed, What};
use crate::{EntryPath, STAGE, Scan, Sieve, State, Tree};

/// The copy as it was read.
pub(super) struct Copy {
    /// What counts.
    pub(super) tree: Tree,
    /// Every folder that isn't empty, whether what is in it counts or not.
    pub(super) folders: Vec<EntryPath>,
    /// Whether a sync that was broken off left its stage there.
    pub(super) has_stage: bool,
}

/// The copy's tree under the laptop's rules, one level of folders after the other.
pub(super) fn read_copy(line: &mut dyn Line, scan: &Scan) -> Result<Copy, DriveError> {
    let mut sieve = Sieve::new(&scan.rules);
    let mut states: Vec<(EntryPath, State)> = Vec::new();
    let mut unknown: Vec<EntryPath> = Vec::new();
    // Ignored folders that are walked for a tracked file below.
    let mut uncounted: HashSet<EntryPath> = HashSet::new();
    let mut folders: Vec<EntryPath> = Vec::new();
    let mut has_stage = false;
    let mut level: Vec<Option<EntryPath>> = vec![None];
    while !level.is_empty() {
        let mut next = Vec::new();
        for batch in level.chunks(BATCH) {
            ask(line, &Ask::List(batch.to_vec()))?;
            for folder in batch {
                let Some(entries) = read_folder(line)? else {
                    continue;
                };
                // Empty means that nothing at all is in it, ignored or not.
                if let (Some(folder), true) = (folder, entries.is_empty())
                    && !uncounted.contains(folder)
                {
                    states.push((folder.clone(), State::Folder));
                } else if let Some(folder) = folder
                    && !uncounted.contains(folder)
                {
                    folders.push(folder.clone());
                }
                for Listed { name, what } in entries {
                    has_stage |= folder.is_none() && name == STAGE.as_bytes();
                    let name = std::os::unix::ffi::OsStrExt::from_bytes(name.as_slice());
                    let path = EntryPath::child(folder.as_ref(), name);
                    let is_folder = what == What::Folder;
                    // Tracked files can lie in ignored folders.
                    let counts = sieve.counts(&path, is_folder);
                    let leads_on = is_folder && sieve.leads_on(&path);
                    if !(counts || leads_on) {
                        continue;
                    }
                    match what {
                        What::Folder => {
                            if !counts {
                                uncounted.insert(path.clone());
                            }
                            next.push(Some(path));
                        }
                        What::Known(state) => states.push((path, state)),
                        What::File => unknown.push(path),
                        What::Special => {}
                    }
                }
            }
        }
        level = next;
    }
    for paths in unknown.chunks(BATCH) {
        ask(line, &Ask::Hash(paths.to_vec()))?;
        let Answer::Hashed(hashed) = receive(line)? else {
            return Err(DriveError::Protocol);
        };
        if hashed.len() != paths.len() {
            return Err(DriveError::Protocol);
        }
        let found = paths.iter().cloned().zip(hashed);
        states.extend(found.filter_map(|(path, state)| Some((path, state?))));
    }
    Ok(Copy {
        tree: states.into_iter().collect(),
        folders,
        has_stage,
    })
}

fn read_folder(line: &mut dyn Line) -> Result<Option<Vec<Listed>>, DriveError> {
    let mut all = Vec::new();
    loop {
        match receive(line)? {
            Answer::Folder { entries: None, .. } => return Ok(None),
            Answer::Folder {
                entries: Some(entries),
                more,
            } => {
                // The VM may be anybody's: a name is one component, or it is no name.
                if !entries.iter().all(|entry| is_name(&entry.name)) {
                    return Err(DriveError::Protocol);
                }
                all.extend(entries);
                if !more {
                    return Ok(Some(all));
                }
            }
            _ => return Err(DriveError::Protocol),
        }
    }
}

fn is_name(bytes: &[u8]) -> bool {
    EntryPath::parse(bytes).is_some() && !bytes.contains(&b'/')
}
