//! A settings file with the place of each value in it.

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions};

use crate::entry;
use crate::payload;

/// Strict JSON, as Claude Code reads it: it drops a file with anything else in it.
const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The root object of `text`.
pub(super) fn parse(text: &str) -> Result<Object<'_>, String> {
    if let Err(problem) = payload::parse_json(text) {
        let lenient = jsonc_parser::parse_to_ast(
            text,
            &CollectOptions::default(),
            &ParseOptions {
                allow_comments: true,
                allow_trailing_commas: true,
                ..STRICT
            },
        );
        return Err(match lenient {
            Ok(_) if !problem.contains("stands twice") => {
                format!("it has a comment or a trailing comma ({problem})")
            }
            Ok(_) | Err(_) => problem,
        });
    }
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &STRICT)
        .map_err(|error| error.to_string())?;
    match parsed.value {
        Some(Value::Object(root)) => Ok(root),
        _ => Err("it isn't an object".to_owned()),
    }
}

/// A bracketed value: where its brackets are, and where the things in it.
#[derive(Debug, Clone)]
pub(super) struct Container {
    /// Behind the opening bracket, and before the closing one.
    pub(super) inner: Range<usize>,
    pub(super) children: Vec<Range<usize>>,
}

impl Container {
    fn of_object(object: &Object<'_>) -> Self {
        Self {
            inner: object.range.start + 1..object.range.end - 1,
            children: object.properties.iter().map(|p| range(p.range)).collect(),
        }
    }

    fn of_array(array: &Array<'_>) -> Self {
        Self {
            inner: array.range.start + 1..array.range.end - 1,
            children: array.elements.iter().map(|e| range(e.range())).collect(),
        }
    }

    /// The white space between the bracket and the first thing.
    pub(super) fn gap<'a>(&self, text: &'a str) -> Option<&'a str> {
        Some(&text[self.inner.start..self.children.first()?.start])
    }

    /// The bytes that go when the child at `index` goes.
    pub(super) fn range_without(&self, text: &str, index: usize) -> Range<usize> {
        let child = &self.children[index];
        if index > 0 {
            return self.children[index - 1].end..child.end;
        }
        match self.children.get(1) {
            None => self.inner.start..child.end,
            Some(next) => {
                let comma = text[child.end..next.start].find(',').map_or(0, |at| at + 1);
                self.inner.start..child.end + comma
            }
        }
    }
}

fn range(range: jsonc_parser::common::Range) -> Range<usize> {
    range.start..range.end
}

/// The `hooks` of a file as far as they concern an edit.
#[derive(Debug)]
pub(super) struct Hooks {
    pub(super) root: Container,
    /// The object under `hooks`, and its index among the root's members.
    pub(super) object: Option<(usize, Container)>,
    /// The events in it, in order.
    pub(super) events: Vec<Event>,
    /// boxery's own handlers.
    pub(super) own: Vec<Own>,
}

/// One event's list of groups.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) groups: Container,
}

/// One handler of boxery's.
#[derive(Debug)]
pub(super) struct Own {
    /// Indices: the event, the group in it, the handler in that.
    pub(super) event: usize,
    pub(super) group: usize,
    pub(super) handler: usize,
    /// The handlers of its group.
    pub(super) handlers: Container,
    /// Whether its group is as install makes it: no matcher, nothing else in it.
    pub(super) is_alone: bool,
    /// Whether a matcher of its group keeps it from some calls.
    pub(super) is_narrowed: bool,
    pub(super) range: Range<usize>,
    pub(super) command: (Range<usize>, String),
    pub(super) timeout: Option<(Range<usize>, String)>,
    /// Whether its other members are as install writes them.
    pub(super) is_plain: bool,
}

/// Reads the hooks; a shape that holds no place for an entry is an error.
pub(super) fn read_hooks(text: &str, agent: &str) -> Result<Hooks, String> {
    let root = parse(text)?;
    let mut hooks = Hooks {
        root: Container::of_object(&root),
        object: None,
        events: Vec::new(),
        own: Vec::new(),
    };
    let Some(index) = root
        .properties
        .iter()
        .position(|p| p.name.as_str() == "hooks")
    else {
        return Ok(hooks);
    };
    let Value::Object(object) = &root.properties[index].value else {
        return Err("`hooks` isn't an object".to_owned());
    };
    hooks.object = Some((index, Container::of_object(object)));
    for (event, property) in object.properties.iter().enumerate() {
        let name = property.name.as_str().to_owned();
        let Value::Array(groups) = &property.value else {
            return Err(format!("`hooks.{name}` isn't a list"));
        };
        for (group, value) in groups.elements.iter().enumerate() {
            let Value::Object(value) = value else {
                return Err(format!("a group of `hooks.{name}` isn't an object"));
            };
            if let Some(handlers) = value.get_array("hooks") {
                let found = handlers.elements.iter().enumerate();
                let own = found.filter_map(|(handler, element)| {
                    read_own(element.as_object()?, agent).map(|found| Own {
                        event,
                        group,
                        handler,
                        handlers: Container::of_array(handlers),
                        is_alone: value.properties.len() == 1 && handlers.elements.len() == 1,
                        is_narrowed: is_narrowed(value),
                        ..found
                    })
                });
                hooks.own.extend(own);
            }
        }
        hooks.events.push(Event {
            name,
            groups: Container::of_array(groups),
        });
    }
    Ok(hooks)
}

fn is_narrowed(group: &Object<'_>) -> bool {
    match group.get("matcher").map(|matcher| &matcher.value) {
        None => false,
        Some(Value::StringLit(matcher)) => !matches!(matcher.value.trim(), "" | "*"),
        Some(_) => true,
    }
}

/// The handler, when it is boxery's; its place is filled in by the caller.
fn read_own(handler: &Object<'_>, agent: &str) -> Option<Own> {
    let command = handler.get_string("command")?;
    if !entry::is_own(&command.value, agent) {
        return None;
    }
    let is_command = handler
        .get_string("type")
        .is_some_and(|kind| kind.value == "command");
    Some(Own {
        event: 0,
        group: 0,
        handler: 0,
        handlers: Container {
            inner: 0..0,
            children: Vec::new(),
        },
        is_alone: false,
        is_narrowed: false,
        range: range(handler.range),
        command: (range(command.range), command.value.to_string()),
        timeout: handler
            .get_number("timeout")
            .map(|timeout| (range(timeout.range), timeout.value.to_owned())),
        is_plain: is_command && handler.properties.len() == 3,
    })
}
