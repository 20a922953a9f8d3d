//! vLLM's `/v1/completions` with a prompt of token ids.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::generate::{Generation, Question, generate};
use crate::http::{Answer, bad_request, json};
use crate::model::logprob;
use crate::settings::{Dialects, Settings};

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
    finish_reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_ids: Option<&'a [i32]>,
    logprobs: Option<Logprobs>,
}

#[derive(Serialize)]
struct Logprobs {
    tokens: Vec<String>,
    token_logprobs: Vec<f32>,
}

pub(crate) async fn answer(engine: &Engine, settings: &Settings, body: &Bytes) -> Answer {
    let asked: Asked = match serde_json::from_slice(body) {
        Ok(asked) => asked,
        Err(error) => return bad_request(&error.to_string()),
    };
    let prompt = match asked.prompt {
        Prompt::Ids(ids) => ids,
        Prompt::Text(text) => text.bytes().map(i32::from).collect(),
    };
    let question = Question {
        rid: &asked.request_id,
        prompt: &prompt,
        seed: asked.seed.unwrap_or(0),
        max: asked.max_tokens,
        min: asked.min_tokens,
        stop_token_ids: &asked.stop_token_ids,
    };
    let Generation { tokens, end, version } = generate(engine, settings, question).await;
    let speaks_ids = settings.dialects.speaks(Dialects::Vllm);
    let as_words = speaks_ids && asked.return_tokens_as_token_ids && settings.gives_token_ids_as_words;
    let word = |token: &i32| if as_words { format!("token_id:{token}") } else { format!(" w{token}") };
    let logprobs = asked.logprobs.filter(|_| settings.gives_logprobs).map(|_| Logprobs {
        tokens: tokens.iter().map(word).collect(),
        token_logprobs: tokens.iter().map(|token| logprob(*token, version)).collect(),
    });
    let with_ids = speaks_ids && asked.return_token_ids && settings.gives_token_ids;
    let token_ids = with_ids.then_some(tokens.as_slice());
    json(&Said {
        id: &asked.request_id,
        object: "text_completion",
        model: &settings.model,
        choices: [Choice { index: 0, text: "", finish_reason: end.name(), token_ids, logprobs }],
    })
}
