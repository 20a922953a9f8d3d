//! What an engine is asked, what it answers, and the trait that all of them have.
//!
//! An answer is made of segments: a generation that is interrupted, because the weights change, goes on where
//! it stopped, and each segment has the version of the weights that sampled it. The version is the one that
//! was pinned before the segment was requested, or the one the engine reports; never the one at the end.

use futures_util::future::BoxFuture;
use rollyard_core::rollout::Runs;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How to sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GenerationConfig {
    pub max_new_tokens: u32,
    pub min_new_tokens: u32,
    /// The most likely token every time; `temperature`, `top_p` and `top_k` do not count then.
    pub greedy: bool,
    pub temperature: f32,
    pub top_p: f32,
    /// All tokens, if left out.
    pub top_k: Option<u32>,
    pub frequency_penalty: f32,
    pub presence_penalty: f32,
    pub stop: Vec<String>,
    pub stop_token_ids: Vec<i32>,
    /// The answer is JSON that a schema, given as its text, allows; `{"type": "object"}` allows any object.
    pub json_schema: Option<String>,
    /// For engines that can sample by a seed; the executor gives every episode its own.
    pub seed: Option<u64>,
}

impl Default for GenerationConfig {
    fn default() -> Self {
        Self {
            max_new_tokens: 1024,
            min_new_tokens: 0,
            greedy: false,
            temperature: 1.0,
            top_p: 1.0,
            top_k: None,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            stop: Vec::new(),
            stop_token_ids: Vec::new(),
            json_schema: None,
            seed: None,
        }
    }
}

/// A chat message as its JSON text: what a user wrote is sent, rendered and kept as it was written.
pub type Message = Box<RawValue>;

/// What to go on from.
#[derive(Clone, Debug)]
pub enum Prompt {
    /// Exact: these tokens and no others. For SGLang and vLLM.
    Tokens(Vec<i32>),
    /// For engines that only speak text and apply a template of their own.
    Chat { messages: Vec<Message>, tools: Option<Box<RawValue>> },
}

#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// Names the request to the engine, so that it can be aborted. Made up if empty.
    pub rid: String,
    pub prompt: Prompt,
    pub gconfig: GenerationConfig,
    /// Requests of one session go to one server as long as it is well, for the sake of its prefix cache.
    pub session: Option<String>,
    pub metadata: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    Stop,
    Length,
    ToolCalls,
    /// Interrupted, and not to be continued: the caller went away.
    Abort,
}

/// Tokens that were sampled in one go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub tokens: usize,
    /// Of the weights; [`rollyard_core::rollout::NO_VERSION`] if nobody knows.
    pub version: i32,
}

#[derive(Clone, Debug)]
pub struct ModelResponse {
    /// The prompt's tokens; empty where the engine only speaks text.
    pub input_tokens: Vec<i32>,
    /// Every token that was sampled, over all segments; empty where the engine only speaks text.
    pub output_tokens: Vec<i32>,
    /// One for each token of the output.
    pub output_logprobs: Vec<f32>,
    pub segments: Vec<Segment>,
    /// As the engine wrote it, where it did.
    pub text: Option<String>,
    /// The assistant's message as a chat engine wrote it.
    pub message: Option<Message>,
    pub stop_reason: StopReason,
    pub latency: Duration,
    /// Until the first token, or until the answer where the engine does not stream.
    pub ttft: Duration,
    /// These tokens are the ones that were sampled. False where the engine only speaks text.
    pub is_exact: bool,
}

impl ModelResponse {
    /// The version of each token of the output.
    pub fn output_versions(&self) -> Runs<i32> {
        let mut versions = Runs::default();
        for segment in &self.segments {
            versions.push(segment.version, segment.tokens);
        }
        versions
    }

    /// Tells of every token, as if it had just been sampled.
    pub fn tell(&self, listener: Listener<'_>) {
        let versions =
            self.segments.iter().flat_map(|segment| std::iter::repeat_n(segment.version, segment.tokens));
        for (at, version) in versions.enumerate() {
            let tokens = self.output_tokens.get(at..=at).unwrap_or_default();
            let logprobs = self.output_logprobs.get(at..=at).unwrap_or_default();
            listener(Delta { tokens, logprobs, version });
        }
    }
}

/// What an engine can be relied on for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Takes token ids and gives the sampled ones back.
    pub token_ids: bool,
    pub logprobs: bool,
    /// Says which weights it sampled with.
    pub versions: bool,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EngineError {
    #[error("the engine cannot be reached ({reason}); is it running there? {url}")]
    Unreachable { reason: String, url: String },
    #[error("the engine did not answer within {secs} s: {url}")]
    Timeout { secs: f64, url: String },
    #[error("the engine answered with status {status}: {message}: {url}")]
    Refused { status: u16, message: String, url: String },
    #[error("the engine's answer is not understood: {reason}: {url}")]
    BadAnswer { reason: String, url: String },
    #[error("the engine gives no {what}, but exact tokens were asked for; {hint}: {url}")]
    NotExact { what: &'static str, hint: &'static str, url: String },
    #[error("the engine interrupted the generation {times} times in a row without a new token: {url}")]
    Interrupted { times: u32, url: String },
    #[error("{0}")]
    BadRequest(String),
    #[error("the engine is closed")]
    Closed,
}

impl EngineError {
    /// Whether asking again may help. Generation changes nothing on the server, so it may always be repeated.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Timeout { .. } | Self::Interrupted { .. } => true,
            Self::Refused { status, .. } => matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504),
            Self::BadAnswer { .. } | Self::NotExact { .. } | Self::BadRequest(_) | Self::Closed => false,
        }
    }
}

/// Tokens that were sampled since the last time, all with the same weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delta<'a> {
    pub tokens: &'a [i32],
    /// One for each token; empty where the engine gives none.
    pub logprobs: &'a [f32],
    pub version: i32,
}

/// Hears of tokens while they are sampled. It is called often, and must not wait.
pub type Listener<'a> = &'a mut (dyn FnMut(Delta<'_>) + Send);

/// Something that samples from a policy.
pub trait Engine: Send + Sync + fmt::Debug {
    /// Generates until the request is done, through interruptions. Dropping the future cancels the request on
    /// the server too.
    fn generate(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, EngineError>>;

    /// The same, and tells of each token as it is sampled: all that was told is the response's output. An engine that
    /// cannot stream tells everything at the end.
    fn generate_told<'a>(
        &'a self,
        request: ModelRequest,
        listener: Listener<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse, EngineError>> {
        Box::pin(async move {
            let response = self.generate(request).await?;
            response.tell(listener);
            Ok(response)
        })
    }

    fn capabilities(&self) -> Capabilities;

    /// Of the weights, as the trainer last said.
    fn version(&self) -> i32;

    /// What is requested from now on is sampled with these weights.
    fn set_version(&self, version: i32);

    /// Nothing new is sent, and what is under way is interrupted and waits with what it has.
    fn pause(&self) -> BoxFuture<'_, Result<(), EngineError>>;

    /// Goes on, with whatever weights the engine has now.
    fn resume(&self) -> BoxFuture<'_, Result<(), EngineError>>;
}

pub type SharedEngine = Arc<dyn Engine>;
