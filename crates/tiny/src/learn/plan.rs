//! What is learnt, and how.

use rollyard_engine::generate::GenerationConfig;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

use crate::model::Shape;
use crate::task::{Task, UnknownTask};
use crate::tokenizer;
use crate::train::{AdamSettings, Grpo};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub task: String,
    /// Decides the first weights, the problems and their order, and the noise of every answer.
    pub seed: u64,
    pub shape: Shape,

    /// Steps of imitation before the first answer of its own.
    pub warm_up_steps: usize,
    pub warm_up_lessons: usize,
    pub warm_up_learning_rate: f32,
    /// Of a hundred answers that the teacher shows in the end, so many are careless.
    pub careless_percent: usize,

    /// Groups that a step trains on.
    pub groups: NonZeroU32,
    pub group_size: NonZeroU32,
    /// Problems to train on; the same come again when all have been asked.
    pub problems: usize,
    pub temperature: f32,
    /// Versions that a rollout may be behind the weights that learn from it.
    pub staleness_max: u32,

    pub learning_rate: f32,
    pub grpo: Grpo,
    /// Steps of the optimiser that a batch is divided into.
    pub minibatches: usize,
    /// Deal the advantages of a batch out at random: the control, in which nothing is to be learnt.
    pub shuffled: bool,

    /// Steps between two looks at what was held out.
    pub exam_every: u64,
    pub exam_problems: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error(transparent)]
    Task(#[from] UnknownTask),
    #[error("field \"{field}\" of the plan is {value}, but must be {want}")]
    Field { field: &'static str, value: String, want: &'static str },
}

impl Plan {
    /// The demo's.
    pub fn new(task: Task, seed: u64) -> Self {
        Self {
            task: task.name().to_owned(),
            seed,
            shape: Shape::demo(tokenizer::vocabulary_len()),
            warm_up_steps: 1200,
            warm_up_lessons: 32,
            warm_up_learning_rate: 3e-3,
            careless_percent: 85,
            groups: NonZeroU32::new(32).expect("it is not zero"),
            group_size: NonZeroU32::new(8).expect("it is not zero"),
            problems: 1600,
            temperature: 1.0,
            staleness_max: 2,
            learning_rate: 2e-4,
            grpo: Grpo::default(),
            minibatches: 1,
            shuffled: false,
            exam_every: 10,
            exam_problems: 200,
        }
    }

    /// The task it names, if everything else is sound too.
    pub fn check(&self) -> Result<Task, PlanError> {
        let bad = |field, value: String, want| Err(PlanError::Field { field, value, want });
        let counts = [
            ("warm_up_lessons", self.warm_up_lessons as u64),
            ("problems", self.problems as u64),
            ("minibatches", self.minibatches as u64),
            ("exam_every", self.exam_every),
            ("exam_problems", self.exam_problems as u64),
        ];
        if let Some((field, _)) = counts.into_iter().find(|(_, value)| *value == 0) {
            return bad(field, "0".to_owned(), "at least 1");
        }
        let rates =
            [("learning_rate", self.learning_rate), ("warm_up_learning_rate", self.warm_up_learning_rate)];
        if let Some((field, rate)) = rates.into_iter().find(|(_, rate)| !(*rate > 0.0 && *rate < 1.0)) {
            return bad(field, rate.to_string(), "above 0 and below 1");
        }
        if !(self.temperature > 0.0 && self.temperature <= 10.0) {
            return bad("temperature", self.temperature.to_string(), "above 0 and at most 10");
        }
        if !(0.0..=100.0).contains(&self.grpo.kl) {
            return bad("kl", self.grpo.kl.to_string(), "between 0 and 100");
        }
        Ok(self.task.parse()?)
    }

    /// Rollouts that a step trains on.
    pub fn batch(&self) -> usize {
        (self.groups.get() * self.group_size.get()) as usize
    }

    pub(super) fn adam(&self) -> AdamSettings {
        AdamSettings { learning_rate: self.learning_rate, ..AdamSettings::default() }
    }

    pub(super) fn sampling(&self) -> GenerationConfig {
        GenerationConfig { temperature: self.temperature, ..GenerationConfig::default() }
    }

    /// The knobs of its run in a yard: each rollout once, the oldest first, and none that is too old.
    pub(super) fn knobs(&self) -> serde_json::Value {
        serde_json::json!({
            "mode": "replay",
            "advantage": "grpo",
            "group_size": self.group_size,
            "replay_select": "oldest",
            "max_samples": 1,
            "max_rollout_step_delay": self.staleness_max,
            "version_spread_max": self.staleness_max,
            "group_timeout_seconds": 10,
            "seed": self.seed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let plan = Plan::new(Task::Tool, 1);
        assert_eq!(plan.check(), Ok(Task::Tool));
        for (wrong, said) in [
            (Plan { task: "chess".into(), ..plan.clone() }, "there is no task \"chess\""),
            (Plan { problems: 0, ..plan.clone() }, "field \"problems\" of the plan is 0"),
            (Plan { learning_rate: 2.0, ..plan.clone() }, "field \"learning_rate\" of the plan is 2"),
            (Plan { grpo: Grpo { kl: -1.0, ..plan.grpo }, ..plan.clone() }, "field \"kl\" of the plan is -1"),
            (Plan { temperature: f32::NAN, ..plan.clone() }, "field \"temperature\" of the plan is NaN"),
        ] {
            let error = wrong.check().unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
