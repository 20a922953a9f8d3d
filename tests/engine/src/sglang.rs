//! SGLang's `/generate`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::generate::{Generation, Question, generate};
use crate::http::{Answer, bad_request, json};
use crate::model::logprob;
use crate::settings::Settings;

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    rid: String,
    input_ids: Vec<i32>,
    #[serde(default)]
    sampling_params: Sampling,
    #[serde(default)]
    return_logprob: bool,
}

#[derive(Deserialize)]
#[serde(default)]
struct Sampling {
    max_new_tokens: u32,
    min_new_tokens: u32,
    stop_token_ids: Vec<i32>,
    sampling_seed: Option<u64>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { max_new_tokens: 128, min_new_tokens: 0, stop_token_ids: Vec::new(), sampling_seed: None }
    }
}

#[derive(Serialize)]
struct Said<'a> {
    text: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_ids: Option<&'a [i32]>,
    meta_info: Meta<'a>,
}

#[derive(Serialize)]
struct Meta<'a> {
    id: &'a str,
    finish_reason: Finish,
    prompt_tokens: usize,
    completion_tokens: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_token_logprobs: Option<Vec<(f32, i32, ())>>,
}

#[derive(Serialize)]
struct Finish {
    r#type: &'static str,
}

pub(crate) async fn answer(engine: &Engine, settings: &Settings, body: &Bytes) -> Answer {
    let asked: Asked = match serde_json::from_slice(body) {
        Ok(asked) => asked,
        Err(error) => return bad_request(&error.to_string()),
    };
    let question = Question {
        rid: &asked.rid,
        prompt: &asked.input_ids,
        seed: asked.sampling_params.sampling_seed.unwrap_or(0),
        max: asked.sampling_params.max_new_tokens,
        min: asked.sampling_params.min_new_tokens,
        stop_token_ids: &asked.sampling_params.stop_token_ids,
    };
    let Generation { tokens, end, version } = generate(engine, settings, question).await;
    let with_logprobs = asked.return_logprob && settings.gives_logprobs;
    let triples = || tokens.iter().map(|token| (logprob(*token, version), *token, ())).collect();
    json(&Said {
        text: "",
        output_ids: settings.gives_token_ids.then_some(&tokens),
        meta_info: Meta {
            id: &asked.rid,
            finish_reason: Finish { r#type: end.name() },
            prompt_tokens: asked.input_ids.len(),
            completion_tokens: tokens.len(),
            weight_version: settings.gives_version.then(|| version.to_string()),
            output_token_logprobs: with_logprobs.then(triples),
        },
    })
}
