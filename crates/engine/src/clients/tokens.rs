//! A generation in token ids, through interruptions.
//!
//! An interrupted answer is kept and sent back as a longer prompt, with what is left of its budget. So the
//! tokens are those that were sampled, each piece with the version of the weights that sampled it.

use std::time::Instant;

use super::HttpEngine;
use super::answer::{End, Flaw, Piece, Tokens};
use super::ask::{Call, Names};
use super::config::Dialect;
use super::{sglang, vllm};
use crate::generate::{EngineError, GenerationConfig, ModelResponse, Segment, StopReason};

/// What there is of an answer.
#[derive(Debug)]
struct Draft {
    /// The prompt, and behind it what was sampled.
    sequence: Vec<i32>,
    prompt_len: usize,
    logprobs: Vec<f32>,
    segments: Vec<Segment>,
}

impl HttpEngine {
    pub(super) async fn generate_tokens(
        &self,
        mut names: Names,
        prompt: Vec<i32>,
        gconfig: GenerationConfig,
        session: Option<&str>,
    ) -> Result<ModelResponse, EngineError> {
        self.require_tokens()?;
        let began = Instant::now();
        let model = match self.config.dialect {
            Dialect::Vllm => Some(self.model().await?),
            Dialect::Sglang | Dialect::Openai => None,
        };
        let model = model.as_deref().unwrap_or_default();
        let mut draft = Draft::new(prompt);
        let mut rest = gconfig.clone();
        let mut ttft = None;
        let mut stalls = 0;
        loop {
            draft.leave(&gconfig, &mut rest);
            let question = |rid: &str| self.question(rid, model, &draft, &rest);
            let reply = self.line.ask(Call::Tokens, &mut names, session, question).await?;
            ttft.get_or_insert_with(|| began.elapsed());
            let piece = super::read_answer(self.config.dialect, &reply.bytes, self.config.exact);
            let Piece { tokens, text, end, version } = piece.map_err(|flaw| reply.refuse(flaw))?;
            let version = version.unwrap_or(reply.version);
            let Some(tokens) = tokens else {
                if draft.sampled() > 0 {
                    return Err(reply
                        .refuse(Flaw::Bad("its first answer had token ids, but this one has none".into())));
                }
                if end == End::Cut {
                    self.wait_out(&mut stalls, &reply).await?;
                    continue;
                }
                return Ok(text_only(text, version, end, began));
            };
            let progress = draft.push(tokens, &rest, version).map_err(|flaw| reply.refuse(flaw))?;
            let reason = match end {
                End::Done(reason) => reason,
                End::Cut if draft.sampled() >= gconfig.max_new_tokens as usize => StopReason::Length,
                End::Cut if progress => {
                    stalls = 0;
                    continue;
                }
                End::Cut => {
                    self.wait_out(&mut stalls, &reply).await?;
                    continue;
                }
            };
            let mut response = draft.into_response(reason);
            // Decoded piece by piece, a character may be torn in two; so text is only given of a whole answer.
            response.text = text.filter(|_| response.segments.len() == 1);
            response.latency = began.elapsed();
            response.ttft = ttft.unwrap_or(response.latency);
            return Ok(response);
        }
    }

    fn require_tokens(&self) -> Result<(), EngineError> {
        if self.config.dialect.speaks_tokens() {
            return Ok(());
        }
        let url = self.config.urls.first().cloned().unwrap_or_default();
        let hint = "send messages, or use an engine that speaks sglang or vllm";
        Err(EngineError::NotExact { what: "token ids in the dialect openai", hint, url })
    }

    fn question(&self, rid: &str, model: &str, draft: &Draft, rest: &GenerationConfig) -> Vec<u8> {
        match self.config.dialect {
            Dialect::Sglang => sglang::question(rid, &draft.sequence, rest),
            Dialect::Vllm | Dialect::Openai => {
                vllm::question(rid, model, &draft.sequence, draft.sampled(), rest)
            }
        }
    }
}

/// What an engine without token ids said, where that was allowed.
fn text_only(text: Option<String>, version: i32, end: End, began: Instant) -> ModelResponse {
    let latency = began.elapsed();
    ModelResponse {
        input_tokens: Vec::new(),
        output_tokens: Vec::new(),
        output_logprobs: Vec::new(),
        segments: vec![Segment { tokens: 0, version }],
        text,
        message: None,
        stop_reason: match end {
            End::Done(reason) => reason,
            End::Cut => StopReason::Abort,
        },
        latency,
        ttft: latency,
        is_exact: false,
    }
}

impl Draft {
    fn new(prompt: Vec<i32>) -> Self {
        let prompt_len = prompt.len();
        Self { sequence: prompt, prompt_len, logprobs: Vec::new(), segments: Vec::new() }
    }

    fn sampled(&self) -> usize {
        self.logprobs.len()
    }

    /// Takes what was sampled off the budget.
    fn leave(&self, whole: &GenerationConfig, rest: &mut GenerationConfig) {
        let sampled = u32::try_from(self.sampled()).unwrap_or(u32::MAX);
        rest.max_new_tokens = whole.max_new_tokens.saturating_sub(sampled);
        rest.min_new_tokens = whole.min_new_tokens.saturating_sub(sampled);
    }

    /// Whether anything was added.
    fn push(&mut self, tokens: Tokens, rest: &GenerationConfig, version: i32) -> Result<bool, Flaw> {
        let Tokens { ids, logprobs } = tokens;
        if ids.len() > rest.max_new_tokens as usize {
            return Err(Flaw::Bad(format!(
                "{} tokens, but {} were asked for",
                ids.len(),
                rest.max_new_tokens
            )));
        }
        if ids.is_empty() {
            return Ok(false);
        }
        self.segments.push(Segment { tokens: ids.len(), version });
        self.sequence.extend(ids);
        self.logprobs.extend(logprobs);
        Ok(true)
    }

    fn into_response(mut self, stop_reason: StopReason) -> ModelResponse {
        let output_tokens = self.sequence.split_off(self.prompt_len);
        ModelResponse {
            input_tokens: self.sequence,
            output_tokens,
            output_logprobs: self.logprobs,
            segments: self.segments,
            text: None,
            message: None,
            stop_reason,
            latency: Default::default(),
            ttft: Default::default(),
            is_exact: true,
        }
    }
}
