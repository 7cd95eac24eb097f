//! The edit itself, on text.

use super::layout::{Layout, quote};
use super::tree::{self, Container, Hooks, Own};

/// What an install writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookEntry {
    /// The agent's name, as in `boxery hook run AGENT`.
    pub agent: &'static str,
    /// The command; see [`hook_command`](crate::hook_command).
    pub command: String,
    /// The events it is for.
    pub events: &'static [&'static str],
    /// After how many seconds the agent gives up on it.
    pub timeout: u32,
}

impl HookEntry {
    /// The settings file of someone who has no other settings.
    pub fn document(&self) -> String {
        // A document of our own making is always one that can be edited.
        fresh(self, 0).unwrap_or_default()
    }
}

/// What stays of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rest {
    /// This text.
    Text(String),
    /// Nothing: install made the file, and that many folders for it.
    NoFile {
        /// The folders, the innermost first.
        folders: usize,
    },
}

/// The content of a file that install makes, `folders` of which it makes too:
/// their number is told by the line breaks at its end.
pub(super) fn fresh(entry: &HookEntry, folders: usize) -> Result<String, String> {
    let text = install_into(&document(entry), entry)?;
    Ok(format!("{text}{}", "\n".repeat(folders + 1)))
}

/// `text` with the entry in it, once for each of its events.
pub(super) fn install(text: &str, entry: &HookEntry) -> Result<String, String> {
    if text.trim().is_empty() {
        // What was there stands in front, where nothing else of ours can stand.
        return Ok(format!("{text}{}", install_into(&document(entry), entry)?));
    }
    install_into(text, entry)
}

fn install_into(text: &str, entry: &HookEntry) -> Result<String, String> {
    let mut text = text.to_owned();
    // Each goes into the first slot, so the last comes first.
    for event in entry.events.iter().rev() {
        text = insert(&text, event, entry)?;
    }
    while let Some(better) = correct_one(&text, entry)? {
        text = better;
    }
    Ok(text)
}

/// An object with the last event's hook in it and nothing else.
fn document(entry: &HookEntry) -> String {
    let layout = Layout::fresh();
    let hooks = hooks_object(&layout, "  ", entry.events.last().unwrap_or(&""), entry);
    layout.container("", ['{', '}'], &Layout::member("hooks", &hooks))
}

fn hooks_object(layout: &Layout, base: &str, event: &str, entry: &HookEntry) -> String {
    let groups = groups(layout, &layout.below(base), entry);
    layout.container(base, ['{', '}'], &Layout::member(event, &groups))
}

fn groups(layout: &Layout, base: &str, entry: &HookEntry) -> String {
    let group = layout.group(&layout.below(base), &entry.command, entry.timeout);
    layout.container(base, ['[', ']'], &group)
}

/// Brings one of our own entries up to date, or takes one out that is too many.
fn correct_one(text: &str, entry: &HookEntry) -> Result<Option<String>, String> {
    let hooks = tree::read_hooks(text, entry.agent)?;
    for (index, own) in hooks.own.iter().enumerate() {
        let is_wanted = entry
            .events
            .contains(&hooks.events[own.event].name.as_str());
        let is_second = hooks.own[..index]
            .iter()
            .any(|other| other.event == own.event && !other.is_narrowed);
        if !is_wanted || is_second || own.is_narrowed {
            // Others are in by now, so this never empties the file.
            return match without(text, &hooks, own) {
                Rest::Text(rest) => Ok(Some(rest)),
                Rest::NoFile { .. } => Err("it holds no event of the entry".to_owned()),
            };
        }
        let timeout = entry.timeout.to_string();
        match &own.timeout {
            Some((range, old)) if own.is_plain => {
                if *old != timeout {
                    return Ok(Some(splice(text, range.clone(), &timeout)));
                }
                if own.command.1 != entry.command {
                    let command = quote(&entry.command);
                    return Ok(Some(splice(text, own.command.0.clone(), &command)));
                }
            }
            _ => {
                let layout = layout_of(text, &hooks);
                let gap = own.handlers.gap(text).unwrap_or_default();
                let base = layout.base(gap, &text[..own.range.start]);
                let handler = layout.handler(&base, &entry.command, entry.timeout);
                return Ok(Some(splice(text, own.range.clone(), &handler)));
            }
        }
    }
    Ok(None)
}

/// The entry into the first slot of the event's list, making what is missing.
fn insert(text: &str, event: &str, entry: &HookEntry) -> Result<String, String> {
    let hooks = tree::read_hooks(text, entry.agent)?;
    let index = hooks.events.iter().position(|found| found.name == event);
    if let Some(index) = index
        && hooks
            .own
            .iter()
            .any(|own| own.event == index && !own.is_narrowed)
    {
        return Ok(text.to_owned());
    }
    let layout = layout_of(text, &hooks);
    let (container, make): (&Container, &dyn Fn(&str) -> String) = match (index, &hooks.object) {
        (Some(index), _) => (&hooks.events[index].groups, &|base| {
            layout.group(base, &entry.command, entry.timeout)
        }),
        (None, Some((_, object))) => (object, &|base| {
            Layout::member(event, &groups(&layout, base, entry))
        }),
        (None, None) => (&hooks.root, &|base| {
            Layout::member("hooks", &hooks_object(&layout, base, event, entry))
        }),
    };
    let at = container.inner.start;
    let new = match container.gap(text) {
        Some(gap) => {
            let inner = make(&layout.base(gap, &text[..at]));
            format!("{gap}{inner},")
        }
        // No white space: by that uninstall knows that it was there, empty.
        None => make(&layout.base("", &text[..at])),
    };
    Ok(splice(text, at..at, &new))
}

fn layout_of(text: &str, hooks: &Hooks) -> Layout {
    let inner = &text[hooks.root.inner.clone()];
    let example = if inner.trim().is_empty() {
        None
    } else {
        Some(inner)
    };
    Layout::of(text, example, hooks.root.gap(text))
}

fn splice(text: &str, range: std::ops::Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}

/// `text` without any entry of the agent's.
pub(super) fn uninstall(text: &str, agent: &str) -> Result<Rest, String> {
    if text.trim().is_empty() {
        return Ok(Rest::Text(text.to_owned()));
    }
    let mut text = text.to_owned();
    loop {
        let hooks = tree::read_hooks(&text, agent)?;
        let Some(own) = hooks.own.first() else {
            return Ok(Rest::Text(text));
        };
        match without(&text, &hooks, own) {
            Rest::Text(rest) if rest.trim().is_empty() => return Ok(Rest::Text(rest)),
            Rest::Text(rest) => text = rest,
            nothing @ Rest::NoFile { .. } => return Ok(nothing),
        }
    }
}

/// `text` without one of our own handlers, and without what held only it and was
/// made for it.
fn without(text: &str, hooks: &Hooks, own: &Own) -> Rest {
    let cut = |container: &Container, index: usize| {
        Rest::Text(splice(text, container.range_without(text, index), ""))
    };
    // Made by install: white space behind the bracket, and nothing else in it.
    let is_made = |container: &Container| {
        container.children.len() == 1 && container.gap(text).is_some_and(|gap| !gap.is_empty())
    };
    if !own.is_alone {
        return cut(&own.handlers, own.handler);
    }
    let groups = &hooks.events[own.event].groups;
    if !is_made(groups) {
        return cut(groups, own.group);
    }
    let Some((index, object)) = &hooks.object else {
        return cut(groups, own.group);
    };
    if !is_made(object) {
        return cut(object, own.event);
    }
    if !is_made(&hooks.root) {
        return cut(&hooks.root, *index);
    }
    let (before, after) = (
        &text[..hooks.root.inner.start - 1],
        &text[hooks.root.inner.end + 1..],
    );
    match after.chars().filter(|c| *c == '\n').count() {
        0 => Rest::Text(format!("{before}{after}")),
        breaks => Rest::NoFile {
            folders: breaks - 1,
        },
    }
}

/// Whether the entry is in `text` as an install leaves it.
pub(super) fn is_installed(text: &str, entry: &HookEntry) -> bool {
    install(text, entry).is_ok_and(|same| same == text)
}

/// Whether any entry of the agent's is in `text`.
pub(super) fn has_own(text: &str, agent: &str) -> Result<bool, String> {
    if text.trim().is_empty() {
        return Ok(false);
    }
    Ok(!tree::read_hooks(text, agent)?.own.is_empty())
}
