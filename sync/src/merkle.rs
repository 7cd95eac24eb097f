//! Folder digests: two trees compare by one digest, and descend only where it differs.

use std::collections::HashMap;

use crate::{Digest, EntryPath, State, Tree};

/// The digest of every folder of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    top: Digest,
    folders: HashMap<EntryPath, Digest>,
}

impl Fold {
    /// Fold `tree`.
    pub fn of(tree: &Tree) -> Self {
        let mut open: HashMap<Option<EntryPath>, Vec<(Vec<u8>, Digest)>> = HashMap::new();
        let mut folders = HashMap::new();
        // Backwards, what is in a folder comes before the folder.
        for (path, state) in tree.iter().rev() {
            let digest = if state == State::Folder {
                let inside = open.remove(&Some(path.clone())).unwrap_or_default();
                let digest = folded(inside);
                folders.insert(path.clone(), digest);
                digest
            } else {
                leaf(&state)
            };
            open.entry(path.parent())
                .or_default()
                .push((path.file_name().to_vec(), digest));
        }
        Self {
            top: folded(open.remove(&None).unwrap_or_default()),
            folders,
        }
    }

    /// Of the whole tree.
    pub fn top(&self) -> Digest {
        self.top
    }

    /// Of one folder, if it is one.
    pub fn folder(&self, path: &EntryPath) -> Option<Digest> {
        self.folders.get(path).copied()
    }
}

fn leaf(state: &State) -> Digest {
    let mut hasher = blake3::Hasher::new();
    match state {
        State::Absent => hasher.update(b"-"),
        State::Folder => hasher.update(b"d"),
        State::Link { digest, .. } => hasher.update(b"l").update(&digest.0),
        State::File {
            executable, digest, ..
        } => hasher
            .update(if *executable { b"x" } else { b"f" })
            .update(&digest.0),
    };
    Digest(*hasher.finalize().as_bytes())
}

/// Children sorted by name, each name with its length, so that no two folders
/// spell the same bytes.
fn folded(mut inside: Vec<(Vec<u8>, Digest)>) -> Digest {
    inside.sort();
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"D");
    for (name, digest) in inside {
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(&name);
        hasher.update(&digest.0);
    }
    Digest(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn tree(entries: &[(&str, State)]) -> Tree {
        entries
            .iter()
            .map(|(path, state)| (EntryPath::parse(path.as_bytes()).unwrap(), *state))
            .collect()
    }

    fn file(text: &str) -> State {
        State::File {
            executable: false,
            size: text.len() as u64,
            digest: Digest::of(text.as_bytes()),
        }
    }

    fn script(text: &str) -> State {
        State::File {
            executable: true,
            size: text.len() as u64,
            digest: Digest::of(text.as_bytes()),
        }
    }

    fn link(text: &str) -> State {
        State::Link {
            size: text.len() as u64,
            digest: Digest::of(text.as_bytes()),
        }
    }

    #[rstest]
    #[case::content(&[("a/b", file("1"))], &[("a/b", file("2"))])]
    #[case::name(&[("a/b", file("1"))], &[("a/c", file("1"))])]
    #[case::folder(&[("a/b", file("1"))], &[("b/b", file("1"))])]
    #[case::executable(&[("a", file("1"))], &[("a", script("1"))])]
    #[case::link(&[("a", file("1"))], &[("a", link("1"))])]
    #[case::empty_folder(&[("a", State::Folder)], &[])]
    #[case::dot(&[("a", State::Folder), ("a.b", file("1"))], &[("a/b", file("1"))])]
    fn trees_that_differ_have_another_digest(
        #[case] one: &[(&str, State)],
        #[case] other: &[(&str, State)],
    ) {
        assert_ne!(Fold::of(&tree(one)).top(), Fold::of(&tree(other)).top());
        assert_eq!(Fold::of(&tree(one)), Fold::of(&tree(one)));
    }

    #[test]
    fn only_the_folders_on_the_way_to_a_change_differ() {
        let one = Fold::of(&tree(&[("a/b/c", file("1")), ("d/e", file("1"))]));
        let other = Fold::of(&tree(&[("a/b/c", file("2")), ("d/e", file("1"))]));
        let differs = |path: &str| {
            let path = EntryPath::parse(path.as_bytes()).unwrap();
            one.folder(&path) != other.folder(&path)
        };
        assert_eq!(
            [differs("a"), differs("a/b"), differs("d")],
            [true, true, false]
        );
    }
}
