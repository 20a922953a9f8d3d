//! Writes a whole completion.

use serde::Serialize;

use super::super::openai::{Envelope, Taken, logprob};
use super::super::wire;
use crate::ask::Ask;
use crate::tell::{self, Answer, Spelled, Stop};

pub(super) const OBJECT: &str = "text_completion";

#[derive(Serialize)]
pub(super) struct Choice<'a> {
    pub(super) index: u32,
    pub(super) text: &'a str,
    pub(super) logprobs: Option<Logprobs<'a>>,
    pub(super) finish_reason: Option<&'static str>,
}

#[derive(Serialize)]
pub(super) struct Logprobs<'a> {
    tokens: Vec<&'a str>,
    token_logprobs: Vec<f32>,
    top_logprobs: Option<()>,
    text_offset: Vec<usize>,
}

impl<'a> Logprobs<'a> {
    /// `offset` is the place of the first token in the text, in characters, and then of the next.
    pub(super) fn new(tokens: &'a [Spelled], offset: &mut usize) -> Self {
        let place = |token: &Spelled| {
            let place = *offset;
            *offset += token.text.chars().count();
            place
        };
        Self {
            text_offset: tokens.iter().map(place).collect(),
            tokens: tokens.iter().map(|token| token.text.as_str()).collect(),
            token_logprobs: tokens.iter().map(logprob).collect(),
            top_logprobs: None,
        }
    }
}

pub(in super::super) fn write(answer: &Answer, ask: &Ask) -> Vec<u8> {
    let begun = &answer.begun;
    let choices: Vec<Choice<'_>> = answer.choices.iter().map(|choice| shown(choice, ask)).collect();
    wire::body(&Envelope {
        id: &id(&begun.id),
        object: OBJECT,
        created: begun.created,
        model: &begun.model,
        choices: &choices,
        usage: Some(Some(Taken::of(answer.choices.iter().map(|choice| &choice.ended)).usage(begun))),
    })
}

pub(super) fn id(id: &str) -> String {
    format!("cmpl-{id}")
}

/// There are no calls in a text.
pub(super) fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::Stop | Stop::ToolCalls => "stop",
        Stop::Length => "length",
    }
}

fn shown<'a>(choice: &'a tell::Choice, ask: &Ask) -> Choice<'a> {
    Choice {
        index: choice.ended.choice,
        text: &choice.content,
        logprobs: ask.logprobs.then(|| Logprobs::new(&choice.tokens, &mut 0)),
        finish_reason: Some(finish_reason(choice.ended.stop)),
    }
}
