//! One sequence while it grows: every token, and who wrote it.

use rollyard_core::rollout::{Draft, Metadata, NO_VERSION, Rollout};

use crate::episode::{Context, Data, EpisodeError};
use crate::generate::{GenerationConfig, ModelResponse, Segment, StopReason};

#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    tokens: Vec<i32>,
    prompt_len: usize,
    logprobs: Vec<f32>,
    sampled: Vec<bool>,
    versions: Vec<i32>,
    segments: Vec<Segment>,
    /// Some answer came without log-probabilities: then there are none.
    lacks_logprobs: bool,
    is_inexact: bool,
    is_truncated: bool,
}

impl Record {
    pub(super) fn new(prompt: Vec<i32>) -> Self {
        Self { prompt_len: prompt.len(), tokens: prompt, ..Self::default() }
    }

    pub(super) fn tokens(&self) -> &[i32] {
        &self.tokens
    }

    pub(super) fn prompt_tokens(&self) -> &[i32] {
        self.tokens.get(..self.prompt_len).unwrap_or_default()
    }

    pub(super) fn response_tokens(&self) -> &[i32] {
        self.tokens.get(self.prompt_len..).unwrap_or_default()
    }

    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The conversation did not end by itself.
    pub(super) fn truncate(&mut self) {
        self.is_truncated = true;
    }

    /// Tokens that nobody sampled, between two answers.
    pub(super) fn give(&mut self, tokens: &[i32]) {
        self.tokens.extend_from_slice(tokens);
        self.logprobs.extend(tokens.iter().map(|_| 0.0));
        self.sampled.extend(tokens.iter().map(|_| false));
        self.versions.extend(tokens.iter().map(|_| NO_VERSION));
    }

    pub(super) fn answer(&mut self, response: &ModelResponse) -> Result<(), EpisodeError> {
        let ModelResponse { output_tokens, output_logprobs, .. } = response;
        let versions = response.output_versions();
        let count = output_tokens.len();
        for (what, len) in [("log-probabilities", output_logprobs.len()), ("versions", versions.len())] {
            let is_missing = what == "log-probabilities" && len == 0;
            if len != count && !is_missing {
                let wrong = format!("the engine gave {count} tokens but {len} {what}");
                return Err(EpisodeError::Workflow(wrong));
            }
        }
        self.tokens.extend_from_slice(output_tokens);
        if output_logprobs.is_empty() {
            self.lacks_logprobs |= count > 0;
            self.logprobs.extend(output_tokens.iter().map(|_| 0.0));
        } else {
            self.logprobs.extend_from_slice(output_logprobs);
        }
        self.sampled.extend(output_tokens.iter().map(|_| true));
        self.versions.extend(versions.values());
        self.segments.extend(response.segments.iter().cloned());
        self.is_inexact |= !response.is_exact;
        self.is_truncated = response.stop_reason == StopReason::Length;
        Ok(())
    }

    pub(super) fn finish(
        self,
        reward: f64,
        gconfig: &GenerationConfig,
        data: &Data,
        context: &Context,
    ) -> Result<Rollout, EpisodeError> {
        let first = self.segments.iter().find(|segment| segment.tokens > 0);
        let draft = Draft {
            env_name: data.env_name().unwrap_or_default(),
            env_example_id: data.example_id().unwrap_or_else(|| context.task_id.to_string()),
            tokens: self.tokens,
            prompt_len: self.prompt_len,
            logprobs: (!self.lacks_logprobs).then_some(self.logprobs),
            sampled: Some(self.sampled),
            versions: Some(self.versions),
            episode_reward: reward,
            metadata: Metadata {
                weight_step: first.map_or(-1, |segment| i64::from(segment.version)),
                ..Metadata::default()
            },
            temperature: Some(if gconfig.greedy { 0.0 } else { gconfig.temperature }),
            top_k: gconfig.top_k.map(|top_k| i32::try_from(top_k).unwrap_or(i32::MAX)),
            is_truncated: self.is_truncated,
            retokenised: self.is_inexact,
            ..Draft::default()
        };
        Rollout::try_from(draft).map_err(|error| EpisodeError::Workflow(error.to_string()))
    }
}
