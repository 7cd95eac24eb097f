//! The rules that hold without being written (`command.useDefaults`), one file each.
//!
//! Invariant: a rule never allows. It can only find a reason to deny, so adding a rule
//! can never widen what an agent may do.
//!
//! A new rule is a file here and its line in [`RULES`].

mod containers;
mod disks;
mod kernel_modules;
mod namespaces;
mod power;
mod raw_copies;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::command::Command;
use crate::pattern::{Match, Pattern};

/// Every rule.
pub const RULES: &[&Rule] = &[
    &power::RULE,
    &kernel_modules::RULE,
    &disks::RULE,
    &raw_copies::RULE,
    &containers::RULE,
    &namespaces::RULE,
];

/// One rule: what it forbids, and how it is told.
#[derive(Debug)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// What it keeps from happening, as half a sentence.
    pub about: &'static str,
    /// Command lines in the form of `command.deny`.
    pub patterns: &'static [&'static str],
    /// What a pattern can't say: the words that decide, and the last one's index.
    also: Option<Also>,
    /// What it must and must not deny.
    pub examples: Examples,
}

/// Finds what a pattern can't say, given the program's name and the command.
type Also = fn(&str, &Command<'_>) -> Option<(&'static str, usize)>;

/// What a rule must and must not deny.
#[derive(Debug)]
pub struct Examples {
    /// Denied by it.
    pub denied: &'static [&'static str],
    /// Not denied by it.
    pub passed: &'static [&'static str],
}

static PATTERNS: LazyLock<BTreeMap<String, Vec<(&'static Rule, Pattern)>>> = LazyLock::new(|| {
    let mut patterns: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for rule in RULES {
        for pattern in rule.patterns.iter().filter_map(|text| Pattern::parse(text)) {
            patterns
                .entry(pattern.program.clone())
                .or_default()
                .push((*rule, pattern));
        }
    }
    patterns
});

/// The rule that forbids `command`, its words, and how surely.
pub(crate) fn find(program: &str, command: &Command<'_>) -> Option<(&'static Rule, String, Match)> {
    for (rule, pattern) in PATTERNS.get(program).into_iter().flatten() {
        match pattern.denies(command) {
            Match::No => {}
            found @ (Match::Maybe(_) | Match::Yes(_)) => {
                return Some((rule, pattern.written.clone(), found));
            }
        }
    }
    RULES.iter().find_map(|rule| {
        let (words, at) = rule.also?(program, command)?;
        Some((*rule, words.to_owned(), Match::Yes(at)))
    })
}
