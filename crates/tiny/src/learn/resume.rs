//! Where a course stands on disk, and how it is found again.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;

use super::course::LearnError;
use super::plan::Plan;
use crate::model::Weights;
use crate::train::{Checkpoint, CheckpointError, Student, Trainer};

/// What a trainer has to know beside its weights.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Place {
    /// Of the weights: 0 after the warm-up.
    pub(super) version: u64,
    /// Of the batch that the last step learnt from. Whoever was killed between saving and committing commits it again.
    pub(super) lease: Option<u64>,
    /// Time spent so far.
    pub(super) secs: f64,
    /// Tokens sampled so far.
    pub(super) tokens: u64,
}

/// The trainer as it was saved; `None` if nothing was.
pub(super) fn load(plan: &Plan, path: &Path) -> Result<Option<(Trainer, Place)>, LearnError> {
    let checkpoint = match Checkpoint::load(path, Some(&plan.shape)) {
        Err(CheckpointError::Missing { .. }) => return Ok(None),
        loaded => loaded?,
    };
    let Checkpoint { weights, adam, notes } = checkpoint;
    let place: Place = serde_json::from_value(Value::Object(notes)).map_err(|error| {
        LearnError::Checkpoint(CheckpointError::NotOne { reason: error.to_string(), path: path.to_owned() })
    })?;
    let mut trainer = trainer(plan, weights);
    if let Some(adam) = adam {
        trainer.adam = adam;
    }
    Ok(Some((trainer, place)))
}

pub(super) fn trainer(plan: &Plan, weights: Weights) -> Trainer {
    let mut trainer = Trainer::new(Arc::new(weights), plan.adam(), Student::on_all_cores());
    trainer.grpo = plan.grpo;
    trainer.minibatches = plan.minibatches;
    trainer
}

/// The policy alone, before its first step.
pub(super) fn save_warm(trainer: &Trainer, path: &Path) -> Result<(), CheckpointError> {
    Checkpoint { weights: Weights::clone(&trainer.weights), adam: None, notes: Map::new() }.save(path)
}

pub(super) fn save(trainer: &Trainer, place: &Place, path: &Path) -> Result<(), CheckpointError> {
    let notes = match serde_json::to_value(place) {
        Ok(Value::Object(notes)) => notes,
        _ => Map::new(),
    };
    let weights = Weights::clone(&trainer.weights);
    Checkpoint { weights, adam: Some(trainer.adam.clone()), notes }.save(path)
}
