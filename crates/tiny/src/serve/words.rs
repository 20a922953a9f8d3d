//! Tokens as text, and their log-probs as OpenAI writes them.

use rollyard_core::tokens::Tokenizer;
use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::add;
use crate::engine::{Alternative, Sampled};

/// Knows what tokens are called.
#[derive(Clone, Debug)]
pub(super) struct Words(Arc<Tokenizer>);

impl Words {
    pub(super) fn new(tokenizer: &Arc<Tokenizer>) -> Self {
        Self(Arc::clone(tokenizer))
    }

    /// What a token adds to a text. Bytes that are no whole character are written as `\xE2`.
    pub(super) fn word(&self, token: i32) -> String {
        let id = u32::try_from(token).ok();
        let words = id.and_then(|id| self.0.encoder().texts(&[id]).ok());
        words.and_then(|words| words.into_iter().next()).unwrap_or_default()
    }

    /// `null` where the token alone is no text.
    fn bytes(&self, token: i32) -> Value {
        let id = u32::try_from(token).ok();
        let text = id.and_then(|id| self.0.encoder().decode(&[id], false).ok());
        text.filter(|text| !text.contains('\u{fffd}')).map_or(Value::Null, |text| json!(text.as_bytes()))
    }

    /// Of chat completions.
    pub(super) fn chat(&self, tokens: &[Sampled], tops: usize) -> Value {
        let one = |token: i32, logprob: f32| json!({"token": self.word(token), "logprob": logprob, "bytes": self.bytes(token)});
        let content = tokens.iter().map(|sampled| {
            let mut entry = one(sampled.token, sampled.logprob);
            let likeliest = sampled.tops.iter().take(tops);
            add(&mut entry, "top_logprobs", likeliest.map(|top| one(top.token, top.logprob)).collect());
            entry
        });
        json!({"content": content.collect::<Vec<Value>>(), "refusal": null})
    }

    /// Of completions. `offset` is where in the text the first of the tokens begins, in characters.
    pub(super) fn completion(&self, tokens: &[Sampled], tops: usize, offset: &mut usize) -> Value {
        let words: Vec<String> = tokens.iter().map(|sampled| self.word(sampled.token)).collect();
        let likeliest = tokens.iter().zip(&words).map(|(sampled, word)| {
            let tops = sampled.tops.iter().take(tops);
            let named = tops.map(|Alternative { token, logprob }| (self.word(*token), json!(logprob)));
            // The one that was sampled is among them, however unlikely it was.
            named.chain([(word.clone(), json!(sampled.logprob))]).collect::<Map<String, Value>>()
        });
        let likeliest: Vec<Map<String, Value>> = likeliest.collect();
        let offsets: Vec<usize> =
            words.iter().map(|word| std::mem::replace(offset, *offset + word.chars().count())).collect();
        let logprobs: Vec<f32> = tokens.iter().map(|sampled| sampled.logprob).collect();
        json!({"tokens": words, "token_logprobs": logprobs, "top_logprobs": likeliest, "text_offset": offsets})
    }
}
