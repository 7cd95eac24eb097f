//! The schema that editors check a policy file with, made of the table of keys.

use serde_json::{Map, Value as Json, json};

use super::check::REGISTRIES;
use super::key::{Key, Meaning, Shape};

/// The JSON schema (draft 7) of a policy file.
pub fn json_schema() -> Json {
    let mut root = object("A policy of Fence, as boxery reads it");
    for key in Key::ALL {
        let mut names = key.path().split('.').peekable();
        let mut here = &mut root;
        while let Some(name) = names.next() {
            let Some(Json::Object(properties)) = here.get_mut("properties") else {
                break;
            };
            if names.peek().is_none() {
                properties.insert(name.to_owned(), value(*key));
                break;
            }
            let entry = properties
                .entry(name)
                .or_insert_with(|| Json::Object(object(&format!("The section `{name}`"))));
            let Json::Object(inner) = entry else { break };
            here = inner;
        }
    }
    root.insert(
        "$schema".to_owned(),
        json!("http://json-schema.org/draft-07/schema#"),
    );
    Json::Object(root)
}

fn object(about: &str) -> Map<String, Json> {
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("description".to_owned(), json!(about));
    object.insert("properties".to_owned(), json!({}));
    object.insert("additionalProperties".to_owned(), json!(false));
    object
}

fn value(key: Key) -> Json {
    let mut about = key.about().to_owned();
    if key.meaning() == Meaning::None {
        about.push_str(". No meaning on a Linux VM");
    }
    let mut schema = match key.shape() {
        Shape::Text => json!({"type": "string"}),
        Shape::Word(words) => json!({"type": "string", "enum": words}),
        Shape::Switch | Shape::OpenSwitch => json!({"type": "boolean"}),
        Shape::Number => json!({"type": "integer"}),
        Shape::Texts => json!({"type": "array", "items": {"type": "string"}}),
        Shape::Numbers => {
            json!({"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 65535}})
        }
    };
    if let Json::Object(schema) = &mut schema {
        if key == Key::Extends {
            let names: Vec<&str> = crate::TEMPLATES
                .iter()
                .map(|template| template.name)
                .collect();
            schema.insert(
                "examples".to_owned(),
                json!([&["@base", "./fence.base.json"], names.as_slice()].concat()),
            );
        }
        if key == Key::AllowedDomains {
            schema.insert(
                "examples".to_owned(),
                json!([["example.com", "*.example.com", REGISTRIES, "*"]]),
            );
        }
        schema.insert("description".to_owned(), json!(about));
    }
    schema
}
