//! Writes a whole chat completion.

use serde::Serialize;

use super::super::openai::{Envelope, Taken, TokenLogprob};
use super::super::wire;
use crate::ask::Ask;
use crate::tell::{self, Answer, Spelled, Stop};

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    message: Message<'a>,
    logprobs: Option<Logprobs<'a>>,
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    refusal: Option<()>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
pub(super) struct Logprobs<'a> {
    content: Vec<TokenLogprob<'a>>,
    refusal: Option<()>,
}

impl<'a> Logprobs<'a> {
    pub(super) fn new(tokens: &'a [Spelled]) -> Self {
        Self { content: tokens.iter().map(TokenLogprob::from).collect(), refusal: None }
    }
}

pub(in super::super) fn write(answer: &Answer, ask: &Ask) -> Vec<u8> {
    let begun = &answer.begun;
    let choices: Vec<Choice<'_>> = answer.choices.iter().map(|choice| shown(choice, ask)).collect();
    wire::body(&Envelope {
        id: &id(&begun.id),
        object: "chat.completion",
        created: begun.created,
        model: &begun.model,
        choices: &choices,
        usage: Some(Some(Taken::of(answer.choices.iter().map(|choice| &choice.ended)).usage(begun))),
    })
}

pub(super) fn id(id: &str) -> String {
    format!("chatcmpl-{id}")
}

pub(super) fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::Stop => "stop",
        Stop::Length => "length",
        Stop::ToolCalls => "tool_calls",
    }
}

fn shown<'a>(choice: &'a tell::Choice, ask: &Ask) -> Choice<'a> {
    let silent = choice.content.is_empty() && !choice.calls.is_empty();
    Choice {
        index: choice.ended.choice,
        message: Message {
            role: "assistant",
            content: (!silent).then_some(choice.content.as_str()),
            reasoning_content: choice.reasoning.as_deref(),
            tool_calls: choice.calls.iter().map(call).collect(),
            refusal: None,
        },
        logprobs: ask.logprobs.then(|| Logprobs::new(&choice.tokens)),
        finish_reason: finish_reason(choice.ended.stop),
    }
}

fn call(call: &tell::Call) -> Call<'_> {
    let function = Function { name: &call.name, arguments: &call.arguments };
    Call { id: &call.id, r#type: "function", function }
}
