//! Writes a whole message.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;

use super::super::wire;
use crate::tell::{Answer, Begun, Call, Choice, Ended, Stop};

#[derive(Serialize)]
pub(super) struct Message<'a> {
    id: String,
    r#type: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<Block<'a>>,
    stop_reason: Option<&'static str>,
    stop_sequence: Option<&'a str>,
    usage: Usage,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Thinking { thinking: &'a str, signature: &'static str },
    Text { text: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: Cow<'a, RawValue> },
}

#[derive(Serialize)]
pub(super) struct Usage {
    /// Without those that were cached.
    input_tokens: usize,
    cache_creation_input_tokens: usize,
    cache_read_input_tokens: usize,
    output_tokens: usize,
}

impl<'a> Message<'a> {
    /// Before anything is said.
    pub(super) fn begun(begun: &'a Begun) -> Self {
        Self {
            id: format!("msg_{}", begun.id),
            r#type: "message",
            role: "assistant",
            model: &begun.model,
            content: Vec::new(),
            stop_reason: None,
            stop_sequence: None,
            usage: Usage::new(begun, 0),
        }
    }
}

impl Usage {
    pub(super) fn new(begun: &Begun, output_tokens: usize) -> Self {
        Self {
            input_tokens: begun.prompt_tokens.saturating_sub(begun.cached_tokens),
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: begun.cached_tokens,
            output_tokens,
        }
    }
}

pub(in super::super) fn write(answer: &Answer) -> Vec<u8> {
    let begun = Message::begun(&answer.begun);
    let message = match answer.choices.first() {
        None => begun,
        Some(choice) => Message {
            content: blocks(choice),
            stop_reason: Some(stop_reason(&choice.ended)),
            stop_sequence: choice.ended.stop_text.as_deref(),
            usage: Usage::new(&answer.begun, choice.ended.completion_tokens),
            ..begun
        },
    };
    wire::body(&message)
}

pub(super) fn stop_reason(ended: &Ended) -> &'static str {
    match ended.stop {
        Stop::Stop if ended.stop_text.is_some() => "stop_sequence",
        Stop::Stop => "end_turn",
        Stop::Length => "max_tokens",
        Stop::ToolCalls => "tool_use",
    }
}

fn blocks<'a>(choice: &'a Choice) -> Vec<Block<'a>> {
    let mut blocks = Vec::new();
    if let Some(thinking) = choice.reasoning.as_deref().filter(|text| !text.is_empty()) {
        blocks.push(Block::Thinking { thinking, signature: "" });
    }
    if !choice.content.is_empty() {
        blocks.push(Block::Text { text: &choice.content });
    }
    let shown = |call: &'a Call| {
        let Call { id, name, arguments } = call;
        Block::ToolUse { id, name, input: input(arguments) }
    };
    blocks.extend(choice.calls.iter().map(shown));
    blocks
}

/// An input is an object. Arguments that were cut short are none, and told in the way that Anthropic gives for it.
fn input(arguments: &str) -> Cow<'_, RawValue> {
    #[derive(Serialize)]
    struct Broken<'a> {
        #[serde(rename = "INVALID_JSON")]
        text: &'a str,
    }
    if arguments.is_empty() {
        return Cow::Owned(empty());
    }
    match serde_json::from_str::<&RawValue>(arguments) {
        Ok(raw) if raw.get().starts_with('{') => Cow::Borrowed(raw),
        _ => Cow::Owned(to_raw_value(&Broken { text: arguments }).expect("a text is JSON")),
    }
}

/// What a call begins with.
pub(super) fn empty() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).expect("an empty object is JSON")
}
