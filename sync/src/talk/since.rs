//! What changed in a project since a sync read it.

use super::drive::{DriveError, Job};
use crate::index::StatIndex;
use crate::{Disk, EntryPath, Scan, Tree};

/// The paths of the project that aren't what they were in `before`, a [`Report`]'s
/// project, sorted.
///
/// [`Report`]: super::Report
pub fn changed_since(job: &Job<'_>, before: &Tree) -> Result<Vec<EntryPath>, DriveError> {
    let file = job.state.join("index");
    let index = StatIndex::read(&file);
    let (scan, _) = Scan::read_indexed(job.project, job.scan, &index)?;
    let tree = Tree::of(&scan.snapshot);
    let disk = Disk::of(job.project.as_std_path(), &tree);
    let now = disk.told(tree, before, before);
    let gone = before.iter().filter(|(path, state)| now.at(path) != *state);
    let new = now.iter().filter(|(path, state)| before.at(path) != *state);
    let mut changed: Vec<EntryPath> = gone.chain(new).map(|(path, _)| path.clone()).collect();
    changed.sort();
    changed.dedup();
    Ok(changed)
}
