//! The one entry that an install writes: a command for the agent's shell.
//!
//! `BOXERY hook run AGENT || { … }`. The words in braces run when the binary is
//! gone, can't be started, crashed or was killed, all of which agents take for
//! "go on". They are POSIX, start no program, and refuse the call only while
//! something is pinned, so that a removed binary locks nobody out.

use camino::Utf8Path;

/// Stands in every entry and in nothing else: the words before it say what it is
/// for, this says whose it is.
const MARKER: &str = "s=$?; : boxery-hook-entry;";

/// A path that no shell word can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` can't stand in a command", .0.escape_debug())]
pub struct UnquotableError(pub String);

/// The command of the entry for `agent`, for any POSIX shell and zsh.
///
/// # Errors
///
/// When the binary's path holds NUL.
pub fn hook_command(binary: &Utf8Path, agent: &str) -> Result<String, UnquotableError> {
    let quote = |text: &str| {
        shlex::try_quote(text)
            .map(std::borrow::Cow::into_owned)
            .map_err(|_| UnquotableError(text.to_owned()))
    };
    let call = format!("{} hook run {agent}", quote(binary.as_str())?);
    let reason = quote(&format!(
        "boxery did not answer ({binary} hook run {agent}), and something is pinned to a VM, so nothing runs here. \
         Tell the user to repair or reinstall boxery; without it, removing this hook from the agent's settings \
         and the files in boxery's state folder pins/ unpins."
    ))?;
    // Status 2 is boxery's own denial. Then what needs no disk, which may never
    // answer. The folder is found as boxery itself finds it; without one nobody can
    // say that nothing is pinned. An unmatched `*` is an error in zsh alone; bash
    // takes `noglob` from the variable SHELLOPTS.
    Ok(format!(
        "{call} || {{ {MARKER} \
         if [ \"$s\" = 2 ]; then exit 2; fi; \
         b=${{BOXERY_VM-}}; d=; \
         case ${{XDG_STATE_HOME-}} in /*) d=$XDG_STATE_HOME;; *) case ${{HOME-}} in /*) d=$HOME/.local/state;; esac;; esac; \
         if [ -z \"$d\" ]; then b=1; fi; \
         d=$d/boxery/pins; \
         if [ -z \"$b\" ]; then \
         if [ -d \"$d\" ] && {{ [ ! -r \"$d\" ] || [ ! -x \"$d\" ]; }}; then b=1; fi; \
         if [ -n \"${{ZSH_VERSION-}}\" ]; then setopt nonomatch; else set +f; fi; \
         for f in \"$d\"/*; do if [ -e \"$f\" ] || [ -L \"$f\" ]; then b=1; fi; done; fi; \
         if [ -n \"$b\" ]; then echo {reason} >&2; exit 2; fi; \
         exit 0; }}"
    ))
}

/// Whether `command` is an entry of boxery's for `agent`, of this version or
/// another.
pub fn is_own(command: &str, agent: &str) -> bool {
    parse_own(command, agent).is_some()
}

/// The program and the arguments after the agent's name, when `command` is an
/// entry of boxery's: an absolute program, `hook run AGENT`, and the marker in
/// its place.
pub fn parse_own(command: &str, agent: &str) -> Option<(String, Vec<String>)> {
    let (call, rest) = command.split_once(&format!(" || {{ {MARKER}"))?;
    let mut words = shlex::split(call)?.into_iter();
    let program = words.next().filter(|program| program.starts_with('/'))?;
    for expected in ["hook", "run", agent] {
        words.next().filter(|word| word == expected)?;
    }
    rest.ends_with('}').then(|| (program, words.collect()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn entry(binary: &str) -> String {
        hook_command(Utf8Path::new(binary), "claude-code").expect("quotable")
    }

    #[rstest]
    #[case::plain("/usr/bin/boxery")]
    #[case::spaces("/opt/my tools/boxery")]
    #[case::quotes("/opt/it's \"here\"/boxery")]
    #[case::looks_like_the_end("/opt/a || { b/boxery")]
    #[case::renamed("/opt/bx")]
    fn our_own_entry_is_recognised(#[case] binary: &str) {
        assert_eq!(
            parse_own(&entry(binary), "claude-code"),
            Some((binary.to_owned(), Vec::new()))
        );
    }

    #[test]
    fn an_entry_of_another_version_with_more_words_is_recognised() {
        let call = "hook run claude-code";
        let more = format!("{call} --settings '/a b/fence.json'");
        let entry = entry("/usr/bin/boxery").replacen(call, &more, 1);
        let words = ["--settings", "/a b/fence.json"].map(str::to_owned);
        assert_eq!(
            parse_own(&entry, "claude-code"),
            Some(("/usr/bin/boxery".to_owned(), words.to_vec()))
        );
    }

    #[rstest]
    #[case::a_substring("/opt/boxery-lint/run.sh boxery hook run claude-code".to_owned())]
    #[case::without_the_marker("/usr/bin/boxery hook run claude-code".to_owned())]
    #[case::another_fallback("/usr/bin/boxery hook run claude-code || { exit 2; }".to_owned())]
    #[case::wrapped(format!("timeout 5 {}", entry("/usr/bin/boxery")))]
    #[case::wrapped_by_a_path(format!("/usr/bin/timeout 5 {}", entry("/usr/bin/boxery")))]
    #[case::the_marker_in_a_comment("/usr/bin/x # || { s=$?; : boxery-hook-entry; }".to_owned())]
    #[case::quoted(format!("echo '{}'", entry("/usr/bin/boxery")))]
    #[case::more_behind_it(format!("{}; rm x", entry("/usr/bin/boxery")))]
    #[case::relative(entry("boxery"))]
    #[case::nothing(String::new())]
    fn another_tools_entry_is_not_ours(#[case] command: String) {
        assert!(!is_own(&command, "claude-code"), "{command}");
    }

    #[test]
    fn an_entry_belongs_to_one_agent() {
        assert!(!is_own(&entry("/usr/bin/boxery"), "codex"));
    }
}
