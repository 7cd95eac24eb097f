//! The user's allowlist of commands that may run on the laptop.

use crate::{Questions, parse_simple_command};

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
    let entry = allow
        .iter()
        .find(|entry| parse_simple_command(entry).is_ok_and(|entry| words.starts_with(&entry)))?;
    if is_git(&words[0])
        && (words[1..].iter().any(|word| is_dangerous_git_option(word))
            || words.get(1).is_none_or(|verb| verb.starts_with('-'))
            || questions.git_hazard().is_some())
    {
        return None;
    }
    Some(entry)
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
