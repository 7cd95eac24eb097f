//! What never comes back from a VM by itself, because it would run or decide
//! something on the laptop.
//!
//! Names are compared as the most forgiving disk would: without case, in one
//! Unicode form, and without the characters that some disks leave out.

use crate::EntryPath;
use crate::spelling::Folding;

/// Anywhere in the tree: a name, or names of a folder and what lies in it. What
/// lies below one is meant too. `*` at the end stands for any rest of a name.
const EVERYWHERE: &[&str] = &[
    ".git",
    ".gitattributes",
    ".mcp.json",
    "fence.json*",
    ".boxery*",
    ".worktreeinclude",
    ".envrc",
    ".husky",
    ".vscode",
    ".idea",
];

/// What must not be taken back from a VM.
#[derive(Debug, Clone, Default)]
pub struct Protected {
    patterns: Vec<Vec<Vec<u8>>>,
    /// From the top of the project only.
    anchored: Vec<Vec<Vec<u8>>>,
}

impl Protected {
    /// The list of this page, with `settings` of the agents (paths relative to a
    /// project, protected at any depth: an agent can be started in any folder) and
    /// the `anchored` paths of this project, such as its `core.hooksPath`.
    pub fn new<S, A>(settings: S, anchored: A) -> Self
    where
        S: IntoIterator,
        S::Item: AsRef<[u8]>,
        A: IntoIterator,
        A::Item: AsRef<[u8]>,
    {
        let everywhere = EVERYWHERE.iter().map(|name| components(name.as_bytes()));
        let settings = settings.into_iter();
        Self {
            patterns: everywhere
                .chain(settings.map(|path| components(path.as_ref())))
                .filter(|parts| !parts.is_empty())
                .collect(),
            anchored: anchored
                .into_iter()
                .map(|path| components(path.as_ref()))
                .filter(|parts| !parts.is_empty())
                .collect(),
        }
    }

    /// Whether a change at `path` must not be taken back. `replaces` says that
    /// something else than a folder would lie there: a link in the place of `.claude`
    /// brings other settings as surely as the file itself.
    pub fn covers(&self, path: &EntryPath, replaces: bool) -> bool {
        let parts = components(path.as_bytes());
        let anchored = self
            .anchored
            .iter()
            .any(|pattern| matches_at(&parts, pattern, replaces));
        anchored
            || self.patterns.iter().any(|pattern| {
                (0..parts.len()).any(|from| matches_at(&parts[from..], pattern, replaces))
            })
    }
}

/// Whether `parts` begin with `pattern`, or, if it `replaces` a folder, are its beginning.
fn matches_at(parts: &[Vec<u8>], pattern: &[Vec<u8>], replaces: bool) -> bool {
    let all = parts
        .iter()
        .zip(pattern)
        .all(|(part, pattern)| match pattern.strip_suffix(b"*") {
            Some(start) => part.starts_with(start),
            None => part == pattern,
        });
    all && (parts.len() >= pattern.len() || replaces)
}

fn components(path: &[u8]) -> Vec<Vec<u8>> {
    let forgiving = Folding {
        case: true,
        unicode: true,
    };
    let part = |part: &[u8]| {
        let part = EntryPath::parse(part)?;
        let folded = forgiving.key(&part);
        let text = String::from_utf8_lossy(&folded);
        let text: String = text.chars().filter(|c| !is_left_out(*c)).collect();
        // What Windows and FAT cut from the end.
        Some(text.trim_end_matches(['.', ' ']).as_bytes().to_vec())
    };
    path.split(|byte| *byte == b'/').filter_map(part).collect()
}

/// The characters that HFS+ leaves out of names.
fn is_left_out(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::git(".git/config", true)]
    #[case::deep("lib/x/.git/hooks/post-checkout", true)]
    #[case::case(".GIT/config", true)]
    #[case::left_out(".g\u{200c}it/config", true)]
    #[case::cut(".vscode./tasks.json", true)]
    #[case::attributes("sub/.gitattributes", true)]
    #[case::settings(".claude/settings.json", true)]
    #[case::settings_below("packages/a/.claude/settings.json", true)]
    #[case::settings_folder(".claude/agents/x.md", false)]
    #[case::fence("fence.jsonc", true)]
    #[case::own(".boxery-copy", true)]
    #[case::hooks_path("tools/hooks/pre-commit", true)]
    #[case::hooks_path_elsewhere("a/tools/hooks/pre-commit", false)]
    #[case::ignore_file(".gitignore", false)]
    #[case::plain("src/main.rs", false)]
    #[case::longer_name(".gitter", false)]
    fn what_would_run_on_the_laptop_is_covered(#[case] path: &str, #[case] want: bool) {
        let protected = Protected::new([".claude/settings.json"], ["tools/hooks"]);
        let path = EntryPath::parse(path.as_bytes()).unwrap();
        assert_eq!(protected.covers(&path, true), want, "{path}");
    }

    #[rstest]
    #[case::the_folder(".claude")]
    #[case::of_hooks("tools")]
    fn a_link_in_the_place_of_a_folder_above_is_covered_and_a_folder_is_not(#[case] path: &str) {
        let protected = Protected::new([".claude/settings.json"], ["tools/hooks"]);
        let path = EntryPath::parse(path.as_bytes()).unwrap();
        assert!(protected.covers(&path, true));
        assert!(!protected.covers(&path, false));
    }
}
