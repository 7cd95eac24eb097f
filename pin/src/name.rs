//! Names with rules: a VM, an agent, a session, a folder on a VM.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A name or path that breaks the rules of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Not a VM name.
    #[error("`{0}` is not a VM name")]
    Vm(String),
    /// Not an absolute path of a VM.
    #[error("`{0}` is not an absolute path")]
    RemotePath(String),
}

impl NameError {
    /// What a valid value looks like.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Vm(_) => {
                "a name has 1 to 63 of a-z, 0-9, `.`, `_` and `-`, starts with a letter or digit, and isn't a number"
            }
            Self::RemotePath(_) => "give a path that starts with `/` and has no `..` in it",
        }
    }
}

/// The name of a VM: 1 to 63 of `a-z 0-9 . _ -`, a letter or digit first, no number.
///
/// These characters need no quoting in any shell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VmName(String);

impl VmName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for VmName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let bytes = text.as_bytes();
        let allowed = |b: &u8| {
            b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-')
        };
        match bytes.first() {
            Some(first)
                if (first.is_ascii_lowercase() || first.is_ascii_digit())
                    && bytes.len() <= 63
                    && bytes.iter().all(allowed)
                    // It would be taken for a port.
                    && !bytes.iter().all(u8::is_ascii_digit) =>
            {
                Ok(Self(text.to_owned()))
            }
            _ => Err(NameError::Vm(text.to_owned())),
        }
    }
}

impl TryFrom<String> for VmName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<VmName> for String {
    fn from(name: VmName) -> Self {
        name.0
    }
}

impl fmt::Display for VmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which agent: an adapter's name, such as `claude-code`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentId(pub String);

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The agent's own id of a session; any text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub String);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An absolute path on a VM, without `.` or `..` components or NUL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RemotePath(String);

impl RemotePath {
    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path one component further down.
    ///
    /// # Errors
    ///
    /// When `component` is empty, `.`, `..` or holds `/` or NUL.
    pub fn join(&self, component: &str) -> Result<Self, NameError> {
        if component.contains('/') {
            return Err(NameError::RemotePath(component.to_owned()));
        }
        format!("{}/{component}", self.0.trim_end_matches('/')).parse()
    }

    /// The path one component further down, where `name` is known to be one: a
    /// component of a resolved path of this machine.
    pub(crate) fn join_name(&self, name: &str) -> Self {
        Self(format!("{}/{name}", self.0.trim_end_matches('/')))
    }

    /// The same path on the VM as on this machine, of a resolved path here.
    pub(crate) fn of(path: &camino::Utf8Path) -> Self {
        Self(path.as_str().to_owned())
    }

    /// Whether `self` is `folder` or lies below it.
    pub fn is_within(&self, folder: &Self) -> bool {
        let folder = folder.0.trim_end_matches('/');
        self.0 == folder
            || self
                .0
                .strip_prefix(folder)
                .is_some_and(|rest| rest.starts_with('/'))
    }
}

impl FromStr for RemotePath {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let bad = |component: &str| matches!(component, "" | "." | "..");
        match text.strip_prefix('/') {
            Some("") => Ok(Self(text.to_owned())),
            Some(rest) if !text.contains('\0') => {
                let rest = rest.strip_suffix('/').unwrap_or(rest);
                if rest.split('/').any(bad) {
                    Err(NameError::RemotePath(text.to_owned()))
                } else {
                    Ok(Self(format!("/{rest}")))
                }
            }
            _ => Err(NameError::RemotePath(text.to_owned())),
        }
    }
}

impl TryFrom<String> for RemotePath {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<RemotePath> for String {
    fn from(path: RemotePath) -> Self {
        path.0
    }
}

impl fmt::Display for RemotePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
