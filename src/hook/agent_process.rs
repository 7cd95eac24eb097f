//! Which process above the hook is the agent.

use boxery_pin::ProcessId;
use boxery_router::{ExecutableId, StoreError};
use camino::Utf8PathBuf;

/// Programs that an agent starts its hooks through.
const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "busybox", "ash",
];

/// The nearest of the processes above the hook that isn't a shell.
pub(crate) fn agent_process(ancestors: &[ProcessId]) -> Option<ProcessId> {
    ancestors.iter().copied().find(|process| {
        let program = std::fs::read_link(format!("/proc/{}/exe", process.pid));
        program.is_ok_and(|program| {
            let name = program
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            name.is_some_and(|name| !SHELLS.contains(&name.as_str()))
        })
    })
}

/// The program file of a running process: the file that it was started from, even
/// when another one lies at its path by now.
///
/// # Errors
///
/// When the process is gone or another user's.
pub(crate) fn executable_of(process: ProcessId) -> Result<ExecutableId, StoreError> {
    let link = Utf8PathBuf::from(format!("/proc/{}/exe", process.pid));
    let failed = |source| StoreError::Read {
        path: link.clone(),
        source,
    };
    let path = link.read_link_utf8().map_err(failed)?;
    let metadata = std::fs::metadata(&link).map_err(failed)?;
    Ok(ExecutableId::new(path, &metadata))
}
