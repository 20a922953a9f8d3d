//! The model that answers, as agents know it.

use rollyard_core::tokens::Tokenizer;
use std::sync::Arc;

use crate::parse::{Grammar, UnknownGrammar};
use crate::refusal::{Kind, Refusal};
use crate::session::continuity::Continuity;

/// Any name is taken for ours.
pub const ANY_NAME: &str = "*";

/// Tokens that a conversation may have where neither the user nor the model's files say.
const CONTEXT_TOKENS: usize = 32_768;

/// What is said of a model when a gateway is opened.
#[derive(Clone, Debug)]
pub struct ModelSettings {
    pub name: String,
    pub aliases: Vec<String>,
    pub tokenizer: Arc<Tokenizer>,
    /// As the model's files say, if left out.
    pub context_tokens: Option<usize>,
    /// How the model writes thoughts and calls; found in its chat template, if left out.
    pub grammar: Option<String>,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    #[error(transparent)]
    Grammar(#[from] UnknownGrammar),
    #[error("the model has no chat template that can be used: {0}")]
    Template(String),
}

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
    pub fn open(settings: ModelSettings) -> Result<Self, ModelError> {
        let ModelSettings { name, aliases, tokenizer, context_tokens, grammar } = settings;
        let grammar = match grammar {
            Some(name) => Grammar::named(&name)?,
            None => {
                let template = tokenizer.config().template(None, true);
                let template = template.map_err(|error| ModelError::Template(error.to_string()))?;
                Grammar::of_template(template.source())
            }
        };
        let told = tokenizer.config().model_max_length.and_then(|length| usize::try_from(length).ok());
        let context_tokens = context_tokens.or(told).unwrap_or(CONTEXT_TOKENS);
        Ok(Self { name, aliases, tokenizer, grammar, context_tokens, continuity: Continuity::default() })
    }

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
