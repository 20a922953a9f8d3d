//! One text to learn from.

use rollyard_core::rollout::Rollout;

/// A text, and which of its tokens are taught.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lesson {
    pub tokens: Vec<i32>,
    /// For each token the log-probability with which it was sampled; `None` for one that was given. The first token
    /// of a text cannot be taught: nothing foretells it.
    pub sampled: Vec<Option<f32>>,
    /// How much better than its group.
    pub advantage: f32,
    /// That it was sampled at.
    pub temperature: f32,
}

impl Lesson {
    /// An answer to imitate.
    pub fn answer(prompt: &[i32], answer: &[i32]) -> Self {
        let tokens = [prompt, answer].concat();
        let sampled = std::iter::repeat_n(None, prompt.len())
            .chain(std::iter::repeat_n(Some(0.0), answer.len()))
            .collect();
        Self { tokens, sampled, advantage: 1.0, temperature: 1.0 }
    }

    /// What a rollout teaches: the tokens that were sampled, with the log-probabilities they were sampled with. `None`
    /// if it does not say them.
    pub fn of(rollout: &Rollout, advantage: f32) -> Option<Self> {
        let logprobs = rollout.response_logprobs()?;
        let answered = logprobs.iter().zip(rollout.sampled().values());
        let sampled = std::iter::repeat_n(None, rollout.prompt_tokens().len())
            .chain(answered.map(|(logprob, is_sampled)| is_sampled.then_some(*logprob)))
            .collect();
        let tokens = [rollout.prompt_tokens(), rollout.response_tokens()].concat();
        Some(Self { tokens, sampled, advantage, temperature: rollout.temperature.unwrap_or(1.0) })
    }

    /// How many of its tokens are taught.
    pub fn taught(&self) -> usize {
        self.sampled.iter().skip(1).flatten().count()
    }
}
