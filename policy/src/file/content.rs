//! The values of a policy, each with the file that says it.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::key::{Key, Meaning, Section, Shape};

/// A value and who says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said<T> {
    /// The value.
    pub value: T,
    /// The file or template, as it is told to the user.
    pub source: String,
}

/// What stands at a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// [`Shape::Text`] and [`Shape::Word`].
    Text(Said<String>),
    /// [`Shape::Switch`] and [`Shape::OpenSwitch`].
    Switch(Said<bool>),
    /// [`Shape::Number`].
    Number(Said<i64>),
    /// [`Shape::Texts`].
    Texts(Vec<Said<String>>),
    /// [`Shape::Numbers`].
    Numbers(Vec<Said<i64>>),
}

/// A policy: one file, or several merged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// Only what is said somewhere.
    pub values: BTreeMap<Key, Value>,
}

impl Content {
    /// The entries of a list.
    pub fn texts(&self, key: Key) -> &[Said<String>] {
        match self.values.get(&key) {
            Some(Value::Texts(entries)) => entries,
            _ => &[],
        }
    }

    /// The numbers of a list.
    pub fn numbers(&self, key: Key) -> &[Said<i64>] {
        match self.values.get(&key) {
            Some(Value::Numbers(entries)) => entries,
            _ => &[],
        }
    }

    /// A switch, if something is said.
    pub fn switch(&self, key: Key) -> Option<bool> {
        match self.values.get(&key) {
            Some(Value::Switch(said)) => Some(said.value),
            _ => None,
        }
    }

    /// A text, if one is said and not empty.
    pub fn text(&self, key: Key) -> Option<&str> {
        match self.values.get(&key) {
            Some(Value::Text(said)) if !said.value.is_empty() => Some(&said.value),
            _ => None,
        }
    }

    /// This policy with `child`'s words added, as Fence merges.
    #[must_use]
    pub fn merged_with(mut self, child: Self) -> Self {
        for (key, nearer) in child.values {
            let merged = match (self.values.remove(&key), nearer) {
                (None, nearer) => nearer,
                (Some(farther), nearer) => merge(key.shape(), farther, nearer),
            };
            self.values.insert(key, merged);
        }
        self.imply();
        self
    }

    /// `strictDenyRead` says `defaultDenyRead` too.
    pub(crate) fn imply(&mut self) {
        if let Some(Value::Switch(strict)) = self.values.get(&Key::StrictDenyRead)
            && strict.value
        {
            let implied = Value::Switch(strict.clone());
            self.values.insert(Key::DefaultDenyRead, implied);
        }
    }

    /// The sections in which something is said that would have to be enforced where
    /// commands run.
    pub fn sections(&self) -> Vec<Section> {
        let mut sections: Vec<Section> = self
            .values
            .iter()
            .filter(|(key, value)| restricts(**key, value))
            .filter_map(|(key, _)| match key.meaning() {
                Meaning::Section(section) => Some(section),
                Meaning::Command | Meaning::None | Meaning::File => None,
            })
            .collect();
        // Everything may be reached, and nothing is denied.
        let open = self
            .texts(Key::AllowedDomains)
            .iter()
            .any(|domain| domain.value == "*");
        if open && self.texts(Key::DeniedDomains).is_empty() {
            sections.retain(|section| *section != Section::Network);
        }
        sections.sort_unstable();
        sections.dedup();
        sections
    }

    /// The policy as a file would say it, without `extends`.
    pub fn to_json(&self) -> Json {
        let mut root = Map::new();
        for (key, value) in &self.values {
            if key.meaning() == Meaning::File {
                continue;
            }
            let value = match value {
                Value::Text(said) => json!(said.value),
                Value::Switch(said) => json!(said.value),
                Value::Number(said) => json!(said.value),
                Value::Texts(entries) => {
                    json!(entries.iter().map(|said| &said.value).collect::<Vec<_>>())
                }
                Value::Numbers(entries) => {
                    json!(entries.iter().map(|said| said.value).collect::<Vec<_>>())
                }
            };
            let mut names = key.path().split('.').peekable();
            let mut object = &mut root;
            while let Some(name) = names.next() {
                if names.peek().is_none() {
                    object.insert(name.to_owned(), value);
                    break;
                }
                let entry = object
                    .entry(name)
                    .or_insert_with(|| Json::Object(Map::new()));
                let Json::Object(inner) = entry else { break };
                object = inner;
            }
        }
        Json::Object(root)
    }

    /// Each value with who says it, one line each.
    pub fn origins(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (key, value) in &self.values {
            if key.meaning() == Meaning::File {
                continue;
            }
            let path = key.path();
            match value {
                Value::Text(said) => {
                    lines.push(format!("{path} = {:?}: {}", said.value, said.source));
                }
                Value::Switch(said) => {
                    lines.push(format!("{path} = {}: {}", said.value, said.source));
                }
                Value::Number(said) => {
                    lines.push(format!("{path} = {}: {}", said.value, said.source));
                }
                Value::Texts(entries) => {
                    lines.extend(
                        entries
                            .iter()
                            .map(|said| format!("{path}: {:?}: {}", said.value, said.source)),
                    );
                }
                Value::Numbers(entries) => {
                    lines.extend(
                        entries
                            .iter()
                            .map(|said| format!("{path}: {}: {}", said.value, said.source)),
                    );
                }
            }
        }
        lines
    }

    /// Keys that say something which has no meaning on a Linux VM.
    pub fn without_meaning(&self) -> Vec<&'static str> {
        self.values
            .keys()
            .filter(|key| key.meaning() == Meaning::None)
            .map(|key| key.path())
            .collect()
    }
}

/// Whether a value takes something away that a run has without a policy.
fn restricts(key: Key, value: &Value) -> bool {
    match value {
        // Judged by the text, which is done, or by the real words, which isn't.
        Value::Text(said) if key == Key::RuntimeExecPolicy => said.value == "argv",
        Value::Text(said) if key == Key::DevicesMode => said.value == "minimal",
        Value::Text(said) => !said.value.is_empty(),
        // What allows takes nothing away when it stands alone.
        Value::Switch(_) if matches!(key, Key::AllowGitConfig | Key::AllowLocalBinding) => false,
        Value::Switch(said) if key == Key::AllowLocalOutbound => !said.value,
        Value::Switch(said) => said.value,
        Value::Number(said) => said.value != 0,
        Value::Texts(entries) => !entries.is_empty() && key != Key::DevicesAllow,
        Value::Numbers(entries) => !entries.is_empty() && key != Key::AllowLocalOutboundPorts,
    }
}

fn merge(shape: Shape, farther: Value, nearer: Value) -> Value {
    match (shape, farther, nearer) {
        (Shape::Texts, Value::Texts(farther), Value::Texts(nearer)) => {
            Value::Texts(both(farther, nearer))
        }
        (Shape::Numbers, Value::Numbers(farther), Value::Numbers(nearer)) => {
            Value::Numbers(both(farther, nearer))
        }
        (Shape::Switch, Value::Switch(farther), Value::Switch(nearer)) => {
            Value::Switch(if farther.value { farther } else { nearer })
        }
        (Shape::Number, Value::Number(farther), Value::Number(nearer)) => {
            Value::Number(if nearer.value == 0 { farther } else { nearer })
        }
        (Shape::Text | Shape::Word(_), Value::Text(farther), Value::Text(nearer)) => {
            Value::Text(if nearer.value.is_empty() {
                farther
            } else {
                nearer
            })
        }
        (_, _, nearer) => nearer,
    }
}

/// Both lists' entries, each once.
pub(crate) fn both<T: PartialEq>(farther: Vec<Said<T>>, nearer: Vec<Said<T>>) -> Vec<Said<T>> {
    let mut entries: Vec<Said<T>> = Vec::new();
    for said in farther.into_iter().chain(nearer) {
        if !entries.iter().any(|entry| entry.value == said.value) {
            entries.push(said);
        }
    }
    entries
}
