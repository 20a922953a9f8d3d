//! `sampling_params` as trainers write them.

use serde_json::{Map, Value};

use super::payload::{PayloadError, count, decimal, number, shown};
use crate::generate::GenerationConfig;

/// What is said where nobody says how long an answer may be.
const MAX_TOKENS: u32 = 4096;

const KNOWN: &str = "max_tokens, min_tokens, temperature, top_p, top_k, frequency_penalty, presence_penalty, stop, stop_token_ids, json_schema and seed";

/// `max_tokens` counts where the parameters do not say it themselves.
pub(super) fn read(
    params: &Map<String, Value>,
    max_tokens: Option<u32>,
) -> Result<GenerationConfig, PayloadError> {
    let mut gconfig =
        GenerationConfig { max_new_tokens: max_tokens.unwrap_or(MAX_TOKENS), ..GenerationConfig::default() };
    for (name, value) in params.iter().filter(|(_, value)| !value.is_null()) {
        let field = format!("sampling_params.{name}");
        let bad = |expected| PayloadError::Bad { field: field.clone(), value: shown(value), expected };
        match name.as_str() {
            "max_tokens" | "max_new_tokens" | "max_completion_tokens" => {
                gconfig.max_new_tokens = count(&field, value)?.get();
            }
            "min_tokens" | "min_new_tokens" => gconfig.min_new_tokens = number(&field, value)?,
            "temperature" => {
                gconfig.temperature =
                    decimal(value).filter(|it| *it >= 0.0).ok_or_else(|| bad("a number from 0"))? as f32;
                gconfig.greedy = gconfig.temperature == 0.0;
            }
            "top_p" => {
                let top_p = decimal(value).filter(|it| *it > 0.0 && *it <= 1.0);
                gconfig.top_p = top_p.ok_or_else(|| bad("a number above 0 and at most 1"))? as f32;
            }
            // Engines write "all tokens" as -1 or 0.
            "top_k" => {
                let top_k = decimal(value)
                    .filter(|it| it.fract() == 0.0 && *it >= -1.0 && *it <= f64::from(i32::MAX));
                let top_k = top_k.ok_or_else(|| bad("a whole number from 1, or -1 for all tokens"))?;
                gconfig.top_k = (top_k >= 1.0).then_some(top_k as u32);
            }
            "frequency_penalty" => {
                gconfig.frequency_penalty = decimal(value).ok_or_else(|| bad("a number"))? as f32;
            }
            "presence_penalty" => {
                gconfig.presence_penalty = decimal(value).ok_or_else(|| bad("a number"))? as f32;
            }
            "json_schema" => {
                gconfig.json_schema = Some(schema(value).ok_or_else(|| bad("a JSON schema, or its text"))?);
            }
            "stop" => gconfig.stop = texts(value).ok_or_else(|| bad("a text or a list of texts"))?,
            "stop_token_ids" => {
                gconfig.stop_token_ids = ids(value).ok_or_else(|| bad("a list of token ids"))?;
            }
            "seed" | "sampling_seed" => gconfig.seed = Some(number(&field, value)?),
            _ => return Err(PayloadError::UnknownSampling { field, value: shown(value), known: KNOWN }),
        }
    }
    if gconfig.min_new_tokens > gconfig.max_new_tokens {
        return Err(PayloadError::Bad {
            field: "sampling_params.min_tokens".into(),
            value: gconfig.min_new_tokens.to_string(),
            expected: "at most max_tokens",
        });
    }
    Ok(gconfig)
}

/// As an object, or as the text of one.
fn schema(value: &Value) -> Option<String> {
    match value {
        Value::Object(_) => Some(value.to_string()),
        Value::String(text) => serde_json::from_str::<Map<String, Value>>(text).is_ok().then(|| text.clone()),
        _ => None,
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(list) => list.iter().map(|text| text.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

fn ids(value: &Value) -> Option<Vec<i32>> {
    let id = |value: &Value| value.as_i64().and_then(|id| i32::try_from(id).ok()).filter(|id| *id >= 0);
    value.as_array()?.iter().map(id).collect()
}
