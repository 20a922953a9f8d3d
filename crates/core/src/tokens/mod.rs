//! From messages to the text, and the tokens, that a model reads.
//!
//! [`config`] says what a model's files mean, [`template`] renders a conversation as the model's authors do.

pub mod config;
pub mod template;

pub use config::{ConfigError, ModelConfig, ModelFiles, SpecialTokens};
pub use template::{ChatTemplate, Message, Render, Rendered, TemplateError};
