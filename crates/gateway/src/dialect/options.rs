//! Wishes that several dialects have in common, besides how to sample.

use serde_json::{Map, Value};
use std::num::NonZeroU32;

use super::fields::Fields;
use crate::refusal::Refusal;

pub(super) fn choices(body: &Fields<'_>) -> Result<NonZeroU32, Refusal> {
    let choices = body.count("n", 1..=128, "a whole number from 1 to 128")?;
    Ok(choices.and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN))
}

pub(super) fn usage_in_stream(body: &Fields<'_>) -> Result<bool, Refusal> {
    body.object("stream_options")?.map_or(Ok(false), |options| options.flag("include_usage"))
}

/// What the template is told by its own names counts more than what a dialect calls the effort.
pub(super) fn template_kwargs(
    body: &Fields<'_>,
    effort: Option<String>,
) -> Result<Map<String, Value>, Refusal> {
    let given: Map<String, Value> = body.get("chat_template_kwargs", "an object")?.unwrap_or_default();
    let mut kwargs = Map::new();
    kwargs.extend(effort.map(|effort| ("reasoning_effort".to_owned(), Value::String(effort))));
    kwargs.extend(given);
    Ok(kwargs)
}

pub(super) fn refuse_tops(body: &Fields<'_>) -> Result<(), Refusal> {
    let want = "0 or left out: only the log-prob of the sampled token is known";
    body.count("top_logprobs", 0..=0, want).map(drop)
}
