//! JSON as agents send it, read so strictly that no two readers can disagree.
//!
//! Two programs that read `{"command":"a","command":"b"}` may each pick another
//! value; the hook would judge one and the agent run the other. So a key that
//! stands twice is an error at every level, and so are lone surrogates and
//! anything behind the document.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// One JSON value. Numbers keep no value: nothing here depends on one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Number,
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    /// The value under `key`, when this is an object that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Self::Object(members) => members
                .iter()
                .find_map(|(name, value)| (name == key).then_some(value)),
            Self::Null | Self::Bool(_) | Self::Number | Self::Text(_) | Self::List(_) => None,
        }
    }

    /// The text, when this is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Bool(_) | Self::Number | Self::List(_) | Self::Object(_) => None,
        }
    }

    /// The elements, when this is a list.
    pub(crate) fn list(&self) -> Option<&[Node]> {
        match self {
            Self::List(list) => Some(list),
            Self::Null | Self::Bool(_) | Self::Number | Self::Text(_) | Self::Object(_) => None,
        }
    }

    /// The members, when this is an object.
    pub(crate) fn members(&self) -> Option<&[(String, Node)]> {
        match self {
            Self::Object(members) => Some(members),
            Self::Null | Self::Bool(_) | Self::Number | Self::Text(_) | Self::List(_) => None,
        }
    }

    /// Whether this is `true`.
    pub(crate) fn is_true(&self) -> bool {
        *self == Self::Bool(true)
    }
}

/// Reads a [`Node`]; a key that stands twice is an error.
struct Unique(Node);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor).map(Unique)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Number)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Number)
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(node)) = access.next_element()? {
            list.push(node);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut members: Vec<(String, Node)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        while let Some(key) = access.next_key::<String>()? {
            let Unique(node) = access.next_value()?;
            if !seen.insert(key.clone()) {
                return Err(A::Error::custom(format_args!(
                    "the key `{key}` stands twice"
                )));
            }
            members.push((key, node));
        }
        Ok(Node::Object(members))
    }
}

/// The text of a payload: UTF-8, with or without a byte order mark.
pub(crate) fn parse_text(payload: &[u8]) -> Result<&str, String> {
    let payload = payload.strip_prefix(b"\xef\xbb\xbf").unwrap_or(payload);
    std::str::from_utf8(payload).map_err(|_| "it isn't UTF-8".to_owned())
}

/// The one JSON document in `text`.
pub(crate) fn parse_json(text: &str) -> Result<Node, String> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let Unique(node) = Unique::deserialize(&mut deserializer).map_err(|error| error.to_string())?;
    deserializer.end().map_err(|error| error.to_string())?;
    Ok(node)
}

/// The members of an object, each value as its own bytes in `text`.
struct RawMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for RawMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RawVisitor).map(RawMembers)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = access.next_entry::<String, &'de RawValue>()? {
            members.push(member);
        }
        Ok(members)
    }
}

/// The bytes of the value under `key` of the object `text`.
pub(crate) fn raw_member<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let RawMembers(members) = serde_json::from_str(text).ok()?;
    members
        .into_iter()
        .find_map(|(name, value)| (name == key).then(|| value.get()))
}

/// The object `text` on one line, with the value under `key` replaced by the
/// JSON `value` and every other byte as it was.
pub(crate) fn replace_member(text: &str, key: &str, value: &str) -> Option<String> {
    let old = raw_member(text, key)?;
    let start = old.as_ptr() as usize - text.as_ptr() as usize;
    let (before, after) = (text.get(..start)?, text.get(start + old.len()..)?);
    Some(format!("{}{value}{}", one_line(before), one_line(after)))
}

/// A line break can stand in JSON only between tokens, where a space says the same.
fn one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::twice_at_the_top(r#"{"a":1,"a":2}"#)]
    #[case::twice_deep_inside(r#"{"x":[{"y":{"a":1,"\u0061":2}}]}"#)]
    #[case::something_behind_it(r#"{"a":1} {"a":2}"#)]
    #[case::a_lone_high_surrogate(r#"{"a":"\ud800"}"#)]
    #[case::a_lone_low_surrogate(r#"{"a":"\udc00x"}"#)]
    #[case::a_lone_surrogate_in_a_key(r#"{"\ud800":1}"#)]
    #[case::a_comment("{\"a\":1 /* no */}")]
    #[case::a_raw_line_break_in_a_string("{\"a\":\"x\ny\"}")]
    #[case::nothing("")]
    #[case::half(r#"{"a":"#)]
    fn what_two_readers_may_read_differently_is_refused(#[case] text: &str) {
        assert!(parse_json(text).is_err());
    }

    #[test]
    fn nesting_without_end_is_an_error_and_not_a_stack_overflow() {
        assert!(parse_json(&"[".repeat(2_000_000)).is_err());
    }

    #[rstest]
    #[case::in_the_middle(
        r#"{"a":1,"command":"x","b":12345678901234567890123}"#,
        r#"{"a":1,"command":"y","b":12345678901234567890123}"#
    )]
    #[case::escapes_and_spacing_stay(
        "{ \"\\u0061\" : 1.50e+2,\n\t\"command\" : \"x\" ,\r\n \"b\":\"\\/\" }",
        "{ \"\\u0061\" : 1.50e+2, \t\"command\" : \"y\" ,   \"b\":\"\\/\" }"
    )]
    #[case::an_escaped_key(r#"{"comm\u0061nd":"x"}"#, r#"{"comm\u0061nd":"y"}"#)]
    fn only_the_named_value_changes(#[case] text: &str, #[case] want: &str) {
        assert_eq!(
            replace_member(text, "command", r#""y""#).as_deref(),
            Some(want)
        );
    }
}
