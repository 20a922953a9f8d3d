//! Writes a whole response. In a stream the same object is told when it is created and when it is complete.

use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::super::openai::{Cached, Reasoned};
use super::super::wire;
use super::ask::PREFIX;
use super::item::{Body, Item, Status};
use crate::ask::{Ask, Prompt, ToolChoice};
use crate::tell::{Answer, Begun, Choice, Ended, Stop};

#[derive(Serialize)]
pub(super) struct Response<'a> {
    pub(super) id: &'a str,
    object: &'static str,
    created_at: u64,
    status: Status,
    background: bool,
    error: Option<()>,
    incomplete_details: Option<Incomplete>,
    instructions: Option<()>,
    max_output_tokens: Option<u32>,
    metadata: Empty,
    model: &'a str,
    output: &'a [Item],
    parallel_tool_calls: bool,
    previous_response_id: Option<&'a str>,
    temperature: Option<f32>,
    tool_choice: Chosen<'a>,
    tools: &'a RawValue,
    top_p: Option<f32>,
    truncation: &'static str,
    usage: Option<Usage>,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct Incomplete {
    reason: &'static str,
}

#[derive(Serialize)]
struct Usage {
    input_tokens: usize,
    input_tokens_details: Input,
    output_tokens: usize,
    output_tokens_details: Reasoned,
    total_tokens: usize,
}

#[derive(Serialize)]
struct Input {
    #[serde(flatten)]
    cached: Cached,
    cache_write_tokens: usize,
}

/// What is the same in a response from its beginning to its end.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) begun: Begun,
    id: String,
    follows: Option<String>,
    max_tokens: Option<u32>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    tool_choice: ToolChoice,
    /// In this dialect's form, flat.
    tools: Box<RawValue>,
}

impl Frame {
    pub(super) fn new(begun: Begun, ask: &Ask) -> Self {
        let chat = match &ask.prompt {
            Prompt::Chat(chat) => Some(chat),
            Prompt::Text(_) | Prompt::Tokens(_) => None,
        };
        Self {
            id: format!("{PREFIX}{}", begun.id),
            begun,
            follows: chat.and_then(|chat| chat.follows.as_ref()).map(|id| format!("{PREFIX}{id}")),
            max_tokens: ask.sampling.max_tokens,
            temperature: ask.sampling.temperature,
            top_p: ask.sampling.top_p,
            tool_choice: chat.map(|chat| chat.tool_choice.clone()).unwrap_or_default(),
            tools: flat(chat.and_then(|chat| chat.tools.as_deref())),
        }
    }

    /// As it is now; `ended` once it is.
    pub(super) fn response<'a>(&'a self, output: &'a [Item], ended: Option<&Ended>) -> Response<'a> {
        let status = ended.map_or(Status::InProgress, |ended| status(ended.stop));
        let incomplete = (status == Status::Incomplete).then_some(Incomplete { reason: "max_output_tokens" });
        Response {
            id: &self.id,
            object: "response",
            created_at: self.begun.created,
            status,
            background: false,
            error: None,
            incomplete_details: incomplete,
            instructions: None,
            max_output_tokens: self.max_tokens,
            metadata: Empty {},
            model: &self.begun.model,
            output,
            parallel_tool_calls: true,
            previous_response_id: self.follows.as_deref(),
            temperature: self.temperature,
            tool_choice: Chosen(&self.tool_choice),
            tools: &self.tools,
            top_p: self.top_p,
            truncation: "disabled",
            usage: ended.map(|ended| self.usage(ended)),
        }
    }

    fn usage(&self, ended: &Ended) -> Usage {
        let cached = Cached { cached_tokens: self.begun.cached_tokens };
        Usage {
            input_tokens: self.begun.prompt_tokens,
            input_tokens_details: Input { cached, cache_write_tokens: 0 },
            output_tokens: ended.completion_tokens,
            output_tokens_details: Reasoned { reasoning_tokens: ended.reasoning_tokens },
            total_tokens: self.begun.prompt_tokens + ended.completion_tokens,
        }
    }
}

pub(super) fn status(stop: Stop) -> Status {
    match stop {
        Stop::Stop | Stop::ToolCalls => Status::Completed,
        Stop::Length => Status::Incomplete,
    }
}

pub(in super::super) fn write(answer: &Answer, ask: &Ask) -> Vec<u8> {
    let frame = Frame::new(answer.begun.clone(), ask);
    let first = answer.choices.first();
    let items = first.map(|choice| items(choice, &answer.begun.id)).unwrap_or_default();
    wire::body(&frame.response(&items, first.map(|choice| &choice.ended)))
}

/// Thoughts, words and calls. There is a message unless there are calls: agents look for one.
fn items(choice: &Choice, answer: &str) -> Vec<Item> {
    let mut bodies = Vec::new();
    bodies.extend(choice.reasoning.clone().filter(|text| !text.is_empty()).map(Body::Thoughts));
    if !choice.content.is_empty() || choice.calls.is_empty() {
        bodies.push(Body::Message { text: choice.content.clone(), tokens: choice.tokens.clone() });
    }
    bodies.extend((0..).zip(choice.calls.clone()).map(|(index, call)| Body::Call {
        index,
        call_id: call.id,
        name: call.name,
        arguments: call.arguments,
    }));
    let last = bodies.len().saturating_sub(1);
    let item = |(place, body)| {
        // What was cut short is the last thing that was said.
        let status = if place == last { status(choice.ended.stop) } else { Status::Completed };
        Item { status, ..Item::new(answer, place, body) }
    };
    bodies.into_iter().enumerate().map(item).collect()
}

/// From the chat form, where a function is an object in the tool.
fn flat(tools: Option<&RawValue>) -> Box<RawValue> {
    #[derive(serde::Deserialize)]
    struct Tool<'a> {
        #[serde(borrow)]
        function: Function<'a>,
    }
    #[derive(serde::Deserialize)]
    struct Function<'a> {
        #[serde(borrow)]
        name: &'a RawValue,
        #[serde(borrow)]
        description: Option<&'a RawValue>,
        #[serde(borrow)]
        parameters: Option<&'a RawValue>,
    }
    #[derive(Serialize)]
    struct Flat<'a> {
        r#type: &'static str,
        name: &'a RawValue,
        description: Option<&'a RawValue>,
        parameters: Option<&'a RawValue>,
        strict: Option<bool>,
    }
    let read = tools.and_then(|tools| serde_json::from_str::<Vec<Tool<'_>>>(tools.get()).ok());
    let flat = |Tool { function: Function { name, description, parameters } }| Flat {
        r#type: "function",
        name,
        description,
        parameters,
        strict: None,
    };
    let flat: Vec<Flat<'_>> = read.unwrap_or_default().into_iter().map(flat).collect();
    to_raw_value(&flat).expect("tools of JSON are JSON")
}

struct Chosen<'a>(&'a ToolChoice);

impl Serialize for Chosen<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Named<'a> {
            r#type: &'static str,
            name: &'a str,
        }
        match self.0 {
            ToolChoice::Auto => serializer.serialize_str("auto"),
            ToolChoice::None => serializer.serialize_str("none"),
            ToolChoice::Required => serializer.serialize_str("required"),
            ToolChoice::Named(name) => Named { r#type: "function", name }.serialize(serializer),
        }
    }
}
