//! vLLM's `/v1/completions` with a prompt of token ids.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::engine::Engine;
use crate::generate::{End, Generation, Question, generate};
use crate::http::{Answer, bad_request, json};
use crate::model::logprob;
use crate::settings::{Dialects, Settings};
use crate::stream::{self, Held, SoFar};

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    request_id: String,
    prompt: Prompt,
    #[serde(default = "sixteen")]
    max_tokens: u32,
    #[serde(default)]
    min_tokens: u32,
    #[serde(default)]
    stop_token_ids: Vec<i32>,
    seed: Option<u64>,
    logprobs: Option<u32>,
    #[serde(default)]
    return_token_ids: bool,
    #[serde(default)]
    return_tokens_as_token_ids: bool,
    #[serde(default)]
    stream: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Prompt {
    Ids(Vec<i32>),
    Text(String),
}

fn sixteen() -> u32 {
    16
}

#[derive(Serialize)]
struct Said<'a> {
    id: &'a str,
    object: &'static str,
    model: &'a str,
    choices: [Choice<'a>; 1],
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    text: &'static str,
    finish_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_ids: Option<&'a [i32]>,
    logprobs: Option<Logprobs>,
}

#[derive(Serialize)]
struct Logprobs {
    tokens: Vec<String>,
    token_logprobs: Vec<f32>,
}

pub(crate) async fn answer(
    engine: &Arc<Engine>,
    settings: Settings,
    body: &Bytes,
    held: &mut Option<Held>,
) -> Answer {
    let asked: Asked = match serde_json::from_slice(body) {
        Ok(asked) => asked,
        Err(error) => return bad_request(&error.to_string()),
    };
    let prompt = match asked.prompt {
        Prompt::Ids(ids) => ids,
        Prompt::Text(text) => text.bytes().map(i32::from).collect(),
    };
    engine.record(&settings, &prompt);
    let question = Question {
        rid: &asked.request_id,
        prompt: &prompt,
        seed: asked.seed.unwrap_or(0),
        max: asked.max_tokens,
        min: asked.min_tokens,
        stop_token_ids: &asked.stop_token_ids,
    };
    let speaks_ids = settings.dialects.speaks(Dialects::Vllm);
    let words = Words {
        as_ids: speaks_ids && asked.return_token_ids && settings.gives_token_ids,
        as_words: speaks_ids && asked.return_tokens_as_token_ids && settings.gives_token_ids_as_words,
        with_logprobs: asked.logprobs.is_some() && settings.gives_logprobs,
    };
    if asked.stream {
        let rid = asked.request_id.clone();
        let tell = move |settings: &Settings, so_far: SoFar<'_>| {
            serde_json::to_vec(&words.said(settings, &rid, so_far)).unwrap_or_default()
        };
        return stream::answer(engine, settings, held.take(), question, Box::new(tell));
    }
    let Generation { tokens, end, version } = generate(engine, &settings, question).await;
    let logprobs: Vec<f32> = tokens.iter().map(|token| logprob(*token, version)).collect();
    let so_far = SoFar { tokens: &tokens, logprobs: &logprobs, told: 0, version, end: Some(end) };
    json(&words.said(&settings, &asked.request_id, so_far))
}

/// What a client is told of tokens.
#[derive(Clone, Copy)]
struct Words {
    as_ids: bool,
    as_words: bool,
    with_logprobs: bool,
}

impl Words {
    /// What is new.
    fn said<'a>(self, settings: &'a Settings, rid: &'a str, so_far: SoFar<'a>) -> Said<'a> {
        let SoFar { tokens, logprobs, told, end, .. } = so_far;
        let (tokens, logprobs) = (tokens.get(told..), logprobs.get(told..));
        let (tokens, logprobs) = (tokens.unwrap_or_default(), logprobs.unwrap_or_default());
        let word = |token: &i32| match self.as_words {
            true => format!("token_id:{token}"),
            false => format!(" w{token}"),
        };
        let logprobs = self.with_logprobs.then(|| Logprobs {
            tokens: tokens.iter().map(word).collect(),
            token_logprobs: logprobs.to_vec(),
        });
        let token_ids = self.as_ids.then_some(tokens);
        Said {
            id: rid,
            object: "text_completion",
            model: &settings.model,
            choices: [Choice { index: 0, text: "", finish_reason: end.map(End::name), token_ids, logprobs }],
        }
    }
}
