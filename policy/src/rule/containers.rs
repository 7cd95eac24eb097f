//! Containers that are no containers.

use super::{Examples, Rule};
use crate::command::Command;

pub(super) static RULE: Rule = Rule {
    name: "containers",
    about: "the container would hold the whole machine",
    patterns: &[],
    also: Some(holds_the_machine),
    examples: Examples {
        denied: &[
            "docker run --privileged x",
            "docker --debug run -it --privileged x",
            "podman run --name a --privileged=true x",
            "docker run -v /:/host x",
            "docker container run --volume=/:/host:ro x",
            "docker run --mount type=bind,source=/,target=/host x",
            "docker exec --privileged c sh",
            "docker create -v/:/host x",
        ],
        passed: &[
            "docker run -v /srv:/srv x",
            "docker run ubuntu ls --privileged",
            "docker ps",
            "docker run -v \"$PWD\":/src x",
            "docker exec c ls",
        ],
    },
};

/// Options of `docker run` that take no value (Docker 28); before a word that no option
/// takes as its value, the image is named and the rest is the container's own.
const FLAGS: &[&str] = &[
    "--detach",
    "--init",
    "--interactive",
    "--no-healthcheck",
    "--oom-kill-disable",
    "--privileged",
    "--publish-all",
    "--quiet",
    "--read-only",
    "--rm",
    "--sig-proxy",
    "--tty",
    "--use-api-socket",
    "--disable-content-trust",
];

fn holds_the_machine(program: &str, command: &Command<'_>) -> Option<(&'static str, usize)> {
    if !["docker", "podman", "nerdctl"].contains(&program) {
        return None;
    }
    let words: Vec<&str> = command.args.iter().map(|arg| arg.text.as_str()).collect();
    let verb = words
        .iter()
        .skip(1)
        .position(|word| ["run", "create", "exec"].contains(word))?
        + 1;
    let mut at = verb + 1;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        let (option, glued) = word
            .split_once('=')
            .map_or((*word, None), |(option, value)| (option, Some(value)));
        if option == "--privileged" && glued != Some("false") {
            return Some(("docker run --privileged", at));
        }
        let letters = option
            .strip_prefix('-')
            .filter(|letters| !letters.starts_with('-'));
        // The first letter of a cluster that takes a value takes the rest of it.
        let valued =
            letters.and_then(|letters| letters.find(|letter: char| !"ditqP".contains(letter)));
        let (takes_next, value) = match (letters, valued, glued) {
            (Some(letters), Some(start), _) => {
                let letter = letters[start..].chars().next().map_or(0, char::len_utf8);
                let rest = &word[1 + start + letter..];
                let value = rest.strip_prefix('=').unwrap_or(rest);
                let volume = letters[start..].starts_with('v');
                (rest.is_empty(), volume.then_some(value))
            }
            (Some(_), None, _) => (false, None),
            (None, _, Some(value)) => (false, Some(value)),
            (None, _, None) => (!FLAGS.contains(&option), None),
        };
        let value = if takes_next {
            words.get(at + 1).copied()
        } else {
            value
        };
        let last = if takes_next { at + 1 } else { at };
        let volume =
            option == "--volume" || valued.is_some_and(|start| word[1 + start..].starts_with('v'));
        if volume && value.is_some_and(|value| value.starts_with("/:")) {
            return Some(("docker run -v /:/", last));
        }
        if option == "--mount" && value.is_some_and(mounts_root) {
            return Some(("docker run -v /:/", last));
        }
        at = last + 1;
    }
    None
}

fn mounts_root(value: &str) -> bool {
    value
        .split(',')
        .any(|part| matches!(part, "source=/" | "src=/"))
}
