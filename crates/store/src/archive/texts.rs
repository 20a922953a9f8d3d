//! The text of a rollout for a table: what was asked, and what was answered.

use serde_json::Value;

/// Everything before the first answer.
pub(super) fn prompt(messages: &[Value]) -> String {
    joined(messages.iter().take_while(|message| !is_answer(message)))
}

/// All answers.
pub(super) fn response(messages: &[Value]) -> String {
    joined(messages.iter().filter(|message| is_answer(message)))
}

fn is_answer(message: &Value) -> bool {
    message.get("role").and_then(Value::as_str) == Some("assistant")
}

fn joined<'a>(messages: impl Iterator<Item = &'a Value>) -> String {
    let texts = messages.filter_map(|message| message.get("content")).map(text);
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// A content is text, or a list of parts of which some are.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.as_str().or_else(|| part.get("text").and_then(Value::as_str)))
            .collect(),
        _ => String::new(),
    }
}
