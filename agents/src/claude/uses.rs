//! Which words of a command name files that it reads, and which files that it writes.

use crate::shell::name_of;

/// The words of a command that may name files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) reads: Vec<String>,
    pub(crate) writes: Vec<String>,
}

/// Programs whose every operand is read.
const READERS: &[&str] = &[
    "awk",
    "base32",
    "base64",
    "bat",
    "cat",
    "cd",
    "cksum",
    "cmp",
    "column",
    "comm",
    "cut",
    "diff",
    "egrep",
    "expand",
    "fgrep",
    "file",
    "fmt",
    "fold",
    "gawk",
    "grep",
    "head",
    "hexdump",
    "jq",
    "less",
    "ls",
    "man",
    "mawk",
    "md5sum",
    "more",
    "nawk",
    "nl",
    "numfmt",
    "od",
    "paste",
    "pr",
    "pushd",
    "rev",
    "rg",
    "sed",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "sort",
    "stat",
    "strings",
    "tac",
    "tail",
    "tar",
    "tr",
    "tree",
    "tsort",
    "unexpand",
    "uniq",
    "view",
    "wc",
    "xxd",
    "yq",
    "zcat",
    "zip",
];
/// Of these, those whose first operand is a program or a pattern.
const SCRIPTED: &[&str] = &[
    "awk", "egrep", "fgrep", "gawk", "grep", "jq", "mawk", "nawk", "rg", "sed", "yq",
];
/// Programs whose every operand is written, and none read.
const WRITERS: &[&str] = &[
    "mkdir", "rm", "rmdir", "shred", "tee", "touch", "truncate", "unlink",
];
/// Programs that write to their last operand what they read from the others.
const COPIERS: &[&str] = &["cp", "install", "ln", "mv", "rsync", "scp"];
/// Programs whose words name no file, or only its name matters to them.
const OTHERS: &[&str] = &[
    "[", "alias", "basename", "chgrp", "chmod", "chown", "declare", "dirname", "echo", "exit",
    "export", "false", "hash", "history", "kill", "let", "local", "mktemp", "printf", "pwd",
    "read", "readonly", "realpath", "return", "set", "shift", "sleep", "test", "true", "type",
    "typeset", "umask", "unset", "wait", "which",
];
/// What git does with the words of these Claude Code doesn't judge either, and it
/// shows no content.
const QUIET_GIT: &[&str] = &[
    "add",
    "branch",
    "check-ignore",
    "checkout",
    "clean",
    "commit",
    "fetch",
    "ls-files",
    "mv",
    "pull",
    "push",
    "reset",
    "restore",
    "rm",
    "stage",
    "stash",
    "status",
    "switch",
    "tag",
    "update-index",
];

/// What a command does with its words. Behind another program only those of a
/// program that is known count, for its options stand there too.
pub(crate) fn uses(words: &[String], is_behind_another: bool) -> Use {
    let Some((program, rest)) = words.split_first() else {
        return Use::default();
    };
    let name = name_of(program).to_ascii_lowercase();
    let name = name.as_str();
    let is = |list: &[&str]| list.contains(&name);
    // An option may hold a file behind its `=`.
    let operands = || {
        rest.iter()
            .filter(|word| !word.starts_with('-') || word.contains('='))
    };
    let has_option = |letters: &[char], long: &[&str]| {
        rest.iter().any(|word| match word.strip_prefix("--") {
            Some(word) => !word.is_empty() && long.iter().any(|long| word.starts_with(long)),
            None => word
                .strip_prefix('-')
                .is_some_and(|word| word.contains(letters)),
        })
    };
    let mut found = Use::default();
    if is(WRITERS) {
        found.writes.extend(operands().cloned());
    } else if is(COPIERS) {
        let operands: Vec<&String> = operands().collect();
        let names_target = has_option(&['t'], &["target"]);
        if let (Some((last, sources)), false) = (operands.split_last(), names_target) {
            found.writes.push((*last).clone());
            for source in sources {
                found.writes.push(format!("{last}/{}", name_of(source)));
            }
            // A link alone, or a single file, goes to the folder itself.
            let sources = if sources.is_empty() {
                &operands
            } else {
                sources
            };
            found
                .reads
                .extend(sources.iter().map(|word| (*word).clone()));
            if name == "mv" {
                found
                    .writes
                    .extend(sources.iter().map(|word| (*word).clone()));
            }
        } else {
            found
                .reads
                .extend(operands.iter().map(|word| (*word).clone()));
            found
                .writes
                .extend(operands.iter().map(|word| (*word).clone()));
        }
    } else if name == "find" || name == "fd" {
        let is_path = |word: &&String| !word.starts_with(['-', '(', '!']);
        found.reads.extend(rest.iter().take_while(is_path).cloned());
    } else if name == "git" {
        let verb = rest.iter().find(|word| !word.starts_with('-'));
        if !verb.is_some_and(|verb| QUIET_GIT.contains(&verb.as_str())) {
            for word in operands() {
                found.reads.push(word.clone());
                found
                    .reads
                    .extend(word.split_once(':').map(|(_, path)| path.to_owned()));
            }
        }
    } else if name == "dd" {
        for word in rest {
            match word.split_once('=') {
                Some(("if", file)) => found.reads.push(file.to_owned()),
                Some(("of", file)) => found.writes.push(file.to_owned()),
                _ => {}
            }
        }
    } else if is(READERS) {
        let gives_script = has_option(&['e', 'f'], &["expression", "regexp", "f", "from-file"]);
        let skip = usize::from(is(SCRIPTED) && !gives_script);
        found.reads.extend(operands().skip(skip).cloned());
        let writes = match name {
            "sed" => has_option(&['i'], &["in-place"]),
            "sort" => has_option(&['o'], &["output"]),
            _ => false,
        };
        if writes {
            found.writes.extend(operands().cloned());
        }
    } else if !is(OTHERS) && !is_behind_another {
        // A program that boxery doesn't know: only what looks like a file.
        let looks_like_file = |word: &&String| word.contains(['/', '.', '~']);
        found
            .reads
            .extend(operands().filter(looks_like_file).cloned());
    }
    found
}
