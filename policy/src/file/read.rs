//! Reads one policy file's text: JSON with comments, with the habits of Go's decoder
//! that users' files rely on.

use jsonc_parser::ast::{Object, Value as Json};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions};

use super::check::check;
use super::content::{Content, Said, Value, both};
use super::error::PolicyError;
use super::key::{Key, Shape};

/// Comments and trailing commas, and nothing else beyond JSON.
const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// One file's words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    /// What it says.
    pub content: Content,
    /// What the user should know of it, a full line each.
    pub warnings: Vec<String>,
}

/// Parse the text of one policy file. `source` is how it is named to the user.
///
/// `None` when nothing stands in it, which Fence reads as its own defaults.
pub fn parse_policy(text: &str, source: &str) -> Result<Option<Parsed>, PolicyError> {
    let syntax = |problem: String| PolicyError::Syntax {
        file: source.to_owned(),
        problem,
    };
    if text.starts_with('\u{feff}') {
        return Err(syntax("it begins with a byte order mark".to_owned()));
    }
    if text.trim().is_empty() {
        return Ok(None);
    }
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &SYNTAX)
        .map_err(|error| syntax(error.to_string()))?;
    let root = match &parsed.value {
        Some(Json::Object(root)) => root,
        // `null` is nothing said, as everywhere.
        Some(Json::NullKeyword(_)) => return Ok(Some(Parsed::default())),
        Some(_) => return Err(syntax("it isn't an object".to_owned())),
        None => return Ok(None),
    };
    let mut reader = Reader {
        text,
        source,
        parsed: Parsed::default(),
    };
    reader.object("", root)?;
    let mut parsed = reader.parsed;
    check(&parsed.content, source)?;
    parsed.content.imply();
    parsed.warnings.extend(doubts(&parsed.content, source));
    Ok(Some(parsed))
}

struct Reader<'a> {
    text: &'a str,
    source: &'a str,
    parsed: Parsed,
}

impl Reader<'_> {
    fn object(&mut self, above: &str, object: &Object<'_>) -> Result<(), PolicyError> {
        for property in &object.properties {
            let name = property.name.as_str();
            let path = if above.is_empty() {
                name.to_owned()
            } else {
                format!("{above}.{name}")
            };
            if let Some(key) = Key::find(&path) {
                self.value(key, &property.value)?;
            } else if Key::is_group(&path) {
                match &property.value {
                    Json::Object(inner) => self.object(&path, inner)?,
                    Json::NullKeyword(_) => {}
                    other => return Err(self.wrong(&path, "an object", other)),
                }
            } else {
                let line = self.line(property.range.start);
                let meant = Key::near(&path)
                    .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                self.parsed.warnings.push(format!(
                    "{}:{line}: `{path}` is no key of a policy and says nothing{meant}",
                    self.source
                ));
            }
        }
        Ok(())
    }

    fn value(&mut self, key: Key, value: &Json<'_>) -> Result<(), PolicyError> {
        let path = key.path();
        let read = match (key.shape(), value) {
            // Nothing said; a list that stood before is taken back.
            (Shape::Texts | Shape::Numbers, Json::NullKeyword(_)) => {
                self.parsed.content.values.remove(&key);
                return Ok(());
            }
            (_, Json::NullKeyword(_)) => return Ok(()),
            (Shape::Text, Json::StringLit(text)) => Value::Text(self.said(text.value.to_string())),
            (Shape::Word(words), Json::StringLit(text)) => {
                let word = text.value.to_string();
                if !word.is_empty() && !words.contains(&word.as_str()) {
                    return Err(PolicyError::Value {
                        file: self.source.to_owned(),
                        key: path.to_owned(),
                        problem: format!("`{word}` is none of {}", quoted(words)),
                    });
                }
                Value::Text(self.said(word))
            }
            (Shape::Switch | Shape::OpenSwitch, Json::BooleanLit(switch)) => {
                Value::Switch(self.said(switch.value))
            }
            (Shape::Number, number) => Value::Number(self.said(self.number(path, number)?)),
            (Shape::Texts, Json::Array(array)) => {
                let mut entries = Vec::new();
                for element in &array.elements {
                    match element {
                        Json::StringLit(text) => entries.push(self.said(text.value.to_string())),
                        // Go makes an empty string of it.
                        Json::NullKeyword(_) => entries.push(self.said(String::new())),
                        other => return Err(self.wrong(path, "a list of strings", other)),
                    }
                }
                Value::Texts(both(entries, Vec::new()))
            }
            (Shape::Numbers, Json::Array(array)) => {
                let mut entries = Vec::new();
                for element in &array.elements {
                    entries.push(self.said(self.number(path, element)?));
                }
                Value::Numbers(both(entries, Vec::new()))
            }
            (Shape::Text | Shape::Word(_), other) => {
                return Err(self.wrong(path, "a string", other));
            }
            (Shape::Switch | Shape::OpenSwitch, other) => {
                return Err(self.wrong(path, "true or false", other));
            }
            (Shape::Texts, other) => return Err(self.wrong(path, "a list of strings", other)),
            (Shape::Numbers, other) => {
                return Err(self.wrong(path, "a list of whole numbers", other));
            }
        };
        // The last of two keys of the same name wins.
        self.parsed.content.values.insert(key, read);
        Ok(())
    }

    fn number(&self, path: &str, value: &Json<'_>) -> Result<i64, PolicyError> {
        match value {
            Json::NumberLit(number) => number
                .value
                .parse()
                .map_err(|_| self.wrong(path, "a whole number", value)),
            other => Err(self.wrong(path, "a whole number", other)),
        }
    }

    fn said<T>(&self, value: T) -> Said<T> {
        Said {
            value,
            source: self.source.to_owned(),
        }
    }

    fn wrong(&self, path: &str, want: &str, found: &Json<'_>) -> PolicyError {
        let kind = match found {
            Json::StringLit(_) => "a string".to_owned(),
            Json::NumberLit(number) => format!("the number {}", number.value),
            Json::BooleanLit(switch) => switch.value.to_string(),
            Json::Object(_) => "an object".to_owned(),
            Json::Array(_) => "a list".to_owned(),
            Json::NullKeyword(_) => "null".to_owned(),
        };
        PolicyError::Value {
            file: self.source.to_owned(),
            key: path.to_owned(),
            problem: format!(
                "it has to be {want}, and line {} has {kind}",
                self.line(found.range().start)
            ),
        }
    }

    fn line(&self, at: usize) -> usize {
        self.text[..at.min(self.text.len())].matches('\n').count() + 1
    }
}

fn quoted(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Rules that can't do what they look like.
fn doubts(content: &Content, source: &str) -> Vec<String> {
    let mut doubts = Vec::new();
    for key in [
        Key::Deny,
        Key::Allow,
        Key::AllowedCommands,
        Key::DeniedCommands,
    ] {
        for rule in content.texts(key) {
            let text = rule.value.as_str();
            let path = key.path();
            if text.trim().is_empty() {
                doubts.push(format!(
                    "{source}: a blank rule of `{path}` matches nothing"
                ));
            } else if text.contains(['|', ';', '&']) {
                doubts.push(format!(
                    "{source}: the rule `{text}` of `{path}` matches nothing: a rule is one command, without operators"
                ));
            } else if text.split_whitespace().any(|word| word == "*") {
                doubts.push(format!(
                    "{source}: the rule `{text}` of `{path}` means a `*` as it stands: rules have no wildcards, and match whatever follows them"
                ));
            }
        }
    }
    if !content.texts(Key::AllowedCommands).is_empty()
        && content.texts(Key::AllowedHosts).is_empty()
        && content.texts(Key::DeniedHosts).is_empty()
    {
        doubts.push(format!(
            "{source}: the `ssh` section does nothing without `ssh.allowedHosts` or `ssh.deniedHosts`"
        ));
    }
    doubts
}
