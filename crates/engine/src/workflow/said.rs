//! An answer of a conversation: its text, its message, and what it calls.

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::opening::message;
use super::render::Renderer;
use super::single_turn::Answer;
use crate::episode::EpisodeError;
use crate::generate::{Message, ModelResponse};
use crate::tool::{Broken, ToolCall, ToolSyntax};

#[derive(Debug)]
pub(super) struct Said {
    /// For people, and for templates that know calls: with its calls as fields.
    pub(super) message: Message,
    /// The text and nothing else, calls included as they were written.
    pub(super) plain_message: Message,
    /// What is judged.
    pub(super) plain: String,
    /// Every token, but for the special ones at the end.
    pub(super) text: String,
    pub(super) calls: Vec<Result<ToolCall, Broken>>,
}

#[derive(Serialize)]
struct CallMessage<'a> {
    role: &'static str,
    content: &'a str,
    tool_calls: Vec<CallField<'a>>,
}

#[derive(Serialize)]
struct CallField<'a> {
    id: &'a str,
    r#type: &'static str,
    function: FunctionField<'a>,
}

#[derive(Serialize)]
struct FunctionField<'a> {
    name: &'a str,
    arguments: Box<RawValue>,
}

impl Said {
    /// `syntax` is `None` where nothing can be called. Calls without an id are given one, counted from `calls`.
    pub(super) fn read(
        renderer: Option<&Renderer>,
        response: &ModelResponse,
        syntax: Option<ToolSyntax>,
        calls: usize,
    ) -> Result<Self, EpisodeError> {
        let Answer { raw, plain } = Answer::read(renderer, response)?;
        let text = match renderer {
            Some(renderer) => {
                let special = response.output_tokens.iter().rev().take_while(|id| renderer.is_special(**id));
                let end = response.output_tokens.len() - special.count();
                renderer.decode(response.output_tokens.get(..end).unwrap_or_default())?
            }
            None => raw,
        };
        let plain_message = message("assistant", &text);
        let of_engine = response.message.as_deref().map(engine_calls).unwrap_or_default();
        let message = response.message.clone().unwrap_or_else(|| message("assistant", &plain));
        let mut said = Self { message, plain_message, plain, text, calls: Vec::new() };
        let Some(syntax) = syntax else { return Ok(said) };
        if !of_engine.is_empty() {
            said.calls = of_engine;
            return Ok(said);
        }
        let found = syntax.find(&said.text);
        said.calls = found.calls;
        for (index, call) in said.calls.iter_mut().flatten().enumerate() {
            call.id.get_or_insert_with(|| call_id(calls + index));
        }
        let all: Option<Vec<&ToolCall>> = said.calls.iter().map(|call| call.as_ref().ok()).collect();
        if let Some(calls) = all.filter(|calls| !calls.is_empty()) {
            said.message = with_calls(&found.content, &calls, renderer.is_some());
        }
        Ok(said)
    }
}

/// Nine characters, as the templates of Mistral want it.
pub(super) fn call_id(index: usize) -> String {
    format!("call{:05}", index % 100_000)
}

/// Templates read the arguments as an object, chat engines as a text.
fn with_calls(content: &str, calls: &[&ToolCall], as_objects: bool) -> Message {
    let arguments = |call: &ToolCall| match as_objects {
        true => call.arguments.clone(),
        false => to_raw_value(call.arguments.get()).expect("a text is JSON"),
    };
    let tool_calls = calls
        .iter()
        .map(|call| CallField {
            id: call.id.as_deref().unwrap_or_default(),
            r#type: "function",
            function: FunctionField { name: &call.name, arguments: arguments(call) },
        })
        .collect();
    to_raw_value(&CallMessage { role: "assistant", content, tool_calls }).expect("texts are JSON")
}

/// The calls that a chat engine has found itself.
fn engine_calls(message: &RawValue) -> Vec<Result<ToolCall, Broken>> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow)]
        tool_calls: Option<Vec<&'a RawValue>>,
    }
    let wire: Option<Wire<'_>> = serde_json::from_str(message.get()).ok();
    let calls = wire.and_then(|wire| wire.tool_calls).unwrap_or_default();
    calls.into_iter().map(|call| ToolCall::parse(call.get())).collect()
}
