//! What is wrong with a request is said before it takes a place.

use super::Facts;
use super::ask::{Ask, AskError};
use crate::model::DecoderError;

/// As many alternatives as OpenAI gives.
const TOPS_MAX: usize = 20;

pub(super) fn check(ask: &Ask, facts: Facts) -> Result<(), AskError> {
    let Facts { vocabulary, context } = facts;
    if ask.prompt.is_empty() {
        return Err(AskError::bad("prompt", "the prompt has no tokens; give at least one".to_owned()));
    }
    let known = |token: i32| usize::try_from(token).is_ok_and(|token| token < vocabulary);
    if let Some(token) = ask.prompt.iter().find(|token| !known(**token)) {
        return Err(AskError::bad(
            "prompt",
            DecoderError::NoSuchToken { token: *token, vocabulary }.to_string(),
        ));
    }
    if ask.prompt.len() >= context {
        let tokens = ask.prompt.len();
        return Err(AskError::bad(
            "prompt",
            format!(
                "a prompt of {tokens} tokens leaves no room for an answer in the model's context of {context}; \
                 shorten it to at most {} tokens",
                context.saturating_sub(1)
            ),
        ));
    }
    let sampling = &ask.sampling;
    let range = |field: &'static str, value: f32, fits: bool, want: &str| match fits {
        true => Ok(()),
        false => Err(AskError::bad(field, format!("field \"{field}\" is {value}, but must be {want}"))),
    };
    let temperature = sampling.temperature;
    range("temperature", temperature, (0.0..=100.0).contains(&temperature), "between 0 and 100")?;
    let top_p = sampling.top_p;
    range("top_p", top_p, top_p > 0.0 && top_p <= 1.0, "above 0 and at most 1")?;
    let penalty = sampling.frequency_penalty;
    range("frequency_penalty", penalty, (-2.0..=2.0).contains(&penalty), "between -2 and 2")?;
    let penalty = sampling.presence_penalty;
    range("presence_penalty", penalty, penalty == 0.0, "0, for this engine knows no such penalty")?;
    if let Some(schema) = &sampling.json_schema {
        return Err(AskError::bad(
            "json_schema",
            format!(
                "field \"json_schema\" is {schema:?}, but this engine cannot keep to a schema; leave it out"
            ),
        ));
    }
    if sampling.top_k == Some(0) {
        return Err(AskError::bad(
            "top_k",
            "field \"top_k\" is 0, but must be at least 1; -1 is for all".to_owned(),
        ));
    }
    if sampling.stop.iter().any(String::is_empty) {
        return Err(AskError::bad(
            "stop",
            "field \"stop\" has an empty text, which every answer has".to_owned(),
        ));
    }
    if sampling.min_new_tokens > sampling.max_new_tokens {
        return Err(AskError::bad(
            "min_new_tokens",
            format!(
                "field \"min_new_tokens\" is {}, but must not be above \"max_new_tokens\", which is {}",
                sampling.min_new_tokens, sampling.max_new_tokens
            ),
        ));
    }
    if ask.tops > TOPS_MAX {
        return Err(AskError::bad(
            "top_logprobs",
            format!("field \"top_logprobs\" is {}, but must be at most {TOPS_MAX}", ask.tops),
        ));
    }
    Ok(())
}
