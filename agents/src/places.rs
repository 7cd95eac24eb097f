//! What an agent's settings say that concerns boxery.

use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};

/// Which settings an install writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstallScope {
    /// The user's own, for every project.
    User,
    /// The project's, shared with others.
    Project,
    /// The user's own for this project.
    Local,
}

impl InstallScope {
    /// Every scope, the widest first.
    pub const ALL: [Self; 3] = [Self::User, Self::Project, Self::Local];

    /// The scope's name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }
}

impl fmt::Display for InstallScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What an agent's settings say of its hooks and its sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookEnvironment {
    /// Whether the agent runs commands in a sandbox of its own.
    pub sandboxed: bool,
    /// The settings that switch all hooks off, as a clause naming them.
    pub disabled: Option<String>,
    /// The settings that let only the organisation's hooks run.
    pub managed_only: Option<String>,
    /// boxery's own entries, wherever they are.
    pub own: Vec<FoundHook>,
    /// Other hooks that may rewrite a shell call.
    pub rewriters: Vec<FoundHook>,
    /// Settings that exist and can't be read, and why.
    pub unreadable: Vec<Unreadable>,
}

/// A hook in some settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundHook {
    /// The event it is for.
    pub event: String,
    /// Its command, or what stands for one.
    pub command: String,
    /// Where it stands.
    pub place: String,
}

impl fmt::Display for FoundHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut command: String = self.command.chars().take(120).collect();
        if command.len() < self.command.len() {
            command.push('…');
        }
        write!(f, "{} ({})", command.replace('\n', " "), self.place)
    }
}

/// Settings that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Where.
    pub place: String,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

/// The nearest folder from `start` upwards that holds `name`.
pub(crate) fn folder_above(start: &Utf8Path, name: &str) -> Option<Utf8PathBuf> {
    start
        .ancestors()
        .find(|folder| folder.join(name).symlink_metadata().is_ok())
        .map(Utf8Path::to_path_buf)
}
