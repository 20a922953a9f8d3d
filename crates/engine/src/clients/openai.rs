//! `/v1/chat/completions`, which every server speaks: messages in, a message out.
//!
//! The server applies its template and tokenises by itself, so what comes back is text and not exact.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

use super::answer::{End, Flaw, Version};
use super::seed;
use crate::generate::{GenerationConfig, Message};

#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    messages: &'a [Message],
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    max_tokens: u32,
    /// Not every server knows the fields below, so what says nothing is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_tokens: Option<u32>,
    temperature: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_token_ids: &'a [i32],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    stream: bool,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: NamedSchema<'a>,
}

/// OpenAI wants a name for it, and does nothing with it.
#[derive(Serialize)]
struct NamedSchema<'a> {
    name: &'static str,
    schema: &'a RawValue,
}

impl<'a> ResponseFormat<'a> {
    fn of(schema: &'a str) -> Option<Self> {
        let schema = serde_json::from_str(schema).ok()?;
        Some(Self { r#type: "json_schema", json_schema: NamedSchema { name: "answer", schema } })
    }
}

pub(super) fn question(
    model: &str,
    messages: &[Message],
    tools: Option<&RawValue>,
    gconfig: &GenerationConfig,
) -> Vec<u8> {
    super::json(&Question {
        model,
        messages,
        tools,
        max_tokens: gconfig.max_new_tokens,
        min_tokens: Some(gconfig.min_new_tokens).filter(|least| *least > 0),
        temperature: if gconfig.greedy { 0.0 } else { gconfig.temperature },
        top_p: Some(gconfig.top_p).filter(|top_p| !gconfig.greedy && *top_p < 1.0),
        top_k: gconfig.top_k.filter(|_| !gconfig.greedy),
        frequency_penalty: Some(gconfig.frequency_penalty).filter(|penalty| *penalty != 0.0),
        presence_penalty: Some(gconfig.presence_penalty).filter(|penalty| *penalty != 0.0),
        response_format: gconfig.json_schema.as_deref().and_then(ResponseFormat::of),
        stop: &gconfig.stop,
        stop_token_ids: &gconfig.stop_token_ids,
        seed: gconfig.seed.map(seed::signed),
        stream: false,
    })
}

#[derive(Debug)]
pub(super) struct Said {
    pub(super) message: Message,
    pub(super) text: Option<String>,
    pub(super) end: End,
    pub(super) version: Option<i32>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
    #[serde(default)]
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
}

/// SGLang tells here which weights it had.
#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    weight_version: Version,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    content: Option<Text>,
}

/// Parts are not joined: they may be anything.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Plain(String),
    Other(serde::de::IgnoredAny),
}

pub(super) fn answer(bytes: &[u8]) -> Result<Said, Flaw> {
    let Answer { choices, metadata } = serde_json::from_slice(bytes)?;
    let Some(choice) = choices.first() else {
        return Err(Flaw::Bad("`choices` is empty".into()));
    };
    let Content { content } = serde_json::from_str(choice.message.get())?;
    let text = match content {
        Some(Text::Plain(text)) => Some(text),
        Some(Text::Other(_)) | None => None,
    };
    Ok(Said {
        message: choice.message.to_owned(),
        text,
        end: End::named(choice.finish_reason.as_deref())?,
        version: metadata.and_then(|metadata| metadata.weight_version.0),
    })
}
