//! Prompts in any form that engines take: a text or token ids, one or a list of them.

use rollyard_core::tokens::Tokenizer;
use serde_json::value::RawValue;

use super::refusal::{Refusal, shown};
use crate::engine::TinyEngine;

#[derive(Debug, PartialEq)]
pub(super) struct Prompts {
    pub(super) prompts: Prompted,
    /// A list is answered with a list.
    pub(super) is_list: bool,
}

#[derive(Debug, PartialEq)]
pub(super) enum Prompted {
    Texts(Vec<String>),
    Tokens(Vec<Vec<i32>>),
}

/// What a request can ask for at once.
const PROMPTS_MAX: usize = 1024;

impl Prompts {
    pub(super) fn parse(field: &str, raw: &RawValue) -> Result<Self, Refusal> {
        let wrong = || Refusal::wrong(field, shown(raw), "a text, token ids, or a list of either");
        let text = raw.get().trim();
        let (prompts, is_list) = if text.starts_with('"') {
            (serde_json::from_str(text).map(|text| Prompted::Texts(vec![text])), false)
        } else {
            // What the list begins with says what it is a list of.
            match text.strip_prefix('[').and_then(|rest| rest.trim_start().chars().next()) {
                Some('"') => (serde_json::from_str(text).map(Prompted::Texts), true),
                Some('[') => (serde_json::from_str(text).map(Prompted::Tokens), true),
                Some(']') | None => return Err(wrong()),
                Some(_) => (serde_json::from_str(text).map(|ids| Prompted::Tokens(vec![ids])), false),
            }
        };
        let prompts = Self { prompts: prompts.map_err(|_| wrong())?, is_list };
        match prompts.len() {
            0 => Err(wrong()),
            count if count > PROMPTS_MAX => {
                Err(Refusal::wrong(field, format!("{count} prompts"), &format!("at most {PROMPTS_MAX}")))
            }
            _ => Ok(prompts),
        }
    }

    fn len(&self) -> usize {
        match &self.prompts {
            Prompted::Texts(texts) => texts.len(),
            Prompted::Tokens(lists) => lists.len(),
        }
    }

    pub(super) fn tokens(self, field: &str, tokenizer: &Tokenizer) -> Result<Vec<Vec<i32>>, Refusal> {
        let texts = match self.prompts {
            Prompted::Tokens(lists) => return Ok(lists),
            Prompted::Texts(texts) => texts,
        };
        let encode = |text: String| {
            let ids = tokenizer.encoder().encode_with_special(&text);
            let ids = ids.map_err(|error| Refusal::bad(field, format!("field {field:?}: {error}")))?;
            Ok(ids.into_iter().filter_map(|id| i32::try_from(id).ok()).collect())
        };
        texts.into_iter().map(encode).collect()
    }
}

/// Says by how much a prompt is too long, and which of its tokens are none.
pub(super) fn check(field: &str, prompt: &[i32], engine: &TinyEngine) -> Result<(), Refusal> {
    let (tokens, context, vocabulary) = (prompt.len(), engine.context(), engine.vocabulary());
    if prompt.is_empty() {
        return Err(Refusal::bad(field, format!("field {field:?} has no tokens; give at least one")));
    }
    if tokens >= context {
        let room = context.saturating_sub(1);
        let message = format!(
            "the prompt has {tokens} tokens, which is {} too many: the model's context of {context} has room for \
             {room} and an answer",
            tokens - room
        );
        return Err(Refusal { code: "context_length_exceeded", ..Refusal::bad(field, message) });
    }
    let known = |token: i32| usize::try_from(token).is_ok_and(|token| token < vocabulary);
    match prompt.iter().position(|token| !known(*token)) {
        Some(at) => {
            let token = prompt.get(at).copied().unwrap_or_default();
            let message = format!(
                "field {field:?} has the token {token} at {at}, but the model's are 0 to {}",
                vocabulary - 1
            );
            Err(Refusal::bad(field, message))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_read_in_every_form() {
        let texts = |texts: &[&str]| Prompted::Texts(texts.iter().map(|text| (*text).to_owned()).collect());
        for (json, prompts, is_list) in [
            (r#""12+3""#, texts(&["12+3"]), false),
            (r#" [ "a", "b" ]"#, texts(&["a", "b"]), true),
            ("[1, 2]", Prompted::Tokens(vec![vec![1, 2]]), false),
            ("[[1], [2, 3]]", Prompted::Tokens(vec![vec![1], vec![2, 3]]), true),
        ] {
            let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
            assert_eq!(Prompts::parse("prompt", &raw).unwrap(), Prompts { prompts, is_list }, "{json}");
        }
        for json in ["7", "{}", "[]", "[1, \"a\"]", "[\"a\", 1]", "[[1], 2]", "[1.5]", "[null]", "true"] {
            let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
            let refusal = Prompts::parse("prompt", &raw).unwrap_err();
            assert!(refusal.message.starts_with(&format!("field \"prompt\" is {json}, but")), "{refusal}");
        }
    }
}
