//! Rollouts as a trainer holds them: a prompt, an answer, what a tool said to it, and another answer.

use rollyard_core::rollout::{Draft, Metadata, Rollout, RolloutError};

/// How many tokens each part of a rollout has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lengths {
    pub(crate) prompt: usize,
    pub(crate) first_answer: usize,
    pub(crate) given: usize,
    pub(crate) second_answer: usize,
}

impl Lengths {
    /// A quarter prompt, an eighth of the rest given by a tool.
    pub(crate) fn of(tokens: usize) -> Self {
        Self::with_prompt(tokens / 4, tokens - tokens / 4)
    }

    pub(crate) fn with_prompt(prompt: usize, response: usize) -> Self {
        let (first_answer, given) = (response / 2, response / 8);
        Self { prompt, first_answer, given, second_answer: response - first_answer - given }
    }

    pub(crate) fn parts(&self) -> [usize; 4] {
        [self.prompt, self.first_answer, self.given, self.second_answer]
    }

    /// A rollout of these lengths, with log-probs and two versions.
    pub(crate) fn rollout(&self, random: &mut Random) -> Result<Rollout, RolloutError> {
        Rollout::try_from(self.draft(random))
    }

    pub(crate) fn draft(&self, random: &mut Random) -> Draft {
        let response = self.first_answer + self.given + self.second_answer;
        let mut sampled = vec![true; self.first_answer];
        sampled.resize(self.first_answer + self.given, false);
        sampled.resize(response, true);
        let mut versions = vec![7; self.first_answer];
        versions.resize(response, 8);
        Draft {
            env_name: "maths_with_tools".to_owned(),
            env_example_id: format!("maths_{}", random.between(0, 1_000_000)),
            tokens: (0..self.prompt + response).map(|_| random.between(0, 150_000) as i32).collect(),
            prompt_len: self.prompt,
            logprobs: Some((0..response).map(|_| -(random.between(0, 4_000) as f32) / 1_000.0).collect()),
            sampled: Some(sampled),
            versions: Some(versions),
            episode_reward: 1.0,
            metadata: Metadata {
                worker_id: "worker_4711".to_owned(),
                timestamp: 1.7e9,
                weight_step: 8,
                ..Metadata::default()
            },
            ..Draft::default()
        }
    }
}

/// Numbers that are the same in every run.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from `low` to `high`, with both.
    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        // SplitMix64: short, and good enough to keep a compiler and a cache from guessing.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        low + ((mixed ^ (mixed >> 31)) % (high - low + 1) as u64) as usize
    }
}
