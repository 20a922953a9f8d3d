//! SGLang's own call, `/generate`: token ids in, token ids with log-probs and the weights' version out.

mod stream;

pub(super) use stream::{Seen, chunk};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::answer::{End, Flaw, Piece, Tokens, Version};
use super::http::Wire;
use super::{ids, seed};
use crate::generate::GenerationConfig;

#[derive(Serialize)]
struct Question<'a> {
    rid: &'a str,
    sampling_params: Sampling<'a>,
    return_logprob: bool,
    stream: bool,
}

#[derive(Serialize)]
struct Sampling<'a> {
    max_new_tokens: u32,
    min_new_tokens: u32,
    temperature: f32,
    top_p: f32,
    /// All tokens: -1.
    top_k: i64,
    frequency_penalty: f32,
    presence_penalty: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    json_schema: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_token_ids: &'a [i32],
    #[serde(skip_serializing_if = "Option::is_none")]
    sampling_seed: Option<u64>,
}

/// `tokens` is all there is so far, and `gconfig` says what may still come.
pub(super) fn question(rid: &str, tokens: &[i32], gconfig: &GenerationConfig, wire: Wire) -> Vec<u8> {
    let sampling_params = Sampling {
        max_new_tokens: gconfig.max_new_tokens,
        min_new_tokens: gconfig.min_new_tokens,
        temperature: if gconfig.greedy { 0.0 } else { gconfig.temperature },
        top_p: if gconfig.greedy { 1.0 } else { gconfig.top_p },
        top_k: if gconfig.greedy { -1 } else { gconfig.top_k.map_or(-1, i64::from) },
        frequency_penalty: gconfig.frequency_penalty,
        presence_penalty: gconfig.presence_penalty,
        json_schema: gconfig.json_schema.as_deref(),
        stop: &gconfig.stop,
        stop_token_ids: &gconfig.stop_token_ids,
        // SGLang's noise depends on the seed and the position, so a continued answer keeps its seed.
        sampling_seed: gconfig.seed.map(seed::signed),
    };
    let stream = wire == Wire::Stream;
    let rest = super::json(&Question { rid, sampling_params, return_logprob: true, stream });
    ids::insert("input_ids", tokens, &rest)
}

#[derive(Deserialize)]
struct Answer {
    output_ids: Option<Vec<i32>>,
    text: Option<String>,
    meta_info: Meta,
}

#[derive(Deserialize)]
struct Meta {
    output_token_logprobs: Option<Vec<Triple>>,
    finish_reason: Option<Finish>,
    #[serde(default)]
    weight_version: Version,
}

/// A log-prob, the token it belongs to, and its text if that was asked for.
type Triple = (Option<f32>, i32, IgnoredAny);

#[derive(Deserialize)]
struct Finish {
    r#type: String,
    #[serde(default)]
    message: Option<String>,
    /// With an abort that is no interruption: the request is at fault, or the engine.
    #[serde(default)]
    status_code: Option<u16>,
}

impl Finish {
    fn end(self) -> Result<End, Flaw> {
        match (self.status_code, End::named(Some(&self.r#type))?) {
            (Some(status), End::Cut) => {
                Err(Flaw::Refused { status, message: self.message.unwrap_or_default() })
            }
            (_, end) => Ok(end),
        }
    }
}

pub(super) fn answer(bytes: &[u8], exact: bool) -> Result<Piece, Flaw> {
    let Answer { output_ids, text, meta_info: meta } = serde_json::from_slice(bytes)?;
    let end = meta.finish_reason.map_or_else(|| End::named(None), Finish::end)?;
    let tokens = match (output_ids, meta.output_token_logprobs) {
        (ids, Some(triples)) => Some(read_triples(ids, &triples)?),
        // Interrupted before the first token, there is nothing to give a log-prob of.
        (None, None) if end == End::Cut => Some(Tokens::default()),
        (Some(ids), None) if ids.is_empty() => Some(Tokens::default()),
        (Some(_), None) if exact => {
            return Err(Flaw::NotExact { what: "log-probs", hint: "SGLang gives them to whoever asks" });
        }
        (None, None) if exact => {
            return Err(Flaw::NotExact { what: "token ids", hint: "does SGLang answer there?" });
        }
        (_, None) => None,
    };
    Ok(Piece { tokens, text, end, version: meta.weight_version.0 })
}

/// The ids beside the log-probs are the ones that were sampled; where the answer also lists them alone, both
/// must agree.
fn read_triples(ids: Option<Vec<i32>>, triples: &[Triple]) -> Result<Tokens, Flaw> {
    let mut logprobs = Vec::with_capacity(triples.len());
    for (at, (logprob, id, _)) in triples.iter().enumerate() {
        let Some(logprob) = logprob else {
            return Err(Flaw::Bad(format!("token {at} of {} has no log-prob: id {id}", triples.len())));
        };
        logprobs.push(*logprob);
    }
    let Some(ids) = ids else {
        return Tokens::paired(triples.iter().map(|(_, id, _)| *id).collect(), logprobs);
    };
    let tokens = Tokens::paired(ids, logprobs)?;
    let differs = tokens.ids.iter().zip(triples).position(|(id, (_, sampled, _))| id != sampled);
    match differs.and_then(|at| Some((at, tokens.ids.get(at)?, &triples.get(at)?.1))) {
        Some((at, id, sampled)) => {
            Err(Flaw::Bad(format!("token {at} is {id} among the ids, but {sampled} among the log-probs")))
        }
        None => Ok(tokens),
    }
}
