//! What a step came to, for whoever watches.

use rollyard_engine::yard::{Books, DrawnRollout};
use serde::{Deserialize, Serialize};

use crate::train::{GrpoReport, Lesson};

/// One line of a learning curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// Version of the weights that came out of it.
    pub step: u64,
    /// Since the course began, over all its attempts.
    pub secs: f64,
    /// Mean of what was trained on.
    pub reward: f64,
    /// Share of held-out problems answered right by the new weights, where they were examined.
    pub held_out: Option<f64>,
    /// Versions behind the weights that learnt: mean and most over what was trained on.
    pub stale_mean: f64,
    pub stale_max: i64,
    /// The most that a token's log-probability, sampled by the very weights that learnt, differs from what the trainer
    /// finds. `None` if no token was.
    pub drift_max: Option<f64>,
    pub loss: f64,
    /// Of the gradient.
    pub gradient: f64,
    /// Share of tokens whose importance was capped.
    pub capped: f64,
    /// Tokens sampled so far, and a second since the last step.
    pub tokens: u64,
    pub tokens_per_sec: f64,
    /// Rollouts that were too old to be trained on, so far.
    pub stale_dropped: u64,
}

/// What a course came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Version of the last weights.
    pub version: u64,
    /// Told to stop before the last step.
    pub stopped: bool,
    pub books: Books,
}

impl StepReport {
    pub(super) fn of_batch(step: u64, rollouts: &[DrawnRollout], learnt: &GrpoReport) -> Self {
        let count = rollouts.len().max(1) as f64;
        let behind =
            |rollout: &DrawnRollout| i64::try_from(step).unwrap_or_default() - rollout.weight_version;
        Self {
            step: step + 1,
            reward: rollouts.iter().map(|rollout| rollout.reward).sum::<f64>() / count,
            stale_mean: rollouts.iter().map(|rollout| behind(rollout) as f64).sum::<f64>() / count,
            stale_max: rollouts.iter().map(behind).max().unwrap_or_default(),
            loss: learnt.loss,
            gradient: learnt.length,
            capped: learnt.capped,
            ..Self::default()
        }
    }
}

/// See [`StepReport::drift_max`]. `found` has what the trainer finds for every taught token of the lessons.
pub(super) fn drift_max(
    version: u64,
    rollouts: &[DrawnRollout],
    lessons: &[Lesson],
    found: &[f32],
) -> Option<f64> {
    let mut found = found.iter();
    let mut most = None;
    for (drawn, lesson) in rollouts.iter().zip(lessons) {
        let rollout = &drawn.rollout;
        let given = std::iter::repeat_n(None, rollout.prompt_len());
        let versions = given.chain(rollout.versions().values().map(Some));
        for (sampled, by) in lesson.sampled.iter().zip(versions).skip(1) {
            let Some(sampled) = sampled else { continue };
            let Some(found) = found.next() else { return most };
            if by.is_some_and(|by| u64::try_from(by) == Ok(version)) {
                most = Some(f64::max(most.unwrap_or_default(), f64::from((sampled - found).abs())));
            }
        }
    }
    most
}
