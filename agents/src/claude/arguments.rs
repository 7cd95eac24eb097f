//! What Claude Code's command line adds to its settings.

/// The settings in an argument list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// `--settings`: files, or JSON.
    pub(crate) settings: Vec<String>,
    /// `--allowedTools`.
    pub(crate) allow: Vec<String>,
    /// `--disallowedTools`.
    pub(crate) deny: Vec<String>,
    /// `--plugin-dir`.
    pub(crate) plugin_folders: Vec<String>,
    /// `--agents`: JSON.
    pub(crate) agents: Vec<String>,
    /// `--add-dir`.
    pub(crate) more_folders: Vec<String>,
    /// `--setting-sources`, when it is given.
    pub(crate) sources: Option<Vec<String>>,
}

impl Arguments {
    /// Reads what it knows; a flag it doesn't know takes nothing away from it.
    pub(crate) fn parse(arguments: &[String]) -> Self {
        let mut parsed = Self::default();
        let mut rest = arguments.iter().skip(1).peekable();
        while let Some(argument) = rest.next() {
            let (flag, inline) = match argument.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
                _ => (argument.as_str(), None),
            };
            match flag {
                "--allowedTools" | "--allowed-tools" | "--disallowedTools"
                | "--disallowed-tools" => {
                    let mut values: Vec<String> = inline.into_iter().collect();
                    if values.is_empty() {
                        while let Some(value) = rest.next_if(|value| !value.starts_with('-')) {
                            values.push(value.clone());
                        }
                    }
                    let rules = values.iter().flat_map(|value| split_rules(value));
                    if flag.starts_with("--a") {
                        parsed.allow.extend(rules);
                    } else {
                        parsed.deny.extend(rules);
                    }
                }
                "--settings" => parsed
                    .settings
                    .extend(inline.or_else(|| rest.next().cloned())),
                "--plugin-dir" => {
                    parsed
                        .plugin_folders
                        .extend(inline.or_else(|| rest.next().cloned()));
                }
                "--agents" => parsed
                    .agents
                    .extend(inline.or_else(|| rest.next().cloned())),
                "--add-dir" => {
                    parsed.more_folders.extend(inline);
                    while let Some(folder) = rest.next_if(|value| !value.starts_with('-')) {
                        parsed.more_folders.push(folder.clone());
                    }
                }
                "--setting-sources" => {
                    let value = inline.or_else(|| rest.next().cloned()).unwrap_or_default();
                    parsed.sources = Some(
                        value
                            .split(',')
                            .map(|word| word.trim().to_owned())
                            .collect(),
                    );
                }
                _ => {}
            }
        }
        parsed
    }
}

/// A list of rules with commas or spaces between them; inside parentheses both
/// belong to the rule.
fn split_rules(list: &str) -> Vec<String> {
    let mut rules = vec![String::new()];
    let mut depth = 0_usize;
    for c in list.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' | ' ' | '\t' | '\n' if depth == 0 => {
                rules.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(rule) = rules.last_mut() {
            rule.push(c);
        }
    }
    rules.retain(|rule| !rule.is_empty());
    rules
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::one(&["claude", "--allowedTools", "Bash(git:*)"], &["Bash(git:*)"], &[])]
    #[case::spaces(&["claude", "--allowed-tools", "Bash(git log *) Edit"], &["Bash(git log *)", "Edit"], &[])]
    #[case::commas(&["claude", "--allowedTools=Bash(a, b),Read"], &["Bash(a, b)", "Read"], &[])]
    #[case::several(&["claude", "--disallowedTools", "Bash(a)", "Bash(b c)", "-p", "x"], &[], &["Bash(a)", "Bash(b c)"])]
    #[case::twice(&["claude", "--disallowedTools", "A", "--disallowed-tools", "B"], &[], &["A", "B"])]
    #[case::none(&["claude", "-p", "--allowedTools"], &[], &[])]
    fn rules_are_found_in_every_form(
        #[case] arguments: &[&str],
        #[case] allow: &[&str],
        #[case] deny: &[&str],
    ) {
        let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
        let parsed = Arguments::parse(&arguments);
        assert_eq!(
            (parsed.allow, parsed.deny),
            (
                allow.iter().map(|a| (*a).to_owned()).collect(),
                deny.iter().map(|a| (*a).to_owned()).collect(),
            )
        );
    }
}
