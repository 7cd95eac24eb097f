//! Hooks that agents, skills and commands bring along in their front matter.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;

use camino::{Utf8Path, Utf8PathBuf};

use super::hooks::REWRITING_EVENTS;
use crate::places::{FoundHook, HookEnvironment, Unreadable};

/// More front matter than this is not read; it may hold anything.
const LONGEST: usize = 64 << 10;
/// More names than these are not looked at: the hook has a deadline.
const MOST_NAMES: usize = 10_000;
const DEEPEST: usize = 8;

/// What a folder holds, and so which of its files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Every `*.md`.
    Agents,
    /// Every `*.md`.
    Commands,
    /// Every `SKILL.md`.
    Skills,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Agents, Self::Commands, Self::Skills];

    /// Its folder's name, and its key in a plugin's manifest.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Commands => "commands",
            Self::Skills => "skills",
        }
    }

    fn reads(self, name: &str) -> bool {
        match self {
            Self::Agents | Self::Commands => name.to_ascii_lowercase().ends_with(".md"),
            Self::Skills => name.eq_ignore_ascii_case("SKILL.md"),
        }
    }
}

/// One walk over all folders of a session, with one bound for them all.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    seen: HashSet<(Kind, u64, u64)>,
    names: usize,
}

impl Scan {
    /// Adds what the files of `path`, a folder or a file, may do to a call.
    pub(crate) fn path(&mut self, path: &Utf8Path, kind: Kind, found: &mut HookEnvironment) {
        self.descend(path, kind, true, 0, found);
    }

    fn descend(
        &mut self,
        path: &Utf8Path,
        kind: Kind,
        is_named: bool,
        depth: usize,
        found: &mut HookEnvironment,
    ) {
        let unreadable = |problem: String| Unreadable {
            place: path.to_string(),
            problem,
        };
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if is_absent(&error) => return,
            Err(error) => return found.unreadable.push(unreadable(error.to_string())),
        };
        if metadata.is_file() {
            if is_named || path.file_name().is_some_and(|name| kind.reads(name)) {
                read_file(path, found);
            }
            return;
        }
        // A folder that leads back to itself is walked once.
        if !metadata.is_dir() || !self.seen.insert((kind, metadata.dev(), metadata.ino())) {
            return;
        }
        if depth > DEEPEST {
            return found
                .unreadable
                .push(unreadable("it lies too deep".to_owned()));
        }
        let entries = match path.read_dir_utf8() {
            Ok(entries) => entries,
            Err(error) => return found.unreadable.push(unreadable(error.to_string())),
        };
        for entry in entries {
            self.names += 1;
            if self.names > MOST_NAMES {
                if self.names == MOST_NAMES + 1 {
                    let problem = "there are too many files".to_owned();
                    found.unreadable.push(unreadable(problem));
                }
                return;
            }
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    found.unreadable.push(unreadable(error.to_string()));
                    continue;
                }
            };
            // Only a folder or a link may lead to more files.
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            let is_skipped = matches!(entry.file_name(), ".git" | "node_modules");
            if !is_skipped && (!is_file || kind.reads(entry.file_name())) {
                self.descend(entry.path(), kind, false, depth + 1, found);
            }
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn read_file(path: &Utf8Path, found: &mut HookEnvironment) {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST as u64).read_to_end(&mut bytes));
    match read {
        Ok(_) if may_rewrite(&String::from_utf8_lossy(&bytes)) => {
            found.rewriters.push(front_matter_hook(path.to_owned()));
        }
        Ok(_) => {}
        Err(error) => found.unreadable.push(Unreadable {
            place: path.to_string(),
            problem: error.to_string(),
        }),
    }
}

fn front_matter_hook(place: Utf8PathBuf) -> FoundHook {
    FoundHook {
        event: REWRITING_EVENTS[0].to_owned(),
        command: "hooks in the front matter".to_owned(),
        place: place.into_string(),
    }
}

/// Whether the text's front matter has hooks that may rewrite a call. It is YAML,
/// read here only as far as its keys go; what may spell such a key counts as one.
fn may_rewrite(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let Some(rest) = text.strip_prefix("---") else {
        return false;
    };
    let block = match rest.find("\n---") {
        Some(end) => &rest[..end],
        None if text.len() + 8 >= LONGEST => return true,
        None => rest,
    };
    has_hooks_key(block)
        && (block.contains('\\') || REWRITING_EVENTS.iter().any(|event| block.contains(event)))
}

fn has_hooks_key(block: &str) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut lines = block
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
        .peekable();
    let Some(top) = lines.peek().map(|line| indent(line)) else {
        return false;
    };
    // A mapping in braces, a tag or an anchor: too clever for this reading.
    if lines
        .peek()
        .is_some_and(|line| line.trim_start().starts_with(['{', '!', '&', '-']))
    {
        return block.contains("hooks") || block.contains('\\');
    }
    lines.any(|line| {
        let line = line.trim_end();
        if indent(line) > top {
            return false;
        }
        let key = line.trim_start();
        let is_escaped = key.starts_with('"') && key.contains('\\');
        let bare = key.trim_start_matches(['"', '\'', '?', ' ']);
        is_escaped
            || key.starts_with(['!', '&', '<'])
            || bare.strip_prefix("hooks").is_some_and(|rest| {
                let rest = rest.trim_start_matches(['"', '\'']).trim_start();
                rest.is_empty() || rest.starts_with(':')
            })
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::as_documented(
        "---\nname: x\nhooks:\n  PreToolUse:\n    - matcher: Bash\n---\nText",
        true
    )]
    #[case::windows_lines("---\r\nname: x\r\nhooks:\r\n  PreToolUse: []\r\n---\r\n", true)]
    #[case::a_byte_order_mark("\u{feff}---\nhooks:\n  PreToolUse:\n---\n", true)]
    #[case::in_braces("---\n{name: x, hooks: {PreToolUse: []}}\n---\n", true)]
    #[case::on_one_line("---\nhooks: {\"PreToolUse\": []}\n---\n", true)]
    #[case::a_quoted_key("---\n'hooks': {PreToolUse: []}\n---\n", true)]
    #[case::an_escaped_key("---\n\"\\x68ooks\": {PreToolUse: []}\n---\n", true)]
    #[case::an_explicit_key("---\n? hooks\n: {PreToolUse: []}\n---\n", true)]
    #[case::indented("---\n  name: x\n  hooks:\n    PreToolUse:\n---\n", true)]
    #[case::a_permission_hook("---\nhooks:\n  PermissionRequest:\n---\n", true)]
    #[case::never_closed("---\nhooks:\n  PreToolUse:\n", true)]
    #[case::another_event("---\nhooks:\n  Stop:\n---\n", false)]
    #[case::below_another_key("---\ndescription: |\n  hooks: PreToolUse\n---\n", false)]
    #[case::in_a_sentence("---\ndescription: writes hooks: PreToolUse\n---\n", false)]
    #[case::a_longer_key("---\nhooksmith: PreToolUse\n---\n", false)]
    #[case::behind_the_front_matter("---\nname: x\n---\nhooks:\n  PreToolUse:\n", false)]
    #[case::no_front_matter("hooks:\n  PreToolUse:\n", false)]
    #[case::a_comment("---\n# hooks: PreToolUse\nname: x\n---\n", false)]
    #[case::empty("---\n---\n", false)]
    #[case::nothing("", false)]
    fn a_hooks_key_of_the_front_matter_may_rewrite(#[case] text: &str, #[case] want: bool) {
        assert_eq!(may_rewrite(text), want);
    }
}
