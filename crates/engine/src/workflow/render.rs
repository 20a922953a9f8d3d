//! A conversation as the model's own tokens, and its tokens as text.

use rollyard_core::tokens::Tokenizer;
use rollyard_core::tokens::template::{CivilTime, Message as Said, Render, Value, json};
use serde_json::Map;
use serde_json::value::RawValue;
use std::fmt::Display;
use std::sync::Arc;

use crate::episode::EpisodeError;
use crate::generate::Message;

/// Writes the conversations of one episode. The date is that of its beginning, so that a prompt does not
/// change at midnight.
#[derive(Debug)]
pub struct Renderer {
    tokenizer: Arc<Tokenizer>,
    tools: Option<Value>,
    kwargs: Vec<(String, Value)>,
    now: CivilTime,
}

impl Renderer {
    /// `kwargs` are further variables of the template, such as `enable_thinking`.
    pub fn new(
        tokenizer: &Arc<Tokenizer>,
        tools: Option<&RawValue>,
        kwargs: &Map<String, serde_json::Value>,
    ) -> Result<Self, EpisodeError> {
        Ok(Self {
            tokenizer: tokenizer.clone(),
            tools: tools.map(|tools| json::parse(tools.get())).transpose().map_err(bad)?,
            kwargs: kwargs.iter().map(|(name, value)| (name.clone(), json::from_json(value))).collect(),
            now: local_time(),
        })
    }

    /// The messages with the generation prompt: what the model is asked with.
    pub fn asked(&self, messages: &[&RawValue]) -> Result<String, EpisodeError> {
        self.render(messages, true)
    }

    /// The messages as they stand when nothing is asked.
    pub fn said(&self, messages: &[&RawValue]) -> Result<String, EpisodeError> {
        self.render(messages, false)
    }

    fn render(&self, messages: &[&RawValue], add_generation_prompt: bool) -> Result<String, EpisodeError> {
        let read = |(index, message): (usize, &&RawValue)| {
            Said::from_value(index, &json::parse(message.get()).map_err(bad)?).map_err(bad)
        };
        let messages: Vec<Said> = messages.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let how = Render {
            tools: self.tools.as_ref(),
            add_generation_prompt,
            now: Some(self.now),
            kwargs: &self.kwargs,
            ..Render::default()
        };
        Ok(self.tokenizer.render(&messages, &how).map_err(bad)?.text)
    }

    /// The tokens of a text, with nothing added: a template writes its special tokens itself.
    pub fn encode(&self, text: &str) -> Result<Vec<i32>, EpisodeError> {
        Ok(self.tokenizer.encoder().encode(text).map_err(bad)?.into_iter().map(signed).collect())
    }

    /// What follows `before` in a text, as tokens. `None` if a token reaches over the place between.
    pub fn encode_after(&self, before: &str, text: &str) -> Result<Option<Vec<i32>>, EpisodeError> {
        let encoder = self.tokenizer.encoder();
        let encoded = encoder.encode_with_ends(&[before, text].concat()).map_err(bad)?;
        let count = encoded.ends.partition_point(|end| *end as usize <= before.len());
        let reached =
            count.checked_sub(1).and_then(|last| encoded.ends.get(last)).map_or(0, |end| *end as usize);
        let after = || encoded.ids.iter().skip(count).copied().map(signed).collect();
        Ok((reached == before.len()).then(after))
    }

    /// Every token as it is.
    pub fn decode(&self, ids: &[i32]) -> Result<String, EpisodeError> {
        decode(&self.tokenizer, ids, false)
    }

    /// Without special tokens: what a reader of the conversation sees.
    pub fn decode_plain(&self, ids: &[i32]) -> Result<String, EpisodeError> {
        decode(&self.tokenizer, ids, true)
    }

    pub fn is_special(&self, id: i32) -> bool {
        u32::try_from(id).is_ok_and(|id| self.tokenizer.encoder().is_special(id))
    }

    /// Whether a text begins with a token that nothing before it can reach into.
    pub fn begins_apart(&self, text: &str) -> bool {
        self.tokenizer.encoder().added_tokens().iter().any(|token| text.starts_with(&token.content))
    }
}

fn decode(tokenizer: &Tokenizer, ids: &[i32], plain: bool) -> Result<String, EpisodeError> {
    // An id that no vocabulary has is passed over, as the encoder does with unknown ones.
    let ids: Vec<u32> = ids.iter().filter_map(|id| u32::try_from(*id).ok()).collect();
    tokenizer.encoder().decode(&ids, plain).map_err(bad)
}

fn signed(id: u32) -> i32 {
    i32::try_from(id).expect("vocabularies are smaller than 2^31")
}

fn bad(error: impl Display) -> EpisodeError {
    EpisodeError::BadData(error.to_string())
}

/// As a renderer takes them, whoever owns them.
pub fn refs(messages: &[Message]) -> Vec<&RawValue> {
    messages.iter().map(AsRef::as_ref).collect()
}

/// The local time, for templates that print it.
pub fn local_time() -> CivilTime {
    let now = jiff::Zoned::now();
    let small = |number: i8| number.unsigned_abs();
    CivilTime {
        year: i32::from(now.year()),
        month: small(now.month()),
        day: small(now.day()),
        hour: small(now.hour()),
        minute: small(now.minute()),
        second: small(now.second()),
        microsecond: u32::from(now.microsecond().unsigned_abs()),
    }
}
