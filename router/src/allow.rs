//! The user's allowlist of commands that may run on the laptop.

use crate::{Questions, parse_simple_command};

/// Commands of git that start no program by themselves (git 2.47): an entry for
/// another one, such as `bisect run`, allows nothing.
const GIT_VERBS: &[&str] = &[
    "add",
    "annotate",
    "blame",
    "branch",
    "cat-file",
    "check-ignore",
    "checkout",
    "cherry",
    "cherry-pick",
    "commit",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "merge",
    "merge-base",
    "mv",
    "name-rev",
    "range-diff",
    "rebase",
    "reflog",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "stash",
    "status",
    "switch",
    "tag",
    "whatchanged",
];

/// Those of them that write, move or remove files of the project, settings and
/// policies among them: an entry has to name them, `git` alone doesn't.
const GIT_WRITERS: &[&str] = &[
    "checkout",
    "cherry-pick",
    "merge",
    "mv",
    "rebase",
    "reset",
    "restore",
    "revert",
    "rm",
    "stash",
    "switch",
];

/// Commands that talk to a remote. One on this machine runs programs of its own
/// configuration, so the remote is the entry's or the repository's own.
const GIT_REMOTE_VERBS: &[&str] = &["fetch", "push"];

/// Long options of git that run a program, read another configuration or
/// repository, or write a file (git 2.47). git takes every unique beginning.
const GIT_LONG: &[&str] = &[
    "attr-source",
    "config",
    "config-env",
    "contents",
    "edit",
    "exec",
    "exec-path",
    "ext-diff",
    "extcmd",
    "filter",
    "filters",
    "git-dir",
    "gpg-sign",
    "interactive",
    "namespace",
    "open-files-in-pager",
    "output",
    "output-directory",
    "paginate",
    "receive-pack",
    "recurse-submodules",
    "remote",
    "server-option",
    "show-signature",
    "sign",
    "strategy",
    "super-prefix",
    "template",
    "textconv",
    "tool",
    "upload-pack",
    "verify-signatures",
    "work-tree",
];

/// Letters of git's short options that do the same in some command.
const GIT_SHORT: &[char] = &['c', 'C', 'O', 'o', 'S', 'u', 'e', 'x'];

/// The entry of `allow` that names the command `text`, by an exact parse of both.
pub(crate) fn allowed<'a>(
    text: &str,
    allow: &'a [String],
    questions: &dyn Questions,
) -> Option<&'a str> {
    if allow.is_empty() {
        return None;
    }
    let words = parse_simple_command(text).ok()?;
    let covering = allow.iter().filter_map(|entry| {
        let named = parse_simple_command(entry).ok()?;
        words.starts_with(&named).then_some((entry, named.len()))
    });
    // The one that names the most.
    let (entry, named) = covering.max_by_key(|(_, named)| *named)?;
    if is_git(&words[0])
        && (words[1..].iter().any(|word| is_dangerous_git_option(word))
            || !is_quiet_git_verb(&words, named)
            || writes_protected_file(&words, named, questions)
            || questions.git_hazard().is_some())
    {
        return None;
    }
    Some(entry)
}

/// Whether the git command of `words`, of which the user's entry names the first
/// `named`, starts no program by itself.
fn is_quiet_git_verb(words: &[String], named: usize) -> bool {
    let Some(verb) = words.get(1).map(String::as_str) else {
        return false;
    };
    GIT_VERBS.contains(&verb)
        || GIT_REMOTE_VERBS.contains(&verb)
            && words[named.max(2)..]
                .iter()
                .all(|word| word.starts_with('-'))
}

/// Whether a git command that writes files isn't the entry's own, or names one that is
/// protected, or names files in a way that hides which.
fn writes_protected_file(words: &[String], named: usize, questions: &dyn Questions) -> bool {
    let Some((verb, operands)) = words.get(1..).and_then(<[String]>::split_first) else {
        return false;
    };
    GIT_WRITERS.contains(&verb.as_str())
        && (named < 2
            || operands.iter().any(|word| {
                word.contains([':', '*', '?', '[']) || questions.protected(word).is_some()
            }))
}

fn is_git(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    name == "git" || name.starts_with("git-")
}

fn is_dangerous_git_option(word: &str) -> bool {
    if let Some(long) = word.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or(long);
        return !name.is_empty()
            && GIT_LONG
                .iter()
                .any(|bad| bad.starts_with(name) || name.starts_with(bad));
    }
    word.strip_prefix('-')
        .is_some_and(|letters| letters.contains(GIT_SHORT))
}
