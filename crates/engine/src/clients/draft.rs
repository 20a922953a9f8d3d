//! What there is of an answer, while more of it is to come.

use std::time::Instant;

use super::answer::{Flaw, Tokens};
use crate::generate::{Delta, GenerationConfig, Listener, ModelResponse, Segment, StopReason};

pub(super) struct Draft<'a> {
    /// The prompt, and behind it what was sampled.
    sequence: Vec<i32>,
    prompt_len: usize,
    logprobs: Vec<f32>,
    segments: Vec<Segment>,
    listener: Option<Listener<'a>>,
    /// How to sample what is still to come.
    rest: GenerationConfig,
    whole: Budget,
    piece: Piece,
    began: Instant,
    first_token: Option<Instant>,
}

/// What a request for the rest is made of.
#[derive(Clone, Copy)]
pub(super) struct SoFar<'a> {
    pub(super) sequence: &'a [i32],
    /// So many at the end of it came from the engine.
    pub(super) sampled: usize,
    pub(super) rest: &'a GenerationConfig,
}

#[derive(Clone, Copy)]
struct Budget {
    max: u32,
    min: u32,
}

/// What one request brings.
#[derive(Default)]
struct Piece {
    tokens: usize,
    /// Of the pieces before it, those that brought anything.
    others: usize,
}

impl<'a> Draft<'a> {
    pub(super) fn new(prompt: Vec<i32>, gconfig: GenerationConfig, listener: Option<Listener<'a>>) -> Self {
        Self {
            prompt_len: prompt.len(),
            sequence: prompt,
            logprobs: Vec::new(),
            segments: Vec::new(),
            listener,
            whole: Budget { max: gconfig.max_new_tokens, min: gconfig.min_new_tokens },
            rest: gconfig,
            piece: Piece::default(),
            began: Instant::now(),
            first_token: None,
        }
    }

    pub(super) fn sampled(&self) -> usize {
        self.logprobs.len()
    }

    pub(super) fn so_far(&self) -> SoFar<'_> {
        SoFar { sequence: &self.sequence, sampled: self.sampled(), rest: &self.rest }
    }

    pub(super) fn is_full(&self) -> bool {
        self.sampled() >= self.whole.max as usize
    }

    /// Whether the last request brought anything.
    pub(super) fn progressed(&self) -> bool {
        self.piece.tokens > 0
    }

    /// Before a request: takes what was sampled off the budget.
    pub(super) fn begin_piece(&mut self) {
        let others = self.piece.others + usize::from(self.progressed());
        self.piece = Piece { tokens: 0, others };
        let sampled = u32::try_from(self.sampled()).unwrap_or(u32::MAX);
        self.rest.max_new_tokens = self.whole.max.saturating_sub(sampled);
        self.rest.min_new_tokens = self.whole.min.saturating_sub(sampled);
    }

    /// Tokens that one request gives belong together as long as they have one version.
    pub(super) fn push(&mut self, tokens: Tokens, version: i32) -> Result<(), Flaw> {
        let Tokens { ids, logprobs } = tokens;
        let (count, most) = (self.piece.tokens + ids.len(), self.rest.max_new_tokens);
        if count > most as usize {
            return Err(Flaw::Bad(format!("{count} tokens, but {most} were asked for")));
        }
        if ids.is_empty() {
            return Ok(());
        }
        self.first_token.get_or_insert_with(Instant::now);
        match self.segments.last_mut() {
            Some(last) if self.piece.tokens > 0 && last.version == version => last.tokens += ids.len(),
            _ => self.segments.push(Segment { tokens: ids.len(), version }),
        }
        self.piece.tokens = count;
        self.sequence.extend_from_slice(&ids);
        self.logprobs.extend_from_slice(&logprobs);
        if let Some(listener) = &mut self.listener {
            listener(Delta { tokens: &ids, logprobs: &logprobs, version });
        }
        Ok(())
    }

    /// What an engine without token ids said, where that was allowed.
    pub(super) fn into_text_only(
        mut self,
        text: Option<String>,
        version: i32,
        stop_reason: StopReason,
    ) -> ModelResponse {
        self.sequence.clear();
        self.prompt_len = 0;
        self.segments = vec![Segment { tokens: 0, version }];
        ModelResponse { is_exact: false, text, ..self.into_response(stop_reason, None) }
    }

    /// Decoded piece by piece, a character may be torn in two; so text is only given of a whole answer.
    pub(super) fn into_response(mut self, stop_reason: StopReason, text: Option<String>) -> ModelResponse {
        let output_tokens = self.sequence.split_off(self.prompt_len);
        let latency = self.began.elapsed();
        ModelResponse {
            input_tokens: self.sequence,
            output_tokens,
            output_logprobs: self.logprobs,
            segments: self.segments,
            text: text.filter(|_| self.piece.tokens > 0 && self.piece.others == 0),
            message: None,
            stop_reason,
            latency,
            ttft: self.first_token.map_or(latency, |at| at.duration_since(self.began)),
            is_exact: true,
        }
    }
}
