//! An engine for the tests of workflows: answers by a script, in the tokens of a real tokenizer.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use rollyard_core::tokens::{ModelFiles, Tokenizer};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::opening::message;
use crate::episode::{Context, Data, EpisodeError, Trajectory, Workflow};
use crate::generate::{
    Capabilities, Engine, EngineError, Message, ModelRequest, ModelResponse, Prompt, Segment, SharedEngine,
    StopReason,
};

pub(crate) const CHATML: &str = include_str!("../../../core/tests/fixtures/templates/chatml.jinja");
pub(crate) const THINKING: &str = include_str!("../../../core/tests/fixtures/templates/chatml_think.jinja");
pub(crate) const LLAMA: &str = include_str!("../../../core/tests/fixtures/templates/llama_like.jinja");
const CHATML_TOKENS: &[u8] = include_bytes!("../../../core/tests/fixtures/tokens/chatml/tokenizer.json");
const LLAMA_TOKENS: &[u8] = include_bytes!("../../../core/tests/fixtures/tokens/llama3/tokenizer.json");

pub(crate) fn tokenizer(template: &str) -> Arc<Tokenizer> {
    let tokens = if template == LLAMA { LLAMA_TOKENS } else { CHATML_TOKENS };
    // The template is like Llama's but for the names of its tokens.
    let named =
        [("<|start|>", "<|start_header_id|>"), ("<|sep|>", "<|end_header_id|>"), ("<|eot|>", "<|eot_id|>")];
    let template = named.iter().fold(template.to_owned(), |text, (from, to)| text.replace(from, to));
    let files = ModelFiles { chat_template: Some(&template), ..ModelFiles::default() };
    Arc::new(Tokenizer::new(tokens, files).unwrap())
}

pub(crate) fn encode(tokenizer: &Tokenizer, text: &str) -> Vec<i32> {
    tokenizer.encoder().encode(text).unwrap().into_iter().map(|id| id as i32).collect()
}

/// The tokens of a reply.
pub(crate) fn sampled(tokenizer: &Tokenizer, reply: &str) -> Vec<i32> {
    reply.split('¦').flat_map(|piece| encode(tokenizer, piece)).collect()
}

pub(crate) fn decode(tokenizer: &Tokenizer, ids: &[i32]) -> String {
    let ids: Vec<u32> = ids.iter().map(|id| *id as u32).collect();
    tokenizer.encoder().decode(&ids, false).unwrap()
}

#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) stop_reason: StopReason,
    /// What a chat engine says instead of the text.
    pub(crate) message: Option<Message>,
}

pub(crate) fn says(text: &str) -> Reply {
    Reply { text: text.to_owned(), stop_reason: StopReason::Stop, message: None }
}

pub(crate) fn breaks_off(text: &str) -> Reply {
    Reply { stop_reason: StopReason::Length, ..says(text) }
}

/// The n-th request gets the n-th reply. The first token of an answer has version 3, the others 4. A `¦` in a
/// reply parts its tokens where the tokenizer would not, as sampling may.
#[derive(Debug)]
pub(crate) struct Scripted {
    tokenizer: Option<Arc<Tokenizer>>,
    replies: Vec<Reply>,
    asked: Mutex<Vec<ModelRequest>>,
}

impl Scripted {
    pub(crate) fn new(tokenizer: Option<&Arc<Tokenizer>>, replies: &[Reply]) -> Arc<Self> {
        let (tokenizer, replies) = (tokenizer.cloned(), replies.to_vec());
        Arc::new(Self { tokenizer, replies, asked: Mutex::default() })
    }

    pub(crate) fn asked(&self) -> Vec<ModelRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// The prompts it was given, as text.
    pub(crate) fn prompts(&self) -> Vec<String> {
        let text = |request: ModelRequest| match request.prompt {
            Prompt::Tokens(ids) => decode(self.tokenizer.as_ref().unwrap(), &ids),
            Prompt::Chat { messages, .. } => {
                messages.iter().map(|said| said.get()).collect::<Vec<_>>().join("\n")
            }
        };
        self.asked().into_iter().map(text).collect()
    }

    pub(crate) fn run(
        self: &Arc<Self>,
        workflow: &dyn Workflow,
        data: &str,
    ) -> Result<Option<Trajectory>, EpisodeError> {
        let engine: SharedEngine = self.clone();
        let (data, context) = (Data::parse(data).unwrap(), context());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(workflow.run_episode(&engine, &data, &context))
    }
}

pub(crate) fn context() -> Context {
    Context { run: "r".into(), task_id: 7, sample_idx: 1, attempt: 0, is_eval: false, seed: 99 }
}

impl Engine for Scripted {
    fn generate(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, EngineError>> {
        let mut asked = self.asked.lock().unwrap();
        let Reply { text, stop_reason, message: said } = self.replies[asked.len()].clone();
        let input_tokens = match &request.prompt {
            Prompt::Tokens(ids) => ids.clone(),
            Prompt::Chat { .. } => Vec::new(),
        };
        asked.push(request);
        let (output_tokens, is_exact) = match &self.tokenizer {
            Some(tokenizer) => (sampled(tokenizer, &text), true),
            None => (Vec::new(), false),
        };
        let first = output_tokens.len().min(1);
        let segments = [(first, 3), (output_tokens.len() - first, 4)];
        let message = (!is_exact).then(|| said.unwrap_or_else(|| message("assistant", &text)));
        let response = ModelResponse {
            input_tokens,
            output_logprobs: output_tokens.iter().map(|id| -(*id as f32) / 8.0).collect(),
            segments: segments
                .map(|(tokens, version)| Segment { tokens, version })
                .into_iter()
                .filter(|_| is_exact)
                .collect(),
            output_tokens,
            text: message.is_none().then_some(text),
            message,
            stop_reason,
            latency: Duration::ZERO,
            ttft: Duration::ZERO,
            is_exact,
        };
        ready(Ok(response)).boxed()
    }

    fn capabilities(&self) -> Capabilities {
        let exact = self.tokenizer.is_some();
        Capabilities { token_ids: exact, logprobs: exact, versions: exact }
    }

    fn version(&self) -> i32 {
        4
    }

    fn set_version(&self, _: i32) {}

    fn pause(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        ready(Ok(())).boxed()
    }

    fn resume(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        ready(Ok(())).boxed()
    }
}
