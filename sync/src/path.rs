//! The name of an entry: bytes, relative to the top of the tree.

use std::borrow::Borrow;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A path below the top of a tree: `/` between components, no `.`, `..`, empty
/// component or NUL. It is bytes, because file names are.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "Vec<u8>", try_from = "Vec<u8>")]
pub struct EntryPath(Box<[u8]>);

impl EntryPath {
    /// The path that `bytes` spell, when they spell one.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bad = |component: &[u8]| matches!(component, b"" | b"." | b"..");
        if bytes.contains(&0) || bytes.split(|b| *b == b'/').any(bad) {
            return None;
        }
        Some(Self(bytes.into()))
    }

    /// `name` in the folder `folder` (`None`: the top).
    pub(crate) fn child(folder: Option<&Self>, name: &OsStr) -> Self {
        let mut bytes = Vec::with_capacity(folder.map_or(0, |f| f.0.len() + 1) + name.len());
        if let Some(folder) = folder {
            bytes.extend_from_slice(&folder.0);
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name.as_bytes());
        Self(bytes.into())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path as the system's own.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// The folder that holds it; `None` at the top.
    pub fn parent(&self) -> Option<Self> {
        let slash = self.0.iter().rposition(|b| *b == b'/')?;
        Some(Self(self.0[..slash].into()))
    }

    /// The last component.
    pub fn file_name(&self) -> &[u8] {
        self.0.rsplit(|b| *b == b'/').next().unwrap_or(&self.0)
    }

    /// Whether it is `other` or lies below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0
            .strip_prefix(&*other.0)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    }

    /// Every folder above it, the topmost first.
    pub fn folders(&self) -> impl Iterator<Item = Self> + '_ {
        let slashes = self.0.iter().enumerate().filter(|(_, b)| **b == b'/');
        slashes.map(|(at, _)| Self(self.0[..at].into()))
    }
}

/// Bytes that spell no path below the top of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a path leads out of the tree")]
pub struct NoEntryPath;

impl TryFrom<Vec<u8>> for EntryPath {
    type Error = NoEntryPath;

    fn try_from(bytes: Vec<u8>) -> Result<Self, NoEntryPath> {
        Self::parse(&bytes).ok_or(NoEntryPath)
    }
}

impl From<EntryPath> for Vec<u8> {
    fn from(path: EntryPath) -> Self {
        path.0.into_vec()
    }
}

impl Borrow<[u8]> for EntryPath {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

/// Printable: control characters, backslashes and bytes that aren't UTF-8 are
/// escaped, so that a name can't forge a line or move a terminal's cursor.
impl fmt::Display for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                if c.is_control() || c == '\\' || is_invisible(c) {
                    write!(f, "{}", c.escape_default())?;
                } else {
                    write!(f, "{c}")?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Line and paragraph separators and the characters that reorder text.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

impl fmt::Debug for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::plain(b"src/main.rs", true)]
    #[case::newline(b"a\nb", true)]
    #[case::not_utf8(b"\xff\xfe", true)]
    #[case::dash(b"-rf", true)]
    #[case::dots_in_a_name(b"..a/b..", true)]
    #[case::empty(b"", false)]
    #[case::absolute(b"/etc/passwd", false)]
    #[case::parent(b"a/../b", false)]
    #[case::here(b"./a", false)]
    #[case::trailing_slash(b"a/", false)]
    #[case::nul(b"a\0b", false)]
    fn only_paths_below_the_top_are_entry_paths(#[case] bytes: &[u8], #[case] want: bool) {
        assert_eq!(EntryPath::parse(bytes).is_some(), want);
    }

    #[rstest]
    #[case::plain("dir/ünï.txt".as_bytes(), "dir/ünï.txt")]
    #[case::newline(b"a\nboxery: all well", "a\\nboxery: all well")]
    #[case::escape(b"\x1b[2J", "\\u{1b}[2J")]
    #[case::not_utf8(b"caf\xe9", "caf\\xe9")]
    #[case::backslash(b"a\\n", "a\\\\n")]
    fn a_shown_name_stays_on_one_line(#[case] bytes: &[u8], #[case] want: &str) {
        assert_eq!(EntryPath::parse(bytes).unwrap().to_string(), want);
    }
}
