//! The list of jobs: runs that outlived their calls, or were started to.

use std::fs;
use std::io;
use std::path::Path;

use boxery_wire::{Job, JobState, Outcome};

use crate::folder::{self, Folders};

/// The file of a job, in its run's folder.
const JOB: &str = "job";

/// Note how a job is.
pub(crate) fn save(folder: &Path, job: &Job) -> io::Result<()> {
    let bytes = postcard::to_allocvec(job).map_err(io::Error::other)?;
    folder::replace(folder, JOB, &bytes)
}

/// The job of a run's folder, if it is one.
pub(crate) fn read(folder: &Path) -> Option<Job> {
    let mut job: Job = postcard::from_bytes(&fs::read(folder.join(JOB)).ok()?).ok()?;
    let runs = matches!(job.state, JobState::Running | JobState::Background(_));
    if runs && folder::connect(folder).is_err() {
        job.state = JobState::Ended(match job.state {
            JobState::Background(outcome) => outcome,
            JobState::Running | JobState::Ended(_) => Outcome::Lost(folder::loss(folder)),
        });
    }
    Some(job)
}

/// Every job there is, the oldest first.
pub(crate) fn list(folders: &Folders) -> Vec<Job> {
    let mut jobs: Vec<Job> = folders
        .runs()
        .iter()
        .filter_map(|(_, folder)| read(folder))
        .collect();
    jobs.sort_by_key(|job| job.started);
    jobs
}
