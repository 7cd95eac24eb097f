//! Claude Code's permission rules, judged on the text that the model wrote.
//!
//! Claude Code judges a rewritten call by its new text, which every rule about
//! the old one misses. So they are judged here, with opposite errors: a rule
//! that denies or asks matches more than Claude Code would, a rule that allows
//! only what its documentation says (2.1: exact text, a trailing `:*` or ` *`
//! for a prefix of whole words, `*` for anything; each command of a list must
//! match on its own). Rules about files are in [`super::files`].

use std::cell::OnceCell;

use boxery_router::UserVerdict;
use camino::{Utf8Path, Utf8PathBuf};

use super::files::{Access, Files, Folders, Touched};
use super::sources::{Scope, Sources, find};
use crate::Surroundings;
use crate::payload::Node;
use crate::shell;

/// The rules of one session.
#[derive(Debug)]
pub(crate) struct ClaudeRules {
    deny: Vec<Rule>,
    ask: Vec<Rule>,
    allow: Vec<Rule>,
    folders: Folders,
    /// Settings that may hold rules that can't be read.
    unknown: Vec<String>,
}

#[derive(Debug)]
struct Rule {
    /// As the user wrote it, and where.
    name: String,
    parsed: Parsed,
}

#[derive(Debug, PartialEq, Eq)]
enum Parsed {
    /// Every call of the tools that the name, maybe with `*` in it, stands for.
    Tool(String),
    /// The calls of a tool whose command matches.
    Command(String, String),
    /// These files, by a tool for files.
    Files(Files),
    /// Not in the form of a rule.
    Broken,
}

impl ClaudeRules {
    pub(crate) fn read(sources: &Sources, places: &Surroundings<'_>) -> Self {
        let folders = folders(places);
        let mut rules = Self {
            deny: Vec::new(),
            ask: Vec::new(),
            allow: Vec::new(),
            folders: Folders::default(),
            unknown: Vec::new(),
        };
        let managed_only = sources.all.iter().any(|source| {
            let only = |node: &Node| {
                find(node, &["allowManagedPermissionRulesOnly"]).is_some_and(Node::is_true)
            };
            source.scope == Scope::Managed && source.content.as_ref().is_ok_and(only)
        });
        for source in &sources.all {
            let place = source.place.as_str();
            let content = match &source.content {
                Ok(content) => content,
                Err(problem) => {
                    rules.unknown.push(format!("{place} ({problem})"));
                    continue;
                }
            };
            let Some(permissions) = content.get("permissions") else {
                continue;
            };
            if permissions.members().is_none() {
                rules
                    .unknown
                    .push(format!("{place} (`permissions` isn't an object)"));
                continue;
            }
            // Claude Code 2.1 ignores what a project allows until its user trusts it.
            let counts = source.is_read
                && (!managed_only || source.scope == Scope::Managed)
                && (source.scope != Scope::Project || sources.project_is_trusted);
            for (key, list) in [("deny", &mut rules.deny), ("ask", &mut rules.ask)] {
                list.extend(read_list(permissions.get(key), place, &folders));
            }
            if counts {
                rules
                    .allow
                    .extend(read_list(permissions.get("allow"), place, &folders));
            }
        }
        let from_arguments = |rules: &[String], flag: &str| -> Vec<Rule> {
            rules
                .iter()
                .map(|rule| Rule::parse(rule, flag, &folders))
                .collect()
        };
        let arguments = &sources.arguments;
        rules
            .deny
            .extend(from_arguments(&arguments.deny, "--disallowedTools"));
        if !managed_only {
            rules
                .allow
                .extend(from_arguments(&arguments.allow, "--allowedTools"));
        }
        rules.folders = folders;
        rules
    }
}

/// Where the paths of rules and commands begin, with links followed and not.
fn folders(places: &Surroundings<'_>) -> Folders {
    let mut roots: Vec<Utf8PathBuf> = Vec::new();
    for folder in [places.folder, places.project].into_iter().flatten() {
        let real = folder.canonicalize_utf8().ok();
        for folder in std::iter::once(folder.to_owned()).chain(real) {
            if !roots.contains(&folder) {
                roots.push(folder);
            }
        }
    }
    Folders {
        home: places.home.to_owned(),
        roots,
    }
}

fn read_list(list: Option<&Node>, place: &str, folders: &Folders) -> Vec<Rule> {
    let broken = |what: &str| Rule {
        name: format!("{what} in {place}"),
        parsed: Parsed::Broken,
    };
    match list {
        None | Some(Node::Null) => Vec::new(),
        Some(Node::List(list)) => list
            .iter()
            .map(|rule| match rule {
                Node::Text(text) => Rule::parse(text, place, folders),
                Node::Null | Node::Bool(_) | Node::Number | Node::List(_) | Node::Object(_) => {
                    broken("a rule that is no string")
                }
            })
            .collect(),
        Some(_) => vec![broken("a list of rules that is no list")],
    }
}

impl Rule {
    fn parse(text: &str, place: &str, folders: &Folders) -> Self {
        let file = Utf8Path::new(place.strip_prefix("--settings ").unwrap_or(place));
        let settings = file.parent().filter(|folder| folder.is_absolute());
        Self {
            name: format!("{text} ({place})"),
            parsed: Parsed::parse(text, settings, folders),
        }
    }
}

impl Parsed {
    fn parse(text: &str, settings: Option<&Utf8Path>, folders: &Folders) -> Self {
        let text = text.trim();
        let is_name = |name: &str| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "_-.*:".contains(c))
        };
        match text.split_once('(') {
            None if is_name(text) => Self::Tool(text.to_owned()),
            Some((name, rest)) if is_name(name) => match rest.strip_suffix(')') {
                // Claude Code 2.1.332 takes these for the tool, which no command is.
                Some("" | "*" | ":*") => Self::Tool(name.to_owned()),
                pattern if let Some(access) = Access::of_tool(name) => {
                    let pattern = pattern.unwrap_or(rest);
                    Self::Files(Files::parse(access, pattern, settings, folders))
                }
                Some(pattern) => Self::Command(name.to_owned(), pattern.to_owned()),
                // About another tool all the same.
                None if !speaks_of_shell(name) => Self::Command(name.to_owned(), rest.to_owned()),
                None => Self::Broken,
            },
            None | Some(_) => Self::Broken,
        }
    }
}

fn speaks_of_shell(name: &str) -> bool {
    ["Bash", "Monitor"]
        .into_iter()
        .any(|tool| names_tool(name, tool))
}

/// Whether the name in a rule, maybe with `*` in it, is that tool's.
fn names_tool(name: &str, tool: &str) -> bool {
    // Claude Code judges a Monitor's command by the rules of Bash too.
    let names: &[&str] = match tool {
        "Monitor" => &["Monitor", "Bash"],
        _ => &[tool],
    };
    names
        .iter()
        .any(|tool| matches_glob(name, tool) || name.eq_ignore_ascii_case(tool))
}

impl ClaudeRules {
    pub(crate) fn judge(&self, tool: &str, command: &str) -> UserVerdict {
        let reading = Reading::of(command, &self.folders);
        let stops = |rules: &[Rule]| {
            rules
                .iter()
                .find(|rule| reading.may_match(rule, tool))
                .map(|rule| rule.name.clone())
        };
        if let Some(rule) = stops(&self.deny) {
            return UserVerdict::Deny { rule };
        }
        if let Some(rule) = stops(&self.ask) {
            return UserVerdict::Ask { rule };
        }
        if let Some(place) = self.unknown.first() {
            return UserVerdict::Ask {
                rule: format!("the rules in {place}, which boxery can't read"),
            };
        }
        match self.allowing(tool, command) {
            Some(rule) => UserVerdict::Allow { rule },
            None => UserVerdict::None,
        }
    }
}

impl ClaudeRules {
    /// The rule that allows the text; of several, the first command's.
    fn allowing(&self, tool: &str, command: &str) -> Option<String> {
        // An allow rule counts only for the tool whose name it spells.
        let spells = |name: &str| name == tool || (tool == "Monitor" && name == "Bash");
        let everything = self.allow.iter().find(|rule| match &rule.parsed {
            Parsed::Tool(name) => spells(name),
            Parsed::Command(..) | Parsed::Files(_) | Parsed::Broken => false,
        });
        if let Some(rule) = everything {
            return Some(rule.name.clone());
        }
        let rule_for = |words: &Vec<String>| {
            self.allow.iter().find(|rule| match &rule.parsed {
                Parsed::Command(name, pattern) => {
                    spells(name)
                        && unwrapped(words)
                            .iter()
                            .any(|words| allows(pattern, &words.join(" ")))
                }
                Parsed::Tool(_) | Parsed::Files(_) | Parsed::Broken => false,
            })
        };
        let commands = shell::parse_plain(command).ok()?;
        let rules: Option<Vec<&Rule>> = commands.iter().map(rule_for).collect();
        Some(rules?.first()?.name.clone())
    }
}

/// A text as a rule that stops it sees it.
struct Reading<'a> {
    text: &'a str,
    folders: &'a Folders,
    /// Found out only when a rule is about files.
    touched: OnceCell<Touched>,
    whole: String,
    /// `None` when it can't be read at all.
    commands: Option<Vec<String>>,
}

impl<'a> Reading<'a> {
    fn of(text: &'a str, folders: &'a Folders) -> Self {
        let commands = match shell::find_commands(text) {
            Ok(found) => Some(found.commands),
            Err(shell::Unclear) => shell::split_crudely(text),
        };
        Self {
            text,
            folders,
            touched: OnceCell::new(),
            whole: text.trim().to_owned(),
            commands,
        }
    }

    fn may_match(&self, rule: &Rule, tool: &str) -> bool {
        match &rule.parsed {
            Parsed::Broken => true,
            Parsed::Tool(name) => names_tool(name, tool),
            Parsed::Files(files) => self
                .touched
                .get_or_init(|| Touched::of(self.text, self.folders))
                .may_be(files),
            Parsed::Command(name, pattern) => {
                names_tool(name, tool)
                    && self.commands.as_ref().is_none_or(|commands| {
                        std::iter::once(&self.whole)
                            .chain(commands)
                            .any(|command| stops(pattern, command))
                    })
            }
        }
    }
}

/// Whether a rule that stops matches, in the widest reading of its pattern.
fn stops(pattern: &str, command: &str) -> bool {
    let unescaped = pattern.replace(r"\(", "(").replace(r"\)", ")");
    let spaced = unescaped.split_whitespace().collect::<Vec<_>>().join(" ");
    [pattern, &unescaped, &spaced].into_iter().any(|pattern| {
        let prefix = pattern
            .strip_suffix(":*")
            .or_else(|| pattern.strip_suffix(" *"));
        prefix.is_some_and(|prefix| {
            let prefix = prefix.trim_end();
            begins_with_words(prefix, command) || matches_glob(&format!("{prefix} *"), command)
        }) || matches_glob(pattern, command)
    })
}

/// Whether an allow rule matches, as Claude Code documents it.
fn allows(pattern: &str, command: &str) -> bool {
    let prefix = pattern
        .strip_suffix(":*")
        .or_else(|| pattern.strip_suffix(" *"));
    match prefix {
        Some(prefix) if !prefix.contains('*') => begins_with_words(prefix, command),
        _ => matches_glob(pattern, command),
    }
}

fn begins_with_words(prefix: &str, command: &str) -> bool {
    command
        .strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

/// Whether `*` for any text, and itself for any other character, spells `text`.
fn matches_glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}

/// The words, and those behind the wrappers that Claude Code looks through:
/// `timeout`, `time`, `nice`, `nohup`, `stdbuf`, and `xargs` without options.
fn unwrapped(words: &[String]) -> Vec<&[String]> {
    let mut all = vec![words];
    let mut rest = words;
    while let Some((program, arguments)) = rest.split_first() {
        let is_number = |word: &String| {
            let digits = word.trim_end_matches(['s', 'm', 'h', 'd']);
            !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
        };
        let skip = match program.as_str() {
            "timeout" if arguments.first().is_some_and(is_number) => 1,
            "nice" if arguments.first().is_some_and(|word| word == "-n") => 2,
            "stdbuf" => arguments
                .iter()
                .take_while(|word| {
                    word.starts_with("-o") || word.starts_with("-e") || word.starts_with("-i")
                })
                .count(),
            "time" | "nice" | "nohup" | "xargs" => 0,
            _ => break,
        };
        match arguments.get(skip..) {
            Some(inner) if inner.first().is_some_and(|word| !word.starts_with('-')) => {
                rest = inner;
                all.push(inner);
            }
            _ => break,
        }
    }
    all
}
