//! Asks the engine for one answer of an episode.

use serde_json::Map;

use crate::episode::{Context, EpisodeError};
use crate::generate::{GenerationConfig, ModelRequest, ModelResponse, Prompt, SharedEngine, StopReason};

pub(super) struct Asker<'a> {
    pub(super) engine: &'a SharedEngine,
    pub(super) context: &'a Context,
    pub(super) gconfig: &'a GenerationConfig,
}

impl Asker<'_> {
    /// `turn` counts the answers of the episode, from 0; at most `max_new_tokens` are sampled.
    pub(super) async fn ask(
        &self,
        turn: u32,
        prompt: Prompt,
        max_new_tokens: u32,
    ) -> Result<ModelResponse, EpisodeError> {
        let Context { run, task_id, sample_idx, attempt, .. } = self.context;
        let gconfig = GenerationConfig {
            max_new_tokens,
            min_new_tokens: self.gconfig.min_new_tokens.min(max_new_tokens),
            seed: Some(turn_seed(self.context.seed, turn)),
            ..self.gconfig.clone()
        };
        let request = ModelRequest {
            rid: format!("{run}-{task_id}-{sample_idx}-{attempt}-{turn}"),
            prompt,
            gconfig,
            // The group shares its prompt, and so should share the server that has it in its cache.
            session: Some(format!("{run}-{task_id}")),
            metadata: Map::new(),
        };
        let response = self.engine.generate(request).await?;
        if response.stop_reason == StopReason::Abort {
            let count = response.output_tokens.len();
            return Err(EpisodeError::Workflow(format!(
                "the engine gave up the answer after {count} tokens"
            )));
        }
        Ok(response)
    }
}

/// The episode's seed for its first answer, and one of its own for each that follows: with the same seed every
/// turn would draw the same numbers.
fn turn_seed(seed: u64, turn: u32) -> u64 {
    seed.wrapping_add(u64::from(turn).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}
