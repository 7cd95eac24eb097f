//! The agent as it is installed here.

use std::os::unix::fs::PermissionsExt as _;

use boxery_pin::AgentId;
use camino::{Utf8Path, Utf8PathBuf};

use crate::env;
use crate::error::Failure;
use crate::exit::Exit;

/// The permission modes that are proven unless others are asked for.
pub(crate) const PERMISSION_MODES: &[&str] = &["default", "bypassPermissions"];

/// An agent as it is installed.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// Whose hook protocol it speaks.
    pub(crate) agent: AgentId,
    /// Its program, links resolved.
    pub(crate) program: Utf8PathBuf,
    /// Arguments before those of the agent itself.
    pub(crate) arguments: Vec<String>,
}

/// The agent as it is installed: `executable`, else its program on PATH.
pub(crate) fn find_candidate(
    agent: &str,
    executable: Option<&Utf8Path>,
) -> Result<Candidate, Failure> {
    let program = match executable {
        Some(program) => program.canonicalize_utf8().map_err(|error| {
            Failure::from(format!("cannot find `{program}`: {error}")).exit(Exit::CannotSay)
        })?,
        None => on_path("claude")
            .and_then(|program| program.canonicalize_utf8().ok())
            .ok_or_else(|| {
                Failure::from("`claude` is not on PATH".to_owned())
                    .hint("install Claude Code, or name its program with `--executable FILE`")
                    .exit(Exit::CannotSay)
            })?,
    };
    Ok(Candidate {
        agent: AgentId(agent.to_owned()),
        program,
        arguments: Vec::new(),
    })
}

/// The first program of that name on PATH.
fn on_path(name: &str) -> Option<Utf8PathBuf> {
    env::on_path(name).into_iter().find(|path| {
        path.as_std_path()
            .metadata()
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    })
}
