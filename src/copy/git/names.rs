//! Object ids and names of references, as far as they are taken from a VM.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// An object's id: hexadecimal, of SHA-1 or SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Oid(String);

impl Oid {
    /// An id, if that is one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        let fits = matches!(text.len(), 40 | 64) && text.bytes().all(digit);
        fits.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// As people read it.
    pub(super) fn short(&self) -> &str {
        &self.0[..8]
    }
}

impl TryFrom<String> for Oid {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or(text)
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a reference, `refs/…`, as git-check-ref-format(1) has it (2.47).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct RefName(String);

impl RefName {
    /// A name, if that is one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("refs/")?;
        let allowed = |c: char| {
            !c.is_control()
                && !matches!(
                    c,
                    ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\' | '"' | '\u{fffd}'
                )
        };
        let part = |part: &str| {
            !part.is_empty()
                && !part.starts_with(['.', '-'])
                && !part.ends_with('.')
                && !part.to_ascii_lowercase().ends_with(".lock")
        };
        let fits = rest.chars().all(allowed)
            && rest.contains('/')
            && rest.split('/').all(part)
            && !rest.contains("..")
            && !rest.contains("@{")
            && rest.len() <= 1000;
        fits.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// What comes behind `refs/`.
    pub(super) fn rest(&self) -> &str {
        self.0.strip_prefix("refs/").unwrap_or(&self.0)
    }

    /// As people call it: `main`, `tag v1`.
    pub(super) fn called(&self) -> String {
        if let Some(branch) = self.0.strip_prefix("refs/heads/") {
            branch.to_owned()
        } else if let Some(tag) = self.0.strip_prefix("refs/tags/") {
            format!("tag {tag}")
        } else {
            self.rest().to_owned()
        }
    }

    /// Whether it is a branch.
    pub(super) fn is_branch(&self) -> bool {
        self.0.starts_with("refs/heads/")
    }

    /// Whether it moves both ways: branches, tags and notes.
    pub(super) fn is_shared(&self) -> bool {
        self.is_branch()
            || ["refs/tags/", "refs/notes/"]
                .iter()
                .any(|p| self.0.starts_with(p))
    }

    /// Whether it moves to the VM only: what the laptop knows of other remotes.
    pub(super) fn is_remote(&self) -> bool {
        self.0.starts_with("refs/remotes/")
    }

    /// Whether one of them is a folder of the other, as git's files have them.
    pub(super) fn collides(&self, other: &Self) -> bool {
        let inside = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|r| r.starts_with('/'));
        inside(&self.0, &other.0) || inside(&other.0, &self.0)
    }
}

impl TryFrom<String> for RefName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or(text)
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where on the laptop lies what came from one VM's copy and isn't the laptop's own yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shelf(String);

impl Shelf {
    /// That of the VM `vm`; a linked worktree has one of its own, since it has a copy
    /// of its own.
    pub(super) fn new(vm: &str, worktree: Option<&str>) -> Self {
        // What may stand in a VM's name and not in a reference's.
        #[expect(
            clippy::case_sensitive_file_extension_comparisons,
            reason = "git minds this spelling alone"
        )]
        let vm = if vm.contains("..") || vm.ends_with('.') || vm.ends_with(".lock") {
            vm.replace('.', "%2e")
        } else {
            vm.to_owned()
        };
        Self(match worktree {
            Some(worktree) => format!("refs/boxery/{vm}/worktrees/{worktree}"),
            None => format!("refs/boxery/{vm}"),
        })
    }

    /// Where the VM's `name` is put.
    pub(super) fn place(&self, name: &RefName) -> String {
        format!("{}/{}", self.0, name.rest())
    }

    /// Where something else of the VM is put.
    pub(super) fn other(&self, what: &str) -> String {
        format!("{}/{what}", self.0)
    }

    /// Where the laptop's own `name` is put that the VM deleted or replaced.
    pub(super) fn was(&self, name: &RefName, oid: &Oid) -> String {
        format!("{}/was/{}/{}", self.0, oid.short(), name.rest())
    }

    /// The VM's name of what lies at `place`.
    pub(super) fn name_of(&self, place: &RefName) -> Option<RefName> {
        let rest = place.as_str().strip_prefix(&self.0)?.strip_prefix('/')?;
        RefName::parse(&format!("refs/{rest}")).filter(RefName::is_shared)
    }
}

/// Have `name` be `value`, or be none.
pub(super) fn set(refs: &mut BTreeMap<RefName, Oid>, name: &RefName, value: Option<&Oid>) {
    match value {
        Some(value) => refs.insert(name.clone(), value.clone()),
        None => refs.remove(name),
    };
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("refs/heads/main", true)]
    #[case("refs/heads/feature/ä", true)]
    #[case("refs/tags/v1.0", true)]
    #[case("refs/heads", false)]
    #[case("HEAD", false)]
    #[case("refs/heads/../../config", false)]
    #[case("refs/heads/a.lock", false)]
    #[case("refs/heads/.hidden", false)]
    #[case("refs/heads/-option", false)]
    #[case("refs/heads/a b", false)]
    #[case("refs/heads/a\nb", false)]
    #[case("refs/heads/a:b", false)]
    #[case("refs/heads//a", false)]
    #[case("refs/heads/a@{1}", false)]
    fn only_what_git_would_take_is_a_name(#[case] text: &str, #[case] want: bool) {
        assert_eq!(RefName::parse(text).is_some(), want);
    }

    #[rstest]
    #[case("dev", "refs/boxery/dev/heads/main")]
    #[case("a..b.", "refs/boxery/a%2e%2eb%2e/heads/main")]
    #[case("x.lock", "refs/boxery/x%2elock/heads/main")]
    fn every_vm_has_a_place_for_its_branches(#[case] vm: &str, #[case] want: &str) {
        let name = RefName::parse("refs/heads/main").unwrap();
        let shelf = Shelf::new(vm, None);
        assert_eq!(shelf.place(&name), want);
        assert_eq!(shelf.name_of(&RefName::parse(want).unwrap()), Some(name));
    }
}
