//! What a pool keeps, for how long, and how it picks.

use serde::{Deserialize, Serialize};
use std::num::{NonZeroU32, NonZeroUsize};

use super::ReplayError;

/// Four knobs of freshness and fairness, none hidden in another; see `docs/concepts/freshness.md`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Rollouts of one environment; the oldest make room.
    pub capacity: NonZeroUsize,
    pub select: Select,
    pub balance: Balance,
    /// Times a rollout is used before it retires; `None` is no limit.
    pub max_samples: Option<NonZeroU32>,
    /// Steps that the trainer may be ahead of the weights that sampled a rollout.
    pub step_delay_max: Option<u64>,
    /// Seconds since a rollout was made.
    pub age_secs_max: Option<f64>,
    /// Steps that the trainer may be ahead of the weights that sampled a *token*: older ones leave the loss, and a
    /// rollout of which no token is left is stale.
    pub token_delay_max: Option<u64>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            capacity: NonZeroUsize::MAX,
            select: Select::Recency { alpha: 0.0 },
            balance: Balance::Proportional,
            max_samples: None,
            step_delay_max: None,
            age_secs_max: None,
            token_delay_max: None,
        }
    }
}

/// Which rollouts of an environment are picked; the oldest is the one that came first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Select {
    /// The i-th oldest, from 0, weighs `(i + 1)^alpha`.
    Recency {
        alpha: f64,
    },
    Uniform,
    OldestFirst,
    NewestFirst,
    /// A rollout weighs its priority to the power of `exponent`.
    Prioritised {
        exponent: f64,
    },
}

/// How a batch is shared among environments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Balance {
    /// By how many rollouts each has, drawn without replacement.
    #[default]
    Proportional,
    /// As many of each as there are.
    Equal,
}

/// The names of [`Select`], without the number that belongs to some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectName {
    #[default]
    Recency,
    Uniform,
    Oldest,
    Newest,
    Prioritised,
}

impl SelectName {
    /// With `alpha` as recency's power or the priorities' exponent.
    pub fn with(self, alpha: f64) -> Select {
        match self {
            Self::Recency => Select::Recency { alpha },
            Self::Uniform => Select::Uniform,
            Self::Oldest => Select::OldestFirst,
            Self::Newest => Select::NewestFirst,
            Self::Prioritised => Select::Prioritised { exponent: alpha },
        }
    }
}

/// Beyond this the newest is always picked, and powers leave the range of numbers.
pub const ALPHA_MAX: f64 = 1000.0;

impl Rules {
    pub fn check(&self) -> Result<(), ReplayError> {
        let alpha = match self.select {
            Select::Recency { alpha } => alpha,
            Select::Prioritised { exponent } => exponent,
            Select::Uniform | Select::OldestFirst | Select::NewestFirst => 0.0,
        };
        if !(0.0..=ALPHA_MAX).contains(&alpha) {
            return Err(ReplayError::setting("alpha", alpha, "a number from 0 to 1000"));
        }
        match self.age_secs_max {
            Some(secs) if !(secs >= 0.0 && secs.is_finite()) => {
                Err(ReplayError::setting("max_rollout_timestamp_delay", secs, "a finite number of seconds"))
            }
            _ => Ok(()),
        }
    }
}
