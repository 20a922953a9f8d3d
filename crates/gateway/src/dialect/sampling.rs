//! How to sample, as all dialects say it. What only one of them has, such as `stop_token_ids`, is understood in all:
//! clients can send further fields, and a field that counts must not be passed over.

use serde_json::value::RawValue;

use super::fields::{Fields, wrong};
use crate::ask::Sampling;
use crate::refusal::Refusal;

const STOPS_MAX: usize = 16;

/// What the dialects call differently.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    /// The first that is given counts.
    pub(super) max_tokens: &'static [&'static str],
    pub(super) stop: &'static str,
}

pub(super) fn read(body: &Fields<'_>, names: Names) -> Result<Sampling, Refusal> {
    let penalty = |name| body.number(name, -2.0..=2.0, "a number from -2 to 2");
    let sampling = Sampling {
        max_tokens: max_tokens(body, names)?,
        min_tokens: body.count("min_tokens", 0..=u32::MAX, "a whole number from 0")?,
        temperature: body.number("temperature", 0.0..=2.0, "a number from 0 to 2")?,
        top_p: body.number("top_p", f32::MIN_POSITIVE..=1.0, "a number above 0 and up to 1")?,
        top_k: top_k(body)?,
        frequency_penalty: penalty("frequency_penalty")?,
        presence_penalty: penalty("presence_penalty")?.filter(|penalty| *penalty != 0.0),
        stop: stops(body, names.stop)?,
        stop_token_ids: stop_token_ids(body)?,
        seed: body.get("seed", "a whole number of 64 bits")?.map(i64::cast_unsigned),
        json_schema: None,
    };
    refuse_bias(body)?;
    match (sampling.min_tokens, sampling.max_tokens) {
        (Some(min), Some(max)) if min > max => {
            Err(body.wrong("min_tokens", &format!("at most {max}, as many as there may be")))
        }
        _ => Ok(sampling),
    }
}

/// The schema that `format` asks the answer to follow: `{"type": "text" | "json_object" | "json_schema"}`.
/// The field `schema` is in the object itself, or in one that it has by the name `within`.
pub(super) fn schema(format: Option<&Fields<'_>>, within: Option<&str>) -> Result<Option<String>, Refusal> {
    const ANY_OBJECT: &str = r#"{"type":"object"}"#;
    let Some(format) = format else { return Ok(None) };
    match format.text("type")?.as_deref() {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(ANY_OBJECT.to_owned())),
        Some("json_schema") => {
            let read = |holder: &Fields<'_>| -> Result<String, Refusal> {
                let raw = holder.need("schema", "a JSON schema")?;
                Fields::of(holder.at("schema"), raw, "a JSON schema, which is an object")?;
                Ok(raw.get().to_owned())
            };
            match within {
                None => read(format).map(Some),
                Some(name) => {
                    let raw = format.need(name, "an object with a schema")?;
                    read(&Fields::of(format.at(name), raw, "an object with a schema")?).map(Some)
                }
            }
        }
        _ => Err(format.wrong("type", "\"text\", \"json_object\" or \"json_schema\"")),
    }
}

fn max_tokens(body: &Fields<'_>, names: Names) -> Result<Option<u32>, Refusal> {
    for name in names.max_tokens {
        if let Some(count) = body.count(name, 1..=u32::MAX, "a whole number from 1")? {
            return Ok(Some(count));
        }
    }
    Ok(None)
}

/// Engines say "all tokens" with -1 or 0.
fn top_k(body: &Fields<'_>) -> Result<Option<u32>, Refusal> {
    let want = "a whole number from 1, or -1 for all tokens";
    match body.get::<i64>("top_k", want)? {
        None | Some(-1 | 0) => Ok(None),
        Some(count) => u32::try_from(count).map(Some).map_err(|_| body.wrong("top_k", want)),
    }
}

fn stops(body: &Fields<'_>, name: &str) -> Result<Vec<String>, Refusal> {
    let want = format!("a text or a list of up to {STOPS_MAX} texts, none of them empty");
    let Some(raw) = body.raw(name) else { return Ok(Vec::new()) };
    let stops: Option<Vec<String>> = match serde_json::from_str(raw.get()) {
        Ok(text) => Some(vec![text]),
        Err(_) => serde_json::from_str(raw.get()).ok(),
    };
    stops
        .filter(|stops| stops.len() <= STOPS_MAX && !stops.iter().any(String::is_empty))
        .ok_or_else(|| body.wrong(name, &want))
}

fn stop_token_ids(body: &Fields<'_>) -> Result<Vec<i32>, Refusal> {
    match body.raw("stop_token_ids") {
        None => Ok(Vec::new()),
        Some(raw) => token_ids(raw)
            .ok_or_else(|| wrong(body.at("stop_token_ids"), raw, "a list of token ids, each from 0")),
    }
}

pub(super) fn token_ids(raw: &RawValue) -> Option<Vec<i32>> {
    let ids: Vec<i32> = serde_json::from_str(raw.get()).ok()?;
    ids.iter().all(|id| *id >= 0).then_some(ids)
}

/// A bias changes what is sampled, so it is not passed over like other fields that nobody here knows.
fn refuse_bias(body: &Fields<'_>) -> Result<(), Refusal> {
    let Some(bias) = body.raw("logit_bias") else { return Ok(()) };
    if bias.get().chars().any(|char| char.is_ascii_digit()) {
        return Err(wrong(body.at("logit_bias"), bias, "left out: the engines here know no bias"));
    }
    Ok(())
}
