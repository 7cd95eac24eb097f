//! Rules about files, judged on what a command names.
//!
//! Claude Code 2.1.332 denies `cat secret` and `echo > secret` when a rule denies
//! `Read(secret)` or `Edit(secret)`, for the programs that it knows. So does this,
//! with the opposite error: more programs are known, and a word counts when it may
//! stand for the file. What tells nothing of the file, such as `$X` or `*`, doesn't
//! count, for Claude Code runs it too.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};

use super::globs::{ANY, meets};
use super::uses::{Use, uses};
use crate::shell::{self, Call, Found};

/// Text that doesn't parse is looked at word by word up to this length.
const LONGEST_CRUDE: usize = 64 << 10;
/// So many readings of one word are looked at.
const MOST_READINGS: usize = 64;
/// Text that may use more files than these is taken to use every one.
const MOST_PATHS: usize = 4_000;
/// A word with more expansions than these is told by its end alone.
const MOST_EXPANSIONS: usize = 16;
/// So many folders that a text may change to are followed.
const MOST_FOLDERS: usize = 16;
/// So many files are asked where their links lead.
const MOST_LINKS: usize = 512;

/// What a rule forbids to do with its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

impl Access {
    /// What the tools of that name do; `None` for all others.
    pub(crate) fn of_tool(name: &str) -> Option<Self> {
        match name {
            "Read" | "Grep" | "Glob" => Some(Self::Read),
            "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => Some(Self::Write),
            _ => None,
        }
    }
}

/// The folders that patterns and words are relative to.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    pub(crate) home: Utf8PathBuf,
    /// The call's own and the project's, links followed and not.
    pub(crate) roots: Vec<Utf8PathBuf>,
}

/// The files of a rule: one of these paths, or what lies below.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Files {
    access: Access,
    paths: Vec<Vec<String>>,
}

impl Files {
    /// A rule's pattern, as in a `.gitignore`; `settings` is the folder of the file
    /// that it stands in.
    pub(crate) fn parse(
        access: Access,
        pattern: &str,
        settings: Option<&Utf8Path>,
        folders: &Folders,
    ) -> Self {
        let pattern = pattern.trim().trim_start_matches('!');
        let roots = || folders.roots.iter().map(Utf8PathBuf::as_path);
        let (bases, rest): (Vec<&Utf8Path>, &str) = if let Some(rest) = pattern.strip_prefix("//") {
            (vec![Utf8Path::new("/")], rest)
        } else if let Some(rest) = pattern.strip_prefix("~/") {
            (vec![&folders.home], rest)
        } else if pattern == "~" {
            (vec![&folders.home], "")
        } else if let Some(rest) = pattern.strip_prefix('/') {
            // A project's own settings mean the project by it.
            let parent = settings.and_then(Utf8Path::parent);
            (
                settings.into_iter().chain(parent).chain(roots()).collect(),
                rest,
            )
        } else {
            (roots().collect(), pattern)
        };
        let mut parts: Vec<String> = components(&rest.replace('\\', "").to_lowercase());
        // A folder's content is the folder, as Claude Code sees it.
        while parts.last().is_some_and(|part| part == ANY) {
            parts.pop();
        }
        // A name without a folder counts at any depth.
        let is_bare = !pattern.starts_with(['/', '~']) && parts.len() == 1;
        if is_bare && !parts.iter().any(|part| part == "..") {
            parts.insert(0, ANY.to_owned());
        }
        let paths = bases
            .into_iter()
            .map(|base| {
                let mut path = components(&base.as_str().to_lowercase());
                push_all(&mut path, parts.iter().cloned());
                path
            })
            .collect();
        Self { access, paths }
    }

    fn meets(&self, access: Access, paths: &[Vec<String>]) -> bool {
        self.access == access
            && self
                .paths
                .iter()
                .any(|pattern| paths.iter().any(|path| meets(pattern, path)))
    }
}

/// The parts of a path; `.` and what is empty is none.
fn components(path: &str) -> Vec<String> {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .map(str::to_owned)
        .collect()
}

fn push_all(path: &mut Vec<String>, parts: impl Iterator<Item = String>) {
    for part in parts {
        if part == ".." && path.last().is_none_or(|last| last != ANY) {
            path.pop();
        } else {
            path.push(part);
        }
    }
}

/// The files that a text may read and write.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    reads: Vec<Vec<String>>,
    writes: Vec<Vec<String>>,
    /// Whether the text is too much to be read.
    is_unclear: bool,
}

impl Touched {
    pub(crate) fn of(text: &str, folders: &Folders) -> Self {
        let mut reader = Reader {
            folders,
            here: folders.roots.clone(),
            values: Vec::new(),
            links: 0,
            touched: Self::default(),
        };
        match shell::find_commands(text) {
            Ok(found) => reader.found(&found),
            Err(shell::Unclear) if text.len() > LONGEST_CRUDE => reader.touched.is_unclear = true,
            Err(shell::Unclear) => reader.crude(text),
        }
        reader.touched
    }

    pub(crate) fn may_be(&self, files: &Files) -> bool {
        self.is_unclear
            || files.meets(Access::Read, &self.reads)
            || files.meets(Access::Write, &self.writes)
    }
}

struct Reader<'a> {
    folders: &'a Folders,
    /// Where the text may be when a word is read.
    here: Vec<Utf8PathBuf>,
    values: Vec<(String, String)>,
    links: usize,
    touched: Touched,
}

impl Reader<'_> {
    fn found(&mut self, found: &Found) {
        self.values.clone_from(&found.values);
        self.values
            .push(("HOME".to_owned(), self.folders.home.to_string()));
        let here = self
            .here
            .iter()
            .map(|path| ("PWD".to_owned(), path.to_string()));
        self.values.extend(here.collect::<Vec<_>>());
        for Call { words, .. } in &found.calls {
            self.change_folder(words);
        }
        for call in &found.calls {
            let Use { reads, writes } = uses(&call.words, call.is_behind_another);
            for word in reads {
                self.word(&word, Access::Read);
            }
            for word in writes {
                self.word(&word, Access::Write);
            }
        }
        for word in &found.inputs {
            self.word(word, Access::Read);
        }
        for word in &found.outputs {
            self.word(word, Access::Write);
        }
    }

    fn crude(&mut self, text: &str) {
        let bare: String = text.replace(['\'', '"', '\\'], "");
        let ends = |c: char| c.is_whitespace() || ";&|(){}<>`".contains(c);
        let words: BTreeSet<&str> = bare.split(ends).filter(|word| !word.is_empty()).collect();
        for word in words {
            self.word(word, Access::Read);
            self.word(word, Access::Write);
        }
    }

    /// Notes where a `cd` may lead, beside where the text was before.
    fn change_folder(&mut self, words: &[String]) {
        let Some((program, rest)) = words.split_first() else {
            return;
        };
        if !matches!(shell::name_of(program), "cd" | "pushd") {
            return;
        }
        let Some(target) = rest.iter().find(|word| !word.starts_with('-')) else {
            return self.here.push(self.folders.home.clone());
        };
        for reading in self.readings(target) {
            if reading.contains([UNKNOWN, '*', '?', '[']) {
                continue;
            }
            for folder in self.here.clone() {
                let path = format!("/{}", components_from(&folder, &reading).join("/"));
                if self.here.len() < MOST_FOLDERS && !self.here.iter().any(|known| *known == path) {
                    self.here.push(path.into());
                }
            }
        }
    }

    fn word(&mut self, word: &str, access: Access) {
        let mut texts = vec![word];
        texts.extend(word.split_once('=').map(|(_, value)| value));
        texts.extend(word.strip_prefix('@'));
        for text in texts.clone() {
            texts.extend(text.strip_prefix("file://"));
        }
        for text in texts {
            for reading in self.readings(text) {
                self.path(&reading, access);
            }
        }
    }

    fn path(&mut self, reading: &str, access: Access) {
        // Nothing in it tells which file.
        let tells_nothing = |c: char| c == UNKNOWN || "*?./".contains(c);
        if reading.contains([UNKNOWN, '*', '?']) && reading.chars().all(tells_nothing) {
            return;
        }
        let is_pattern = reading.contains([UNKNOWN, '*', '?', '[']);
        let bases: Vec<Utf8PathBuf> = if reading.starts_with(UNKNOWN) {
            vec![Utf8Path::new("/").join(ANY)]
        } else if reading.starts_with('/') {
            vec![Utf8PathBuf::from("/")]
        } else {
            self.here.clone()
        };
        for base in bases {
            if self.touched.reads.len() + self.touched.writes.len() > MOST_PATHS {
                self.touched.is_unclear = true;
                return;
            }
            let parts = components_from(&base, reading);
            if !is_pattern && self.links < MOST_LINKS {
                self.links += 1;
                let path = Utf8PathBuf::from(format!("/{}", parts.join("/")));
                match path.canonicalize_utf8() {
                    Ok(real) if real != path => self.push(&components(real.as_str()), access),
                    Ok(_) | Err(_) => {}
                }
            }
            self.push(&parts, access);
        }
    }

    fn push(&mut self, parts: &[String], access: Access) {
        let parts = parts.iter().map(|part| part.to_lowercase()).collect();
        match access {
            Access::Read => self.touched.reads.push(parts),
            Access::Write => self.touched.writes.push(parts),
        }
    }
}

/// Stands in a reading for what an expansion gives.
const UNKNOWN: char = '\0';

impl Reader<'_> {
    /// What a word may stand for, as far as its text tells.
    fn readings(&self, word: &str) -> Vec<String> {
        let mut readings = Vec::new();
        for word in open_braces(word) {
            let word = match word.strip_prefix('~') {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                    format!("{}{rest}", self.folders.home)
                }
                _ => word,
            };
            if word.matches(['$', '`']).count() > MOST_EXPANSIONS {
                let end = word.rsplit(['$', '`', ')', '}']).next().unwrap_or_default();
                readings.push(format!("{UNKNOWN}{end}"));
            } else {
                self.expand(&word, String::new(), &mut readings);
            }
        }
        readings
    }

    fn expand(&self, word: &str, before: String, into: &mut Vec<String>) {
        let Some(at) = word.find(['$', '`']) else {
            if into.len() < MOST_READINGS {
                into.push(before + word);
            }
            return;
        };
        let before = before + &word[..at];
        let (name, end) = expansion(&word[at..]);
        let rest = &word[at + end..];
        let known = || {
            self.values
                .iter()
                .filter(|(known, _)| Some(known.as_str()) == name)
        };
        if known().next().is_none() || into.len() >= MOST_READINGS {
            return self.expand(rest, before + "\0", into);
        }
        for (_, value) in known() {
            // A value that is expanded itself could lead back here.
            let value = if value.contains(['$', '`']) {
                "\0"
            } else {
                value
            };
            self.expand(rest, before.clone() + value, into);
        }
    }
}

/// The variable of the expansion that begins here, if it is a plain one, and where
/// the expansion ends.
fn expansion(text: &str) -> (Option<&str>, usize) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let rest = &text[1..];
    if text.starts_with('`') {
        return (None, rest.find('`').map_or(text.len(), |end| end + 2));
    }
    if let Some(inner) = rest.strip_prefix('{') {
        return match inner.find('}') {
            Some(end) if inner[..end].chars().all(is_name) => (Some(&inner[..end]), end + 3),
            Some(end) => (None, end + 3),
            None => (None, text.len()),
        };
    }
    if rest.starts_with('(') {
        let mut depth = 0_usize;
        for (at, c) in rest.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return (None, at + 2);
            }
        }
        return (None, text.len());
    }
    let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
    match end {
        // `$1`, `$$`, or a dollar alone.
        0 => (None, 1 + rest.chars().next().map_or(0, char::len_utf8)),
        _ => (Some(&rest[..end]), end + 1),
    }
}

/// `a{b,c}` as `ab` and `ac`; braces in braces are left as they are.
fn open_braces(word: &str) -> Vec<String> {
    let mut words = vec![word.to_owned()];
    for _ in 0..4 {
        let opened = words.iter().flat_map(|word| {
            let braces = word
                .match_indices('{')
                .filter(|(at, _)| !word[..*at].ends_with('$'))
                .find_map(|(at, _)| {
                    let end = at + word[at..].find('}')?;
                    let inner = &word[at + 1..end];
                    (inner.contains(',') && !inner.contains('{')).then_some((at, end, inner))
                });
            match braces {
                Some((at, end, inner)) => inner
                    .split(',')
                    .map(|part| format!("{}{part}{}", &word[..at], &word[end + 1..]))
                    .collect(),
                None => vec![word.clone()],
            }
        });
        words = opened.take(MOST_READINGS).collect();
    }
    words
}

/// The parts of `path` seen from `base`; what an expansion gives alone may be any folders.
fn components_from(base: &Utf8Path, path: &str) -> Vec<String> {
    let mut parts = if path.starts_with('/') {
        Vec::new()
    } else {
        components(base.as_str())
    };
    let more = components(path)
        .into_iter()
        .map(|part| match part.as_str() {
            "\0" => ANY.to_owned(),
            // Two stars of a shell's word are one here.
            _ => part.replace('\0', "*").replace("**", "*"),
        });
    push_all(&mut parts, more);
    parts
}
