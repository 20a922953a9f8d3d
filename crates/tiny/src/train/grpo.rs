//! Learning from answers of one's own: group-relative policy optimisation.
//!
//! An answer that was better than the others of its group is made likelier, a worse one less likely. Answers may have
//! been sampled by older weights than those that learn from them, so two corrections stand apart:
//!
//! - the *ratio* `π / π_near` of the weights being trained to those at the start of the step, clipped, so that one step
//!   does not go too far however many times it looks at its lessons;
//! - the *importance* `π_near / π_sampled` of the start of the step to the weights that sampled, capped, so that an
//!   old answer counts as much as it would be given now.
//!
//! ```text
//! loss = - mean over tokens of importance · min(ratio · A, clip(ratio, 1 - low, 1 + high) · A)  +  kl · KL(π ‖ π_first)
//! ```

use serde::{Deserialize, Serialize};

use super::lesson::Lesson;
use super::student::{Blame, Objective, Taught};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Grpo {
    pub clip_low: f32,
    /// Larger, so that what is rare can still become likely.
    pub clip_high: f32,
    /// The most that a token may count for being too rare among what was sampled.
    pub importance_max: f32,
    /// Whether old tokens are corrected for their age.
    pub correct: bool,
    /// Weight of the distance to the policy that the training began with; 0 leaves it out.
    pub kl: f32,
}

impl Default for Grpo {
    fn default() -> Self {
        Self { clip_low: 0.2, clip_high: 0.28, importance_max: 2.0, correct: true, kl: 0.0 }
    }
}

/// How far the weights are from those that sampled, over all taught tokens of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct GrpoReport {
    pub loss: f64,
    /// Of the gradient.
    pub length: f64,
    /// Share of tokens whose importance was capped.
    pub capped: f64,
    /// Mean of `log π_sampled - log π_near`: 0 where what is trained on was sampled by the same weights.
    pub drift: f64,
}

/// The loss of one pass over lessons, with what was known of them before it.
#[derive(Debug)]
pub struct Pass<'a> {
    grpo: Grpo,
    /// By the weights at the start of the step.
    near: &'a [f32],
    /// By the weights that the training began with; empty without a KL term.
    first: &'a [f32],
    share: f32,
}

impl Grpo {
    /// `near` and `first` have a log-probability for every taught token; `tokens` is what the mean is taken over.
    pub fn pass<'a>(&self, near: &'a [f32], first: &'a [f32], tokens: usize) -> Pass<'a> {
        Pass { grpo: *self, near, first, share: 1.0 / tokens.max(1) as f32 }
    }

    /// What is known before the first pass.
    pub(super) fn report(&self, lessons: &[Lesson], near: &[f32]) -> GrpoReport {
        let sampled = lessons.iter().flat_map(|lesson| lesson.sampled.iter().skip(1).flatten());
        let (mut capped, mut drift) = (0_usize, 0.0);
        for (sampled, near) in sampled.zip(near) {
            capped += usize::from(self.correct && (near - sampled).exp() > self.importance_max);
            drift += f64::from(sampled - near);
        }
        let tokens = near.len().max(1) as f64;
        GrpoReport { capped: capped as f64 / tokens, drift: drift / tokens, ..GrpoReport::default() }
    }

    fn importance(&self, near: f32, sampled: f32) -> f32 {
        if self.correct { (near - sampled).exp().min(self.importance_max) } else { 1.0 }
    }
}

impl Objective for Pass<'_> {
    fn blame(&self, token: Taught) -> Blame {
        let Taught { nth, logprob, sampled, advantage } = token;
        let near = self.near.get(nth).copied().unwrap_or(logprob);
        let ratio = (logprob - near).exp();
        let clipped = ratio.clamp(1.0 - self.grpo.clip_low, 1.0 + self.grpo.clip_high);
        let importance = self.grpo.importance(near, sampled);
        let (plain, held) = (ratio * advantage, clipped * advantage);
        let mut loss = -importance * plain.min(held);
        let mut slope = if plain <= held { -importance * plain } else { 0.0 };
        if let Some(first) = self.first.get(nth).filter(|_| self.grpo.kl > 0.0) {
            // Schulman's third estimator: never negative, and right on average.
            let behind = first - logprob;
            loss += self.grpo.kl * (behind.exp() - behind - 1.0);
            slope += self.grpo.kl * (1.0 - behind.exp());
        }
        Blame { loss: f64::from(loss * self.share), slope: slope * self.share }
    }
}
