//! What a side's disk can't tell, taken from what is known otherwise: the spelling of
//! a name, and whether a file is executable.

use std::collections::HashMap;
use std::path::Path;

use crate::spelling::Folding;
use crate::{EntryPath, State, Tree};

/// A side's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    /// Which names are one there.
    pub folds: Folding,
    /// Whether it keeps the executable bit.
    pub modes: bool,
}

impl Disk {
    /// One on which other bytes are another name, and modes are kept.
    pub const PLAIN: Self = Self {
        folds: Folding::NONE,
        modes: true,
    };

    /// The disk below `folder`, whose tree is `tree`. Nothing is written to find out.
    pub fn of(folder: &Path, tree: &Tree) -> Self {
        let folds = folds_case(folder);
        let mut files = tree.iter().filter_map(|(_, state)| match state {
            State::File { executable, .. } => Some(executable),
            State::Absent | State::Folder | State::Link { .. } => None,
        });
        // Where each file is executable, a folder tells whether everything is open.
        let all = files.next().is_some_and(|first| first && files.all(|e| e));
        Self {
            folds: Folding {
                case: folds,
                unicode: folds,
            },
            modes: !(all && is_open(folder)),
        }
    }

    /// `tree` as it would be on a plain disk, as far as the last common state and the
    /// other side show it.
    #[must_use]
    pub fn told(self, tree: Tree, base: &Tree, other: &Tree) -> Tree {
        if self == Self::PLAIN {
            return tree;
        }
        let by_key = |tree: &Tree| -> HashMap<Vec<u8>, EntryPath> {
            let paths = tree.iter().map(|(path, _)| path);
            // The first in the order of paths stands.
            paths
                .rev()
                .map(|path| (self.folds.key(path), path.clone()))
                .collect()
        };
        let (in_base, in_other) = (by_key(base), by_key(other));
        let mut spelled: HashMap<EntryPath, EntryPath> = HashMap::new();
        let mut told = Vec::new();
        for (path, state) in tree.iter() {
            let name = std::os::unix::ffi::OsStrExt::from_bytes(path.file_name());
            let folder = path.parent().map(|folder| {
                let known = spelled.get(&folder).cloned();
                known.unwrap_or(folder)
            });
            let here = EntryPath::child(folder.as_ref(), name);
            let free = |found: Option<&EntryPath>| {
                let found = found.filter(|found| tree.at(found) == State::Absent);
                found.cloned()
            };
            let key = self.folds.key(&here);
            let path_told = if base.at(&here) != State::Absent {
                here
            } else if let Some(found) = free(in_base.get(&key)) {
                found
            } else if other.at(&here) != State::Absent {
                here
            } else {
                free(in_other.get(&key)).unwrap_or(here)
            };
            if state == State::Folder {
                spelled.insert(path.clone(), path_told.clone());
            }
            let state = self.mode(state, base.at(&path_told), other.at(&path_told));
            told.push((path_told, state));
        }
        told.into_iter().collect()
    }

    fn mode(self, state: State, base: State, other: State) -> State {
        let State::File { size, digest, .. } = state else {
            return state;
        };
        if self.modes {
            return state;
        }
        let executable = match (base, other) {
            (State::File { executable, .. }, _) | (_, State::File { executable, .. }) => executable,
            _ => false,
        };
        State::File {
            executable,
            size,
            digest,
        }
    }
}

/// Whether a folder is there under its name in the other case too.
fn folds_case(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let Some(name) = folder.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    let swap = |c: char| {
        if c.is_lowercase() {
            c.to_ascii_uppercase()
        } else {
            c.to_ascii_lowercase()
        }
    };
    let swapped: String = name.chars().map(swap).collect();
    let number = |path: &Path| path.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    swapped != name
        && number(folder).is_some_and(|own| number(&folder.with_file_name(swapped)) == Some(own))
}

/// Whether everybody may do everything, as on a disk that keeps no modes.
fn is_open(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    folder
        .metadata()
        .is_ok_and(|meta| meta.mode() & 0o777 == 0o777)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::Digest;

    fn tree(names: &[&str]) -> Tree {
        let digest = Digest::of(b"");
        names
            .iter()
            .map(|name| {
                let (name, executable) = match name.strip_suffix('!') {
                    Some(name) => (name, true),
                    None => (*name, false),
                };
                let state = State::File {
                    executable,
                    size: 0,
                    digest,
                };
                (EntryPath::parse(name.as_bytes()).unwrap(), state)
            })
            .collect()
    }

    #[rstest]
    #[case::as_the_base(&["foo"], &["Foo"], &["Foo"], &["Foo"])]
    #[case::as_the_other(&["foo"], &[], &["Foo"], &["Foo"])]
    #[case::the_base_before_the_other(&["foo"], &["Foo"], &["Foo", "foo"], &["Foo"])]
    #[case::its_own(&["foo"], &["foo"], &["Foo", "foo"], &["foo"])]
    #[case::new_in_a_folder(&["lib/new"], &["Lib/old"], &["Lib/old"], &["Lib/new"])]
    #[case::modes(&["a!", "b!", "new!"], &["a", "b!"], &["a!"], &["a", "b!", "new"])]
    fn what_the_disk_cannot_tell_is_taken_from_what_is_known(
        #[case] listed: &[&str],
        #[case] base: &[&str],
        #[case] other: &[&str],
        #[case] want: &[&str],
    ) {
        let disk = Disk {
            folds: Folding {
                case: true,
                unicode: true,
            },
            modes: false,
        };
        let told = disk.told(tree(listed), &tree(base), &tree(other));
        assert_eq!(told, tree(want));
        assert_eq!(
            Disk::PLAIN.told(tree(listed), &tree(base), &tree(other)),
            tree(listed)
        );
    }
}
