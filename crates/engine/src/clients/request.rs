//! Refuses requests that no engine can answer, before anything is sent.

use serde::de::IgnoredAny;
use std::collections::BTreeMap as Map;

use crate::generate::{EngineError, GenerationConfig, ModelRequest, Prompt};

pub(super) fn check(request: &ModelRequest) -> Result<(), EngineError> {
    let wrong = wrong_prompt(&request.prompt).or_else(|| wrong_sampling(&request.gconfig));
    wrong.map_or(Ok(()), |reason| Err(EngineError::BadRequest(reason)))
}

fn wrong_prompt(prompt: &Prompt) -> Option<String> {
    match prompt {
        Prompt::Tokens(ids) if ids.is_empty() => Some("the prompt has no tokens".into()),
        Prompt::Tokens(ids) => {
            let (at, id) = ids.iter().enumerate().find(|(_, id)| **id < 0)?;
            Some(format!("token {at} of the prompt is {id}, but token ids are not negative"))
        }
        Prompt::Chat { messages, .. } if messages.is_empty() => Some("the prompt has no messages".into()),
        Prompt::Chat { .. } => None,
    }
}

fn wrong_sampling(gconfig: &GenerationConfig) -> Option<String> {
    let GenerationConfig { max_new_tokens, min_new_tokens, temperature, top_p, .. } = *gconfig;
    if max_new_tokens == 0 {
        return Some("`max_new_tokens` is 0, but at least one token is generated".into());
    }
    if min_new_tokens > max_new_tokens {
        return Some(format!(
            "`min_new_tokens` is {min_new_tokens}, but `max_new_tokens` only {max_new_tokens}"
        ));
    }
    if !(temperature.is_finite() && temperature >= 0.0) {
        return Some(format!("`temperature` is {temperature}, but must be 0 or more"));
    }
    if !(top_p > 0.0 && top_p <= 1.0) {
        return Some(format!("`top_p` is {top_p}, but must be above 0 and at most 1"));
    }
    if gconfig.top_k == Some(0) {
        return Some("`top_k` is 0; leave it out to sample from all tokens".into());
    }
    if !gconfig.frequency_penalty.is_finite() {
        return Some(format!("`frequency_penalty` is {}, which is no number", gconfig.frequency_penalty));
    }
    if !gconfig.presence_penalty.is_finite() {
        return Some(format!("`presence_penalty` is {}, which is no number", gconfig.presence_penalty));
    }
    wrong_schema(gconfig.json_schema.as_deref()?)
}

fn wrong_schema(schema: &str) -> Option<String> {
    match serde_json::from_str::<Map<String, IgnoredAny>>(schema) {
        Ok(_) => None,
        Err(error) => Some(format!("`json_schema` is {schema:?}, which is no JSON object ({error})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_engine_can_answer_is_refused_with_field_and_value() {
        let fine = GenerationConfig::default;
        let token = || Prompt::Tokens(vec![1]);
        let chat = Prompt::Chat { messages: Vec::new(), tools: None };
        for (prompt, gconfig, says) in [
            (Prompt::Tokens(Vec::new()), fine(), "no tokens"),
            (Prompt::Tokens(vec![4, -3]), fine(), "token 1 of the prompt is -3"),
            (chat, fine(), "no messages"),
            (token(), GenerationConfig { max_new_tokens: 0, ..fine() }, "`max_new_tokens` is 0"),
            (
                token(),
                GenerationConfig { max_new_tokens: 4, min_new_tokens: 5, ..fine() },
                "`min_new_tokens` is 5, but `max_new_tokens` only 4",
            ),
            (token(), GenerationConfig { temperature: -0.5, ..fine() }, "`temperature` is -0.5"),
            (token(), GenerationConfig { temperature: f32::NAN, ..fine() }, "`temperature` is NaN"),
            (token(), GenerationConfig { top_p: 0.0, ..fine() }, "`top_p` is 0"),
            (token(), GenerationConfig { top_k: Some(0), ..fine() }, "`top_k` is 0"),
            (token(), GenerationConfig { frequency_penalty: f32::INFINITY, ..fine() }, "is inf"),
            (token(), GenerationConfig { presence_penalty: f32::NAN, ..fine() }, "`presence_penalty` is NaN"),
            (
                token(),
                GenerationConfig { json_schema: Some("[1]".into()), ..fine() },
                "`json_schema` is \"[1]\"",
            ),
        ] {
            let request = ModelRequest {
                rid: String::new(),
                prompt,
                gconfig,
                session: None,
                metadata: serde_json::Map::new(),
            };
            let error = check(&request).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
