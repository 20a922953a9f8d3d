//! The model that answers, as agents know it.

use rollyard_core::tokens::Tokenizer;
use std::sync::Arc;

use crate::parse::Grammar;
use crate::refusal::{Kind, Refusal};
use crate::session::continuity::Continuity;

/// Any name is taken for ours.
pub const ANY_NAME: &str = "*";

#[derive(Debug)]
pub struct Model {
    pub name: String,
    /// Other names that agents call it by; [`ANY_NAME`] is all of them.
    pub aliases: Vec<String>,
    pub tokenizer: Arc<Tokenizer>,
    pub grammar: Grammar,
    /// Tokens that prompt and answer may have together.
    pub context_tokens: usize,
    pub continuity: Continuity,
}

impl Model {
    /// The name to answer with.
    pub fn called(&self, name: Option<&str>) -> Result<String, Refusal> {
        let Some(name) = name else { return Ok(self.name.clone()) };
        let is_ours =
            name == self.name || self.aliases.iter().any(|alias| alias == name || alias == ANY_NAME);
        if is_ours {
            return Ok(name.to_owned());
        }
        let others =
            if self.aliases.is_empty() { String::new() } else { format!(", {}", self.aliases.join(", ")) };
        Err(Refusal {
            field: Some("model".to_owned()),
            ..Refusal::new(
                Kind::NotFound,
                format!("model is {name:?}, but the model here is called {:?}{others}", self.name),
            )
        })
    }

    /// How many tokens an answer may have behind this prompt.
    pub fn room(&self, prompt_tokens: usize, wanted: Option<u32>) -> Result<u32, Refusal> {
        let left = self.context_tokens.saturating_sub(prompt_tokens);
        if left == 0 {
            let over = prompt_tokens + 1 - self.context_tokens;
            let message = format!(
                "the prompt has {prompt_tokens} tokens, but the context has {} and one is needed for the answer: \
                 {over} too many",
                self.context_tokens
            );
            return Err(Refusal::new(Kind::ContextLength, message));
        }
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        Ok(wanted.map_or(left, |wanted| wanted.min(left)))
    }
}
