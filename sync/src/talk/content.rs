//! Content on its way from one side to the other's stage.

use std::collections::HashSet;
use std::io::Read as _;

use super::drive::{DriveError, Progress, ask, receive};
use super::{Answer, Ask, Line, PIECE, RESUMED};
use crate::plan::Change;
use crate::root::Root;
use crate::stage::Stage;
use crate::{Digest, EntryPath, Source, State};

/// How many files are asked for before the first of them is read.
const TRAIN: usize = 32;

/// What has to be moved for `changes`, each content once.
pub(super) fn contents(changes: &[Change]) -> Vec<(&EntryPath, State, Digest, u64)> {
    let mut seen = HashSet::new();
    let mut contents = Vec::new();
    for change in changes.iter().filter(|change| !change.is_mode_only()) {
        if let Some((digest, size)) = change.to.content()
            && seen.insert(digest)
        {
            contents.push((&change.path, change.to, digest, size));
        }
    }
    contents
}

/// Bring what `changes` need into the copy's stage.
pub(super) fn send_all(
    line: &mut dyn Line,
    root: &Root,
    changes: &[Change],
    progress: &mut Progress,
    tell: &mut dyn FnMut(Progress),
) -> Result<(), DriveError> {
    for (path, state, digest, size) in contents(changes) {
        let source = Source::open(root, path, &state).map_err(DriveError::Laptop)?;
        // Gone meanwhile: the change is left, and the next sync sees what is there.
        let Some(mut source) = source else { continue };
        ask(line, &Ask::Put { digest, size })?;
        let mut sent = 0;
        if size >= RESUMED {
            match receive(line)? {
                Answer::Have(position) => sent = position.min(size),
                _ => return Err(DriveError::Protocol),
            }
            source.skip(sent).map_err(DriveError::Laptop)?;
        }
        let mut left = size - sent;
        progress.bytes += sent;
        // Never more than was announced, though the file may grow.
        while left > 0 {
            let piece = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let mut bytes = vec![0; piece];
            let count = source.read(&mut bytes).map_err(DriveError::Laptop)?;
            if count == 0 {
                break;
            }
            bytes.truncate(count);
            left -= count as u64;
            progress.bytes += count as u64;
            ask(line, &Ask::Data(bytes))?;
            tell(*progress);
        }
        ask(line, &Ask::PutEnd)?;
        progress.files += 1;
        tell(*progress);
    }
    Ok(())
}

/// Bring what `changes` need into the project's stage.
pub(super) fn take_all(
    line: &mut dyn Line,
    stage: &Stage,
    changes: &[Change],
    progress: &mut Progress,
    tell: &mut dyn FnMut(Progress),
) -> Result<(), DriveError> {
    let mut wanted = contents(changes);
    wanted.retain(|(_, _, digest, size)| {
        let has = stage.has(*digest, *size);
        if has {
            progress.files += 1;
            progress.bytes += size;
        }
        !has
    });
    tell(*progress);
    for train in wanted.chunks(TRAIN) {
        let mut coming = Vec::new();
        for (path, state, digest, size) in train {
            let incoming = stage.begin(*digest, *size).map_err(DriveError::Laptop)?;
            ask(
                line,
                &Ask::Get {
                    path: (*path).clone(),
                    state: *state,
                    position: incoming.position(),
                },
            )?;
            progress.bytes += incoming.position();
            coming.push(incoming);
        }
        for mut incoming in coming {
            let mut grown = false;
            loop {
                match receive(line)? {
                    Answer::Data(bytes) => {
                        progress.bytes += bytes.len() as u64;
                        // It grew: its end is no end of what was announced.
                        grown = grown || !incoming.fits(bytes.len() as u64);
                        if !grown {
                            incoming.push(&bytes).map_err(DriveError::Laptop)?;
                        }
                        tell(*progress);
                    }
                    Answer::GetEnd => break,
                    _ => return Err(DriveError::Protocol),
                }
            }
            if grown {
                incoming.restart().map_err(DriveError::Laptop)?;
            }
            incoming.finish().map_err(DriveError::Laptop)?;
            progress.files += 1;
            tell(*progress);
        }
    }
    Ok(())
}
