//! Which file a pin lies in: its name follows from its key.
//!
//! The names say enough that most lookups are answered without opening a file,
//! and that a damaged file is never taken for somebody else's pin.

use camino::{Utf8Path, Utf8PathBuf};

use crate::{AgentId, PinKey, ProcessId, SessionId};

/// What a name in the folder of pins says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PinName<'a> {
    /// `session-<agent>-<agent and session>.json`
    Session { agent: &'a str },
    /// `process-<pid>-<start>-<agent>.json`
    Process { process: ProcessId, agent: &'a str },
    /// `project-<root>.json`, or `project-<root>-<git common directory>.json`
    Project {
        root: &'a str,
        git_common: Option<&'a str>,
    },
}

impl<'a> PinName<'a> {
    /// What `name` says; `None` for a name that no pin has.
    pub(crate) fn parse(name: &'a str) -> Option<Self> {
        let parts: Vec<&str> = name.strip_suffix(".json")?.split('-').collect();
        let hex = |text: &str, digits: usize| {
            text.len() == digits
                && text
                    .bytes()
                    .all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'))
        };
        match parts.as_slice() {
            ["session", agent, both] if hex(agent, 8) && hex(both, 32) => {
                Some(Self::Session { agent })
            }
            ["process", pid, start, agent] if hex(agent, 8) => {
                let process = ProcessId {
                    pid: pid.parse().ok()?,
                    start: start.parse().ok()?,
                };
                Some(Self::Process { process, agent })
            }
            ["project", root] if hex(root, 32) => Some(Self::Project {
                root,
                git_common: None,
            }),
            ["project", root, common] if hex(root, 32) && hex(common, 32) => Some(Self::Project {
                root,
                git_common: Some(common),
            }),
            _ => None,
        }
    }
}

/// The name of the file under `key`.
pub(crate) fn file_name(key: &PinKey, git_common: Option<&Utf8Path>) -> String {
    match (key, git_common) {
        (PinKey::Session { agent, session }, _) => session_name(agent, session),
        (PinKey::Process { agent, process }, _) => process_name(agent, *process),
        (PinKey::Project { root }, None) => format!("project-{}.json", path_digest(root)),
        (PinKey::Project { root }, Some(common)) => {
            format!("project-{}-{}.json", path_digest(root), path_digest(common))
        }
    }
}

pub(crate) fn session_name(agent: &AgentId, session: &SessionId) -> String {
    let both = digest(&[agent.0.as_bytes(), session.0.as_bytes()], 32);
    format!("session-{}-{both}.json", agent_digest(agent))
}

pub(crate) fn process_name(agent: &AgentId, process: ProcessId) -> String {
    format!(
        "process-{}-{}-{}.json",
        process.pid,
        process.start,
        agent_digest(agent)
    )
}

/// The part of a name that stands for an agent.
pub(crate) fn agent_digest(agent: &AgentId) -> String {
    digest(&[agent.0.as_bytes()], 8)
}

/// The part of a name that stands for a folder.
pub(crate) fn path_digest(path: &Utf8Path) -> String {
    digest(&[path.as_str().as_bytes()], 32)
}

fn digest(parts: &[&[u8]], digits: usize) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        // The length first, so that no two lists of parts read alike.
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().to_hex()[..digits].to_owned()
}

/// The folder that `key` is about, for a project.
pub(crate) fn project_root(key: &PinKey) -> Option<&Utf8PathBuf> {
    match key {
        PinKey::Project { root } => Some(root),
        PinKey::Session { .. } | PinKey::Process { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn agent() -> AgentId {
        AgentId("claude-code".into())
    }

    #[test]
    fn every_name_that_is_written_is_understood() {
        let process = ProcessId {
            pid: 7,
            start: 4711,
        };
        let session = PinKey::Session {
            agent: agent(),
            session: SessionId("a/../b\n".into()),
        };
        let project = PinKey::Project { root: "/p".into() };
        let digest = agent_digest(&agent());
        let root = path_digest("/p".into());
        let common = path_digest("/p/.git".into());
        for (key, git_common, want) in [
            (session, None, PinName::Session { agent: &digest }),
            (
                PinKey::Process {
                    agent: agent(),
                    process,
                },
                None,
                PinName::Process {
                    process,
                    agent: &digest,
                },
            ),
            (
                project.clone(),
                None,
                PinName::Project {
                    root: &root,
                    git_common: None,
                },
            ),
            (
                project,
                Some(Utf8Path::new("/p/.git")),
                PinName::Project {
                    root: &root,
                    git_common: Some(&common),
                },
            ),
        ] {
            let name = file_name(&key, git_common);
            assert!(
                name.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b)),
                "{name}"
            );
            assert_eq!(PinName::parse(&name), Some(want));
        }
    }

    #[rstest]
    #[case::not_json("session-0011aabb-00112233445566778899aabbccddeeff")]
    #[case::upper_case("session-0011AABB-00112233445566778899aabbccddeeff.json")]
    #[case::short("project-00.json")]
    #[case::another_word("job-00112233445566778899aabbccddeeff.json")]
    #[case::no_number("process-x-1-0011aabb.json")]
    #[case::empty("")]
    fn a_name_that_no_pin_has_is_not_understood(#[case] name: &str) {
        assert_eq!(PinName::parse(name), None);
    }
}
