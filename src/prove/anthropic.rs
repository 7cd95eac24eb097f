//! Anthropic's Messages API, as the model's side of it.

use serde_json::{Value, json};

use super::script::Asked;

/// What a request's body asks.
pub(crate) fn read_asked(body: &Value) -> Asked {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let mut asked = Asked::default();
    if let Some(first) = messages.iter().find(|message| message["role"] == "user") {
        asked.prompt = flat(&first["content"]);
    }
    for message in messages {
        if message["role"] == "assistant" {
            asked.results.clear();
            continue;
        }
        for block in message["content"].as_array().into_iter().flatten() {
            if block["type"] == "tool_result" {
                asked.results.push((
                    block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
                    flat(&block["content"]),
                    block["is_error"].as_bool().unwrap_or_default(),
                ));
            }
        }
    }
    let tools = body["tools"].as_array().into_iter().flatten();
    asked.tools = tools
        .filter_map(|tool| tool["name"].as_str())
        .map(str::to_owned)
        .collect();
    asked
}

/// The text of a message's content, whatever its shape.
fn flat(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(flat).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => match fields.get("text").or_else(|| fields.get("content")) {
            Some(inner) => flat(inner),
            None => content.to_string(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// A model's whole message. Agents tell messages apart by `id`.
pub(crate) fn message(
    id: &str,
    body: &Value,
    text: &str,
    calls: &[(String, String, Value)],
) -> Value {
    let mut content = Vec::new();
    if !text.is_empty() {
        content.push(json!({"type": "text", "text": text}));
    }
    for (id, tool, input) in calls {
        content.push(json!({"type": "tool_use", "id": id, "name": tool, "input": input}));
    }
    json!({
        "id": format!("msg_boxery_{id}"),
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": if calls.is_empty() { "end_turn" } else { "tool_use" },
        "stop_sequence": null,
        "usage": usage(),
    })
}

fn usage() -> Value {
    json!({
        "input_tokens": 10,
        "output_tokens": 10,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    })
}

/// The same message as the events of a stream.
pub(crate) fn events(message: &Value) -> Vec<String> {
    let mut opening = message.clone();
    opening["content"] = json!([]);
    opening["stop_reason"] = Value::Null;
    let mut events = vec![event(&json!({"type": "message_start", "message": opening}))];
    for (index, block) in message["content"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let mut start = block.clone();
        let delta = if block["type"] == "text" {
            start["text"] = json!("");
            json!({"type": "text_delta", "text": block["text"]})
        } else {
            start["input"] = json!({});
            json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
        };
        events.extend([
            event(&json!({"type": "content_block_start", "index": index, "content_block": start})),
            event(&json!({"type": "content_block_delta", "index": index, "delta": delta})),
            event(&json!({"type": "content_block_stop", "index": index})),
        ]);
    }
    events.push(event(&json!({
        "type": "message_delta",
        "usage": usage(),
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": null},
    })));
    events.push(event(&json!({"type": "message_stop"})));
    events
}

fn event(data: &Value) -> String {
    format!(
        "event: {}\ndata: {data}\n\n",
        data["type"].as_str().unwrap_or_default()
    )
}
