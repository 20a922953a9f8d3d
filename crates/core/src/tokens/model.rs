//! A model's tokenizer: its encoder and its chat templates under one roof.

use super::config::{ConfigError, ModelConfig, ModelFiles};
use super::encode::{Encoder, EncoderError};
use super::template::{Message, Render, Rendered};

#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    #[error(transparent)]
    Encoder(#[from] EncoderError),
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Built once from a model's files and shared by all threads.
#[derive(Debug)]
pub struct Tokenizer {
    encoder: Encoder,
    config: ModelConfig,
}

impl Tokenizer {
    pub fn new(tokenizer_json: &[u8], files: ModelFiles<'_>) -> Result<Self, TokenizerError> {
        Ok(Self { encoder: Encoder::from_json(tokenizer_json)?, config: ModelConfig::parse(files)? })
    }

    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The conversation as the model's template writes it: the one for tools where there are tools and it
    /// has one, or else the default.
    pub fn render(&self, messages: &[Message], how: &Render<'_>) -> Result<Rendered, ConfigError> {
        Ok(self.config.template(None, how.tools.is_some())?.render(messages, how)?)
    }
}
