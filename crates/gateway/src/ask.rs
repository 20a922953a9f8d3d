//! What an agent asks for, whichever dialect it speaks.
//!
//! Messages and tools are in OpenAI's chat form, because chat templates are written for it: the other dialects are
//! translated when they are read.

use rollyard_engine::generate::Message;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::num::NonZeroU32;

#[derive(Clone, Debug)]
pub struct Ask {
    /// As the agent calls it.
    pub model: Option<String>,
    pub prompt: Prompt,
    pub sampling: Sampling,
    /// Answers to the same prompt.
    pub choices: NonZeroU32,
    /// The log-probs of sampled tokens are told.
    pub logprobs: bool,
    pub streams: bool,
    /// In a stream of chat completions the usage is told only to whoever asks for it.
    pub usage_in_stream: bool,
    /// Further variables of the template, such as `enable_thinking`.
    pub template_kwargs: Map<String, Value>,
}

#[derive(Clone, Debug)]
pub enum Prompt {
    Chat(Chat),
    Text(String),
    Tokens(Vec<i32>),
}

#[derive(Clone, Debug)]
pub struct Chat {
    /// The answer that the messages follow, if its conversation is not repeated: `previous_response_id`.
    pub follows: Option<String>,
    pub messages: Vec<Message>,
    /// A list of `{"type": "function", "function": {"name", "description", "parameters"}}`, at least one. Not given with
    /// [`ToolChoice::None`], and the named one alone with [`ToolChoice::Named`].
    pub tools: Option<Box<RawValue>>,
    pub tool_choice: ToolChoice,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    #[default]
    Auto,
    None,
    /// Some tool must be called.
    Required,
    /// This tool must be called.
    Named(String),
}

/// How to sample; what the agent leaves out is the session's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    pub max_tokens: Option<u32>,
    pub min_tokens: Option<u32>,
    pub temperature: Option<f32>,
    pub top_p: Option<f32>,
    pub top_k: Option<u32>,
    pub frequency_penalty: Option<f32>,
    /// Only where it changes something.
    pub presence_penalty: Option<f32>,
    pub stop: Vec<String>,
    pub stop_token_ids: Vec<i32>,
    pub seed: Option<u64>,
    /// The answer must be JSON by this schema.
    pub json_schema: Option<String>,
}
