//! An engine that keeps what it was asked, and answers with what it was asked last.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use rollyard_core::tokens::{ModelFiles, Tokenizer};
use rollyard_engine::generate::{
    Capabilities, Engine, EngineError, ModelRequest, ModelResponse, Prompt, Segment, StopReason,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TEMPLATE: &str = include_str!("../../../core/tests/fixtures/templates/chatml.jinja");
const TOKENS: &[u8] = include_bytes!("../../../core/tests/fixtures/tokens/chatml/tokenizer.json");

pub(crate) fn tokenizer() -> Arc<Tokenizer> {
    let files = ModelFiles { chat_template: Some(TEMPLATE), ..ModelFiles::default() };
    Arc::new(Tokenizer::new(TOKENS, files).unwrap())
}

#[derive(Debug)]
pub(crate) struct Echo {
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) asked: Mutex<Vec<ModelRequest>>,
    pub(crate) is_exact: bool,
}

impl Echo {
    pub(crate) fn new(is_exact: bool) -> Arc<Self> {
        Arc::new(Self { tokenizer: tokenizer(), asked: Mutex::default(), is_exact })
    }

    /// The tokens of every prompt, in their order.
    pub(crate) fn prompts(&self) -> Vec<Vec<i32>> {
        let tokens = |request: &ModelRequest| match &request.prompt {
            Prompt::Tokens(tokens) => tokens.clone(),
            Prompt::Chat { .. } => Vec::new(),
        };
        self.asked.lock().unwrap().iter().map(tokens).collect()
    }

    pub(crate) fn seeds(&self) -> Vec<Option<u64>> {
        self.asked.lock().unwrap().iter().map(|request| request.gconfig.seed).collect()
    }

    /// `You said …`: the last thing in the prompt that somebody said.
    fn answer(&self, prompt: &[i32]) -> Vec<i32> {
        let ids: Vec<u32> = prompt.iter().map(|id| *id as u32).collect();
        let text = self.tokenizer.encoder().decode(&ids, false).unwrap();
        let said = text.rsplit("user\n").next().unwrap().split("<|im_end|>").next().unwrap();
        let answer = self.tokenizer.encoder().encode(&format!("You said {said}<|im_end|>")).unwrap();
        answer.into_iter().map(|id| id as i32).collect()
    }
}

impl Engine for Echo {
    fn generate(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, EngineError>> {
        let Prompt::Tokens(prompt) = &request.prompt else {
            return ready(Err(EngineError::BadRequest("no tokens".to_owned()))).boxed();
        };
        let (input_tokens, output_tokens) = (prompt.clone(), self.answer(prompt));
        self.asked.lock().unwrap().push(request);
        ready(Ok(ModelResponse {
            output_logprobs: output_tokens.iter().map(|id| -(*id as f32) / 8.0).collect(),
            segments: vec![Segment { tokens: output_tokens.len(), version: 3 }],
            input_tokens,
            output_tokens,
            text: None,
            message: None,
            stop_reason: StopReason::Stop,
            latency: Duration::ZERO,
            ttft: Duration::ZERO,
            is_exact: true,
        }))
        .boxed()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { token_ids: self.is_exact, logprobs: true, versions: true }
    }

    fn version(&self) -> i32 {
        3
    }

    fn set_version(&self, _: i32) {}

    fn pause(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        ready(Ok(())).boxed()
    }

    fn resume(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        ready(Ok(())).boxed()
    }
}
