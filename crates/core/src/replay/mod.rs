//! Fresh rollouts, fairly picked: what a trainer samples from when each may be used more than once.
//!
//! Read in this order: [`Rules`] says what is kept and how it is picked, [`Pool`] keeps it and picks,
//! [`Advantage`] says what a rollout is worth beside its group, [`Limiter`] keeps inserts and samples in step,
//! [`Census`] counts what was generated beside what was trained on. [`Buffer`] is all of them in one process;
//! the ledger has a pool of its own, with every change in the log.
//!
//! What must always be true:
//! - nothing that is stale by step, by time or by its tokens is ever picked, whatever the order of inserts,
//!   steps and clocks;
//! - what leaves without being used leaves with a [`DropReason`](crate::pipeline::DropReason), and is counted;
//! - a batch holds no rollout twice, and the same seed, inserts and steps give the same batch.

mod advantage;
mod buckets;
mod buffer;
mod census;
mod chance;
mod draw;
mod limiter;
mod pool;
mod rules;
mod shelf;

#[cfg(test)]
mod tests;

pub use advantage::{Advantage, has_no_variance};
pub use buffer::{Added, BatchShare, Buffer, BufferConfig, NewGroup, Sampled, Stats, ZeroVariance};
pub use census::{Census, Lengths, Sides};
pub use chance::Chance;
pub use limiter::{Flow, Limiter};
pub use pool::{Entry, EntryId, Facts, Pool};
pub use rules::{ALPHA_MAX, Balance, Rules, Select, SelectName};

use std::fmt::Display;

/// Why something was not done. Nothing has changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplayError {
    #[error("{name} = {value} is not {expected}")]
    Setting { name: String, value: String, expected: String },
    #[error("group {group} has no rollouts")]
    EmptyGroup { group: usize },
    #[error("group {group} has {rollouts} rollouts, but {advantages} advantages")]
    Advantages { group: usize, rollouts: usize, advantages: usize },
    #[error(
        "the advantage of rollout {rollout} ({id:?}) in group {group} is {value}, but must be a finite number"
    )]
    NotFinite { group: usize, rollout: usize, id: String, value: f32 },
    #[error(
        "rollout {rollout} ({id:?}) in group {group} has no metadata, and its batch has none either; \
         a worker attaches worker_id, timestamp and weight_step"
    )]
    MissingMetadata { group: usize, rollout: usize, id: String },
    #[error("step {step} is before step {last}, where the trainer is; rewind to go back")]
    StepBack { step: i64, last: i64 },
    #[error(
        "a batch of {batch} can never be drawn: {envs} environment(s) are full with {capacity} rollouts each \
         (capacity) and hold {size}; raise capacity or lower the batch size"
    )]
    BatchTooLarge { batch: usize, envs: usize, capacity: usize, size: usize },
    #[error(
        "the limiter holds {count} inserts back: {inserted} inserted, {sampled} sampled, and \
         {samples_per_insert} samples are wanted for each insert; sample first, or wait longer"
    )]
    Paced { count: u64, inserted: u64, sampled: u64, samples_per_insert: f64 },
    #[error("{count} at once can never pass the limiter: its band is {band} samples wide")]
    BandTooNarrow { count: u64, band: f64 },
}

impl ReplayError {
    /// The short name in error answers.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Setting { .. } => "invalid_setting",
            Self::EmptyGroup { .. } => "empty_group",
            Self::Advantages { .. } | Self::NotFinite { .. } => "bad_advantage",
            Self::MissingMetadata { .. } => "missing_metadata",
            Self::StepBack { .. } => "step_back",
            Self::BatchTooLarge { .. } | Self::BandTooNarrow { .. } => "batch_too_large",
            Self::Paced { .. } => "paced",
        }
    }

    pub(crate) fn setting(name: &str, value: impl Display, expected: &str) -> Self {
        Self::Setting { name: name.to_owned(), value: value.to_string(), expected: expected.to_owned() }
    }
}
