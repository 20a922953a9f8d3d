//! SGLang's `/generate`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::engine::Engine;
use crate::generate::{Generation, Question, generate};
use crate::http::{Answer, bad_request, json};
use crate::model::logprob;
use crate::settings::Settings;
use crate::stream::{self, Held, SoFar};

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    rid: String,
    input_ids: Vec<i32>,
    #[serde(default)]
    sampling_params: Sampling,
    #[serde(default)]
    return_logprob: bool,
    #[serde(default)]
    stream: bool,
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
    finish_reason: Option<Finish>,
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
    engine.record(&settings, &asked.input_ids);
    let question = Question {
        rid: &asked.rid,
        prompt: &asked.input_ids,
        seed: asked.sampling_params.sampling_seed.unwrap_or(0),
        max: asked.sampling_params.max_new_tokens,
        min: asked.sampling_params.min_new_tokens,
        stop_token_ids: &asked.sampling_params.stop_token_ids,
    };
    let words = Words { with_logprobs: asked.return_logprob, prompt_tokens: asked.input_ids.len() };
    if asked.stream {
        let rid = asked.rid.clone();
        let tell = move |settings: &Settings, so_far: SoFar<'_>| {
            let from = if settings.streams_what_is_new { so_far.told } else { 0 };
            serde_json::to_vec(&words.said(settings, &rid, so_far, from)).unwrap_or_default()
        };
        return stream::answer(engine, settings, held.take(), question, Box::new(tell));
    }
    let Generation { tokens, end, version } = generate(engine, &settings, question).await;
    let logprobs: Vec<f32> = tokens.iter().map(|token| logprob(*token, version)).collect();
    let so_far = SoFar { tokens: &tokens, logprobs: &logprobs, told: 0, version, end: Some(end) };
    json(&words.said(&settings, &asked.rid, so_far, 0))
}

/// What a client wants to be told.
#[derive(Clone, Copy)]
struct Words {
    with_logprobs: bool,
    prompt_tokens: usize,
}

impl Words {
    /// With lists that begin at `from`.
    fn said<'a>(self, settings: &Settings, rid: &'a str, so_far: SoFar<'a>, from: usize) -> Said<'a> {
        let SoFar { tokens, logprobs, version, end, .. } = so_far;
        let shown = tokens.get(from..).unwrap_or_default();
        let with_logprobs = self.with_logprobs && settings.gives_logprobs;
        let triples =
            || shown.iter().zip(logprobs.iter().skip(from)).map(|(id, logprob)| (*logprob, *id, ()));
        Said {
            text: "",
            output_ids: settings.gives_token_ids.then_some(shown),
            meta_info: Meta {
                id: rid,
                finish_reason: end.map(|end| Finish { r#type: end.name() }),
                prompt_tokens: self.prompt_tokens,
                completion_tokens: tokens.len(),
                weight_version: settings.gives_version.then(|| version.to_string()),
                output_token_logprobs: with_logprobs.then(|| triples().collect()),
            },
        }
    }
}
