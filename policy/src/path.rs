//! Judges a declared write: the file section's rules on one absolute path.

use crate::{Matched, RuleKind, Verdict};

/// Files that other programs run or take settings from.
const DANGEROUS_FILES: &[&str] = &[
    ".gitconfig",
    ".gitmodules",
    ".bashrc",
    ".bash_profile",
    ".zshrc",
    ".zprofile",
    ".profile",
    ".ripgreprc",
    ".mcp.json",
];
/// Folders in which every file is dangerous.
const DANGEROUS_FOLDERS: &[&str] = &[".vscode", ".idea"];

/// A rule of `allowWrite` or `denyWrite`.
#[derive(Debug, Clone)]
pub(crate) struct PathRule {
    written: String,
    source: String,
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    /// These paths and everything below.
    Below(Vec<String>),
    /// Everything that matches one of these patterns, folder by folder.
    Patterns(Vec<String>),
}

/// What paths in rules stand for.
pub struct Roots<'a> {
    /// What `~` is.
    pub home: &'a str,
    /// What a relative rule stands in.
    pub folder: &'a str,
    /// A path with its links resolved, if it exists.
    pub links: &'a dyn Fn(&str) -> Option<String>,
}

impl PathRule {
    pub(crate) fn new(written: &str, source: &str, roots: &Roots<'_>) -> Self {
        let home = match written.strip_prefix('~') {
            Some("") => Some(roots.home.to_owned()),
            Some(rest) if rest.starts_with('/') => Some(format!("{}{rest}", roots.home)),
            Some(_) | None => None,
        };
        let is_pattern = written.contains(['*', '?', '[', '{']);
        let path = home.unwrap_or_else(|| written.to_owned());
        let form = if is_pattern {
            Form::Patterns(braces(&path))
        } else {
            let path = if path.starts_with('/') {
                clean(&path)
            } else {
                join(roots.folder, &path)
            };
            // A link means what it leads to.
            Form::Below(vec![(roots.links)(&path).unwrap_or(path)])
        };
        Self {
            written: written.to_owned(),
            source: source.to_owned(),
            form,
        }
    }

    /// Whether it names the absolute `path`, as written or as seen from `folder`.
    pub(crate) fn names(&self, path: &str, folder: &str) -> bool {
        let below = path.strip_prefix(folder.trim_end_matches('/'));
        let below = below.and_then(|below| below.strip_prefix('/'));
        self.matches(path) || below.is_some_and(|below| self.matches(below))
    }

    fn matches(&self, path: &str) -> bool {
        match &self.form {
            Form::Below(roots) => roots.iter().any(|root| is_below(path, root)),
            Form::Patterns(patterns) => patterns.iter().any(|pattern| {
                let pattern: Vec<&str> = pattern.split('/').collect();
                let path: Vec<&str> = path.split('/').collect();
                folders_match(&pattern, &path)
            }),
        }
    }
}

/// The file section, as far as writes are concerned.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteRules {
    pub(crate) allow: Vec<PathRule>,
    pub(crate) deny: Vec<PathRule>,
}

impl WriteRules {
    pub(crate) fn judge(&self, path: &str, folder: Option<&str>) -> Verdict {
        let deny =
            |kind: RuleKind, rule: &str, subject: &str, source: Option<&str>| Verdict::Deny {
                rule: Matched {
                    kind,
                    rule: rule.to_owned(),
                    subject: subject.to_owned(),
                    source: source.map(str::to_owned),
                },
                span: crate::Span {
                    start: 0,
                    end: path.len(),
                },
            };
        if path.is_empty() {
            return Verdict::Allow;
        }
        let whole = match (path.starts_with('/'), folder) {
            (true, _) => clean(path),
            (false, None) => {
                return deny(
                    RuleKind::BadPath,
                    "a relative path needs the call's folder",
                    path,
                    None,
                );
            }
            (false, Some(folder)) if !folder.starts_with('/') => {
                return deny(
                    RuleKind::BadPath,
                    "the call's folder isn't absolute",
                    path,
                    None,
                );
            }
            (false, Some(folder)) => join(folder, path),
        };
        if let Some(what) = dangerous(&whole) {
            return deny(RuleKind::DangerousFile, what, &whole, None);
        }
        if let Some(rule) = self.deny.iter().find(|rule| rule.matches(&whole)) {
            return deny(
                RuleKind::DenyWrite,
                &rule.written,
                &whole,
                Some(&rule.source),
            );
        }
        if self.allow.iter().any(|rule| rule.matches(&whole)) {
            return Verdict::Allow;
        }
        deny(RuleKind::NotWritable, "", &whole, None)
    }
}

/// Whether other programs run the file at `path` or take settings from it.
pub(crate) fn is_dangerous(path: &str) -> bool {
    dangerous(path).is_some()
}

/// What makes a path dangerous.
fn dangerous(path: &str) -> Option<&'static str> {
    let parts: Vec<&str> = path.split('/').collect();
    let name = parts.last().copied().unwrap_or_default();
    if let Some(file) = DANGEROUS_FILES.iter().find(|file| **file == name) {
        return Some(file);
    }
    let folders = &parts[..parts.len().saturating_sub(1)];
    if let Some(folder) = DANGEROUS_FOLDERS
        .iter()
        .find(|folder| folders.contains(folder))
    {
        return Some(folder);
    }
    let hooks = parts.windows(2).any(|pair| pair == [".git", "hooks"]);
    if hooks {
        return Some(".git/hooks");
    }
    path.ends_with("/.git/config").then_some(".git/config")
}

fn is_below(path: &str, root: &str) -> bool {
    let root = root.trim_end_matches('/');
    path.strip_prefix(root)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// `path` in `folder`, without `.` and `..`.
pub(crate) fn join(folder: &str, path: &str) -> String {
    clean(&format!("{folder}/{path}"))
}

/// An absolute path without `.`, `..` and doubled slashes; links aren't looked at.
pub(crate) fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Every text that `{a,b}` in a pattern stands for.
fn braces(pattern: &str) -> Vec<String> {
    let Some(open) = pattern.find('{') else {
        return vec![pattern.to_owned()];
    };
    let Some(close) = pattern[open..].find('}').map(|close| close + open) else {
        return vec![pattern.to_owned()];
    };
    let inside = &pattern[open + 1..close];
    if inside.contains('{') || pattern.matches('{').count() > 6 {
        return vec![pattern.to_owned()];
    }
    inside
        .split(',')
        .flat_map(|choice| {
            braces(&format!(
                "{}{choice}{}",
                &pattern[..open],
                &pattern[close + 1..]
            ))
        })
        .collect()
}

/// `**` stands for any number of folders.
fn folders_match(pattern: &[&str], path: &[&str]) -> bool {
    match pattern.split_first() {
        None => path.is_empty(),
        Some((&"**", rest)) => {
            // A run of `**` is one.
            if rest.first() == Some(&"**") {
                return folders_match(rest, path);
            }
            rest.is_empty() || (0..=path.len()).any(|skip| folders_match(rest, &path[skip..]))
        }
        Some((first, rest)) => match path.split_first() {
            Some((name, below)) => {
                name_matches(first.as_bytes(), name.as_bytes()) && folders_match(rest, below)
            }
            None => false,
        },
    }
}

/// `*`, `?` and `[…]` in one folder's name.
fn name_matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut next, mut star) = (0, 0, None);
    while at < name.len() {
        let taken = match pattern.get(next) {
            Some(b'*') => {
                star = Some((next, at));
                next += 1;
                continue;
            }
            Some(b'?') => Some(next + 1),
            Some(b'[') => class_matches(&pattern[next..], name[at]).map(|length| next + length),
            Some(byte) if *byte == name[at] => Some(next + 1),
            Some(_) | None => None,
        };
        match (taken, star) {
            (Some(after), _) => {
                next = after;
                at += 1;
            }
            (None, Some((position, from))) => {
                next = position + 1;
                at = from + 1;
                star = Some((position, at));
            }
            (None, None) => return false,
        }
    }
    pattern[next..].iter().all(|byte| *byte == b'*')
}

/// The length of a class that matches.
fn class_matches(pattern: &[u8], byte: u8) -> Option<usize> {
    let close = pattern.iter().skip(2).position(|end| *end == b']')? + 2;
    let inside = &pattern[1..close];
    let (inside, negated) = match inside.first() {
        Some(b'!' | b'^') => (&inside[1..], true),
        Some(_) | None => (inside, false),
    };
    let mut found = false;
    let mut at = 0;
    while at < inside.len() {
        if inside.get(at + 1) == Some(&b'-') && at + 2 < inside.len() {
            found |= (inside[at]..=inside[at + 2]).contains(&byte);
            at += 3;
        } else {
            found |= inside[at] == byte;
            at += 1;
        }
    }
    (found != negated).then_some(close + 1)
}
