//! vLLM's `/v1/completions` with token ids for a prompt.
//!
//! Servers of today give the sampled ids in a field of their own. Older ones can write them as words,
//! `token_id:123`, in the place of the tokens' texts. Both are asked for, and either will do.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

use super::answer::{End, Flaw, Piece, Tokens};
use super::http::Wire;
use super::stream::{Chunk, Text};
use super::{ids, seed};
use crate::generate::GenerationConfig;

#[derive(Serialize)]
struct Question<'a> {
    request_id: &'a str,
    model: &'a str,
    max_tokens: u32,
    min_tokens: u32,
    temperature: f32,
    top_p: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u32>,
    frequency_penalty: f32,
    presence_penalty: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_outputs: Option<Structure<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_token_ids: &'a [i32],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    /// Of the sampled token and none besides.
    logprobs: u32,
    return_token_ids: bool,
    return_tokens_as_token_ids: bool,
    stream: bool,
}

#[derive(Serialize)]
struct Structure<'a> {
    json: &'a RawValue,
}

/// `tokens` is all there is so far, of which `sampled` came from the engine.
pub(super) fn question(
    rid: &str,
    model: &str,
    tokens: &[i32],
    sampled: usize,
    gconfig: &GenerationConfig,
    wire: Wire,
) -> Vec<u8> {
    let schema = gconfig.json_schema.as_deref().and_then(|schema| serde_json::from_str(schema).ok());
    let rest = super::json(&Question {
        request_id: rid,
        model,
        max_tokens: gconfig.max_new_tokens,
        min_tokens: gconfig.min_new_tokens,
        temperature: if gconfig.greedy { 0.0 } else { gconfig.temperature },
        top_p: if gconfig.greedy { 1.0 } else { gconfig.top_p },
        top_k: gconfig.top_k.filter(|_| !gconfig.greedy),
        frequency_penalty: gconfig.frequency_penalty,
        presence_penalty: gconfig.presence_penalty,
        structured_outputs: schema.map(|json| Structure { json }),
        stop: &gconfig.stop,
        stop_token_ids: &gconfig.stop_token_ids,
        seed: gconfig.seed.map(|seed| seed::continued(seed, sampled)),
        logprobs: 0,
        return_token_ids: true,
        return_tokens_as_token_ids: true,
        stream: wire == Wire::Stream,
    });
    ids::insert("prompt", tokens, &rest)
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    token_ids: Option<Vec<i32>>,
    text: Option<String>,
    #[serde(borrow)]
    logprobs: Option<Logprobs<'a>>,
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Logprobs<'a> {
    #[serde(borrow)]
    tokens: Option<Vec<Word<'a>>>,
    token_logprobs: Option<Vec<Option<f32>>>,
}

/// Borrowed where it has no escapes, and `token_id:123` has none.
#[derive(Deserialize)]
struct Word<'a>(#[serde(borrow)] Cow<'a, str>);

pub(super) fn answer(bytes: &[u8], exact: bool) -> Result<Piece, Flaw> {
    let Answer { choices } = serde_json::from_slice(bytes)?;
    let Some(mut choice) = choices.into_iter().next() else {
        return Err(Flaw::Bad("`choices` is empty".into()));
    };
    let end = End::named(choice.finish_reason.as_deref())?;
    // Interrupted before the first token, there is nothing to give a log-prob of.
    let is_empty = end == End::Cut && choice.text.as_deref().unwrap_or_default().is_empty();
    let tokens = match choice.take_tokens(is_empty) {
        Err(Flaw::NotExact { .. }) if !exact => None,
        tokens => Some(tokens?),
    };
    Ok(Piece { tokens, text: choice.text, end, version: None })
}

/// Of a stream. Each has what is new.
pub(super) fn chunk(event: &[u8]) -> Result<Chunk, Flaw> {
    let Answer { choices } = serde_json::from_slice(event)?;
    // Counts come without a choice.
    let Some(mut choice) = choices.into_iter().next() else {
        return Ok(Chunk { tokens: Tokens::default(), text: None, end: None, version: None });
    };
    let end = choice.finish_reason.as_deref().map(|reason| End::named(Some(reason))).transpose()?;
    let may_be_empty = !matches!(end, Some(End::Done(_)));
    let is_empty = may_be_empty && choice.text.as_deref().unwrap_or_default().is_empty();
    let tokens = choice.take_tokens(is_empty)?;
    Ok(Chunk { tokens, text: choice.text.map(Text::More), end, version: None })
}

impl Choice<'_> {
    /// Where there is nothing else either, nothing is missing.
    fn take_tokens(&mut self, is_empty: bool) -> Result<Tokens, Flaw> {
        let none = Logprobs { tokens: None, token_logprobs: None };
        let Logprobs { tokens: words, token_logprobs } = self.logprobs.take().unwrap_or(none);
        let ids = self.token_ids.take().or_else(|| words?.iter().map(named_id).collect());
        match (ids, token_logprobs) {
            (Some(ids), Some(logprobs)) => Tokens::paired(ids, all_present(logprobs)?),
            (Some(ids), None) if ids.is_empty() => Ok(Tokens::default()),
            (None, None) if is_empty => Ok(Tokens::default()),
            (None, _) => {
                let hint = "vLLM from 0.10.2 on gives them with `return_token_ids`";
                Err(Flaw::NotExact { what: "token ids", hint })
            }
            (Some(_), None) => {
                let hint = "was vLLM started with --max-logprobs 0 or behind a proxy that drops them?";
                Err(Flaw::NotExact { what: "log-probs", hint })
            }
        }
    }
}

fn named_id(word: &Word<'_>) -> Option<i32> {
    word.0.strip_prefix("token_id:")?.parse().ok()
}

fn all_present(logprobs: Vec<Option<f32>>) -> Result<Vec<f32>, Flaw> {
    let count = logprobs.len();
    let missing = logprobs.iter().position(Option::is_none);
    match missing {
        Some(at) => Err(Flaw::Bad(format!("token {at} of {count} has no log-prob"))),
        None => Ok(logprobs.into_iter().flatten().collect()),
    }
}
